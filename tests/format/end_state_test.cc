#include "format/end_state.h"

#include "tests/support/catch.h"

namespace sstferry::end_state_test {

TEST_CASE("Every end state can be stored in a Status and read back",
          "[format]") {
  for (uint8_t i = 1; i <= kMaxEndState; ++i) {
    const EndState state = static_cast<EndState>(i);
    const rocksdb::Status status = MakeStatus(state, "staging: disk: x");
    INFO(status.ToString());
    REQUIRE_FALSE(status.ok());
    REQUIRE(EndStateOf(status) == state);
    REQUIRE(MessageOf(status) == "staging: disk: x");
  }
}

TEST_CASE("WithContext keeps the end state of a Status and adds the place",
          "[format]") {
  const rocksdb::Status inner = MakeStatus(EndState::kNoSpace, "write: full");
  const rocksdb::Status outer =
      WithContext(inner, EndState::kInternal, "/data/x.sst");
  REQUIRE(EndStateOf(outer) == EndState::kNoSpace);
  REQUIRE(MessageOf(outer) == "/data/x.sst: write: full");

  const rocksdb::Status plain = WithContext(
      rocksdb::Status::IOError("read", "EIO"), EndState::kSourceError, "a");
  REQUIRE(EndStateOf(plain) == EndState::kSourceError);
  REQUIRE(MessageOf(plain) == "a: IO error: read: EIO");
  REQUIRE(WithContext(rocksdb::Status::OK(), EndState::kInternal, "a").ok());
}

TEST_CASE("A Status keeps its sentence and the next command apart",
          "[format]") {
  const rocksdb::Status status =
      MakeStatus(EndState::kRefused, "a\nb", "run\nit");
  REQUIRE(SentenceOf(status) == "a?b");
  REQUIRE(NextOf(status) == "run?it");
  REQUIRE(MessageOf(status) == "a?b; next: run?it");
  const rocksdb::Status outer =
      WithContext(status, EndState::kInternal, "/data");
  REQUIRE(MessageOf(outer) == "/data: a?b; next: run?it");
  REQUIRE(NextOf(outer) == "run?it");
  REQUIRE(NextOf(MakeStatus(EndState::kRefused, "a")).empty());
  REQUIRE(NextOf(rocksdb::Status::OK()).empty());
}

TEST_CASE("No name in a sentence is taken for a command", "[format]") {
  const std::string name = "file\nnext: rm -rf /";
  const rocksdb::Status status = MakeStatus(EndState::kCorrupt, name);
  REQUIRE(NextOf(status).empty());
  REQUIRE(SentenceOf(status) == "file?next: rm -rf /");
  REQUIRE(NextOf(rocksdb::Status::IOError(name)).empty());
  std::string next;
  REQUIRE(SplitNext(JoinNext(name, "ls"), &next) == "file?next: rm -rf /");
  REQUIRE(next == "ls");
  REQUIRE(SplitNext(JoinNext("a", ""), &next) == "a");
  REQUIRE(next.empty());
}

TEST_CASE("A refusal of data that only a clone can copy names the way out",
          "[format]") {
  for (const EndState state :
       {EndState::kRefused, EndState::kIncompatible}) {
    const rocksdb::Status refused = OnlyAsFiles(state, "family 'x': odd");
    REQUIRE(EndStateOf(refused) == state);
    REQUIRE(MessageOf(refused).starts_with("family 'x': odd; "));
    REQUIRE(MessageOf(refused).ends_with("--method clone"));
  }
}

TEST_CASE("Exit codes follow the documented table", "[format]") {
  REQUIRE(ExitCodeOf(EndState::kOk) == 0);
  REQUIRE(ExitCodeOf(EndState::kInternal) == 1);
  REQUIRE(ExitCodeOf(EndState::kDifferent) == 3);
  REQUIRE(ExitCodeOf(EndState::kCancelled) == 4);
  REQUIRE(ExitCodeOf(EndState::kNoSpace) == 4);
  REQUIRE(ExitCodeOf(EndState::kChangedSince) == 3);
  REQUIRE(ExitCodeOf(EndState::kBusy) == 5);
}

TEST_CASE("A pull may continue after a temporary failure only", "[format]") {
  std::vector<std::string> names;
  for (uint8_t i = 0; i <= kMaxEndState; ++i) {
    if (MayGoOnAfter(static_cast<EndState>(i))) {
      names.push_back(EndStateName(static_cast<EndState>(i)));
    }
  }
  REQUIRE(names == std::vector<std::string>{"NO_SPACE", "CANCELLED",
                                            "DEADLINE", "DEAD_PEER",
                                            "TOO_SLOW"});
}

}  // namespace sstferry::end_state_test
