#include "pipeline/api/verdict.h"

#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::verdict_test {
namespace {

JudgedSide Side(const std::string& directory, const std::string& id,
                uint64_t sequence) {
  JudgedSide side;
  side.address.directory = directory;
  side.database_id = id;
  side.sequence = sequence;
  return side;
}

// Returns a copy of the database "origin" at sequence 150.
JudgedSide Copy() {
  JudgedSide side = Side("/copy of it", "copy", 0);
  side.record.emplace();
  side.record->transfer_id = "00ff";
  side.record->source_database_id = "origin";
  side.record->snapshot_sequence = 150;
  side.record->column_families = {"default", "a"};
  return side;
}

JudgedSide Origin(uint64_t sequence) {
  return Side("/db", "origin", sequence);
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Requires the same verdict with the sides as given and exchanged.
void RequireBothWays(const JudgedSide& copy, const JudgedSide& origin,
                     const Selection& selection, EndState state,
                     const std::string& reason) {
  const Verdict right = JudgeDifference(origin, copy, selection);
  INFO(right.reason);
  REQUIRE(right.state == state);
  REQUIRE(Contains(right.reason, reason));
  REQUIRE(Contains(right.reason, "right was pulled from left at sequence 150"));
  const Verdict left = JudgeDifference(copy, origin, selection);
  REQUIRE(left.state == state);
  REQUIRE(Contains(left.reason, "left was pulled from right at sequence 150"));
}

TEST_CASE("NamesSource() accepts the recorded source, and every set of an "
          "archive",
          "[pipeline][verdict]") {
  const auto names = [](const std::string& source, const std::string& text) {
    SourceAddress recorded;
    SourceAddress other;
    REQUIRE_OK(ParseSourceAddress(source, &recorded));
    REQUIRE_OK(ParseSourceAddress(text, &other));
    LastTransfer record;
    record.source = recorded.ToString();
    return NamesSource(record, other);
  };
  REQUIRE(names("sst://db1/orders", "sst://db1/orders"));
  REQUIRE(names("s3://b/orders", "s3://b/orders@night"));
  REQUIRE(names("s3://b/orders@latest", "s3://b/orders"));
  REQUIRE(names("s3://b/orders@old", "s3://b/orders@night"));
  REQUIRE_FALSE(names("sst://db1/orders", "sst://db2/orders"));
  REQUIRE_FALSE(names("sst://db1/orders", "/orders"));
  REQUIRE_FALSE(names("s3://b/orders", "s3://b/orders2"));
  REQUIRE_FALSE(names("s3://b/orders2", "s3://b/orders"));
}

TEST_CASE("A difference is CHANGED_SINCE only after the recorded sequence",
          "[pipeline][verdict]") {
  struct Row {
    uint64_t sequence;
    EndState state;
    bool is_fault;
    std::string reason;
    std::string next;
  };
  const std::string refresh = "sstferry refresh /db '/copy of it' --verify";
  const Row rows[] = {
      {151, EndState::kChangedSince, false,
       "at sequence 151: it was written to since the pull", refresh},
      {150, EndState::kDifferent, true, "is still at that sequence: no write",
       refresh},
      // The copy has what the source lost.
      {149, EndState::kDifferent, false, "has later writes: an older state",
       ""}};
  for (const Row& row : rows) {
    INFO(row.sequence);
    RequireBothWays(Copy(), Origin(row.sequence), {}, row.state, row.reason);
    for (const Verdict& verdict :
         {JudgeDifference(Origin(row.sequence), Copy(), {}),
          JudgeDifference(Copy(), Origin(row.sequence), {})}) {
      REQUIRE(verdict.next == row.next);
      REQUIRE(verdict.is_fault == row.is_fault);
    }
  }
}

TEST_CASE("No refresh is advised that would be refused because the copy is newer",
          "[pipeline][verdict]") {
  JudgedSide copy = Copy();
  // Ingestions raise a replica's own sequence number.
  const uint64_t ingested = GENERATE(uint64_t{0}, uint64_t{1000});
  copy.record->target_sequence = 150 + ingested;
  copy.sequence = 152 + ingested;
  for (const uint64_t sequence : {150, 151, 152}) {
    const Verdict verdict = JudgeDifference(Origin(sequence), copy, {});
    INFO(verdict.reason);
    REQUIRE(verdict.next.empty() == (sequence < 152));
    REQUIRE((verdict.reason.find("--adopt") != std::string::npos) ==
            (sequence < 152));
  }
}

TEST_CASE("A standby is repaired by its follower, and not by a refresh",
          "[pipeline][verdict]") {
  const ScratchDir dir;
  JudgedSide copy = Copy();
  copy.address.directory = dir.path();
  copy.record->source = "sst://db1/orders";
  const std::string mend = "sstferry follow sst://db1/orders " + dir.path();
  REQUIRE(JudgeDifference(Origin(150), copy, {}).next.find("refresh") !=
          std::string::npos);
  std::ofstream(dir / "sstferry.follow") << "a record";
  for (const uint64_t sequence : {149, 150, 151}) {
    const Verdict verdict = JudgeDifference(Origin(sequence), copy, {});
    REQUIRE(verdict.next == (sequence < 150 ? "" : mend));
    REQUIRE(verdict.is_fault == (sequence == 150));
    REQUIRE(verdict.beyond_repair.empty());
  }
  copy.sequence = 160;  // it has followed since the cut
  const Verdict verdict = JudgeDifference(Origin(150), copy, {});
  REQUIRE(verdict.state == EndState::kDifferent);
  REQUIRE_FALSE(verdict.is_fault);
  REQUIRE(verdict.next.empty());
}

TEST_CASE("The next command has the options that reach the source",
          "[pipeline][verdict]") {
  SourceAccess access;
  access.tls = {"/my tls/cert.pem", "/my tls/key.pem", "/my tls/ca.pem"};
  access.ssh.ssh = "ssh -i KEY";
  access.store.endpoint = "https://s3.example";
  access.wal_dir = "/wal";
  const auto words = [&access](const std::string& source) {
    SourceAddress address;
    REQUIRE_OK(ParseSourceAddress(source, &address));
    return AccessWords(access, address);
  };
  REQUIRE(words("sst://h/db") == " --tls '/my tls'");
  REQUIRE(words("h:/db") == " --ssh-command 'ssh -i KEY' --wal-dir /wal");
  REQUIRE(words("s3://b/db") == " --endpoint https://s3.example");
  REQUIRE(words("/db") == " --wal-dir /wal");
  access.tls.ca = "/ca.pem";
  REQUIRE(words("sst://h/db") ==
          " --tls-cert '/my tls/cert.pem' --tls-key '/my tls/key.pem' "
          "--tls-ca /ca.pem");
  REQUIRE(AccessWords(SourceAccess(), Origin(1).address).empty());

  JudgedSide origin = Origin(200);
  REQUIRE_OK(ParseSourceAddress("sst://h/db", &origin.address));
  origin.access = " --tls /tls";
  REQUIRE(JudgeDifference(origin, Copy(), {}).next ==
          "sstferry refresh sst://h:7420/db '/copy of it' --tls /tls --verify");
  JudgedSide part = Copy();
  part.record->asked.begin = "a";
  REQUIRE(JudgeDifference(origin, part, {}).next ==
          "sstferry verify sst://h:7420/db '/copy of it' --tls /tls --begin a");
}

TEST_CASE("Without a recorded sequence a difference is DIFFERENT",
          "[pipeline][verdict]") {
  JudgedSide copy = Copy();
  JudgedSide origin = Origin(200);
  SECTION("no record") { copy.record.reset(); }
  SECTION("a record of another database") {
    copy.record->source_database_id = "another";
  }
  SECTION("a record without a sequence") {
    copy.record->snapshot_sequence.reset();
  }
  SECTION("databases without an id") {
    copy.record->source_database_id.clear();
    origin.database_id.clear();
  }
  const Verdict verdict = JudgeDifference(origin, copy, {});
  REQUIRE(verdict.state == EndState::kDifferent);
  REQUIRE(Contains(verdict.reason, "neither side has a record of a pull"));
  REQUIRE(
      Contains(verdict.reason, "left at sequence 200, right at sequence 0"));
  REQUIRE(verdict.next.empty());  // it is unknown which side is right
}

TEST_CASE("A promoted database is not a copy of its former source",
          "[pipeline][verdict]") {
  JudgedSide copy = Copy();
  copy.record->promoted_at = "2026-11-29T12:00:00Z";
  REQUIRE_FALSE(IsPulledFrom(copy, Origin(150)));
  for (const uint64_t sequence : {149, 150, 151}) {
    const Verdict verdict = JudgeDifference(Origin(sequence), copy, {});
    REQUIRE(verdict.state == EndState::kDifferent);
    REQUIRE(verdict.reason.starts_with(
        "right was promoted at 2026-11-29T12:00:00Z, and is no copy since"));
    REQUIRE(verdict.next.empty());  // the application wrote to it
  }
}

TEST_CASE("A killed promotion has promoted nothing", "[pipeline][verdict]") {
  const ScratchDir dir;
  std::ofstream(dir / kLastTransferName)
      << R"({"transfer_id": "00ff", "source_database_id": "origin",
             "promoted": {"at": "2026-11-29T12:00:00Z"}})";
  LastTransfer record;
  REQUIRE(ReadLastTransfer(dir.path(), &record));
  REQUIRE_FALSE(record.is_copy());
  std::ofstream(dir / "sstferry.follow") << "a record";
  REQUIRE(ReadLastTransfer(dir.path(), &record));
  REQUIRE(record.is_copy());
}

TEST_CASE("Two copies with the id of their source are not source and copy",
          "[pipeline][verdict]") {
  const auto copy_at = [](const std::string& directory,
                          const std::string& source) {
    JudgedSide side = Copy();
    side.address.directory = directory;
    side.database_id = "origin";
    side.record->source = source;
    return side;
  };
  const JudgedSide one = copy_at("/one", "/db");
  const JudgedSide two = copy_at("/two", "/db");
  REQUIRE_FALSE(IsPulledFrom(one, two));
  const Verdict verdict = JudgeDifference(one, two, {});
  REQUIRE(verdict.state == EndState::kDifferent);
  REQUIRE(Contains(verdict.reason, "neither side has a record of a pull"));
  REQUIRE(verdict.next.empty());
  // The source itself has no record.
  REQUIRE(IsPulledFrom(two, Side("/db", "origin", 200)));
  // A copy of a copy names that copy.
  const JudgedSide third = copy_at("/three", "/one");
  REQUIRE(IsPulledFrom(third, one));
  REQUIRE_FALSE(IsPulledFrom(one, third));
  JudgedSide origin = one;
  origin.sequence = 150;
  REQUIRE(JudgeDifference(third, origin, {}).next ==
          "sstferry refresh /one /three --verify");
}

TEST_CASE("For a copy on another machine no command is advised",
          "[pipeline][verdict]") {
  JudgedSide copy = Copy();
  JudgedSide origin = Origin(200);
  REQUIRE_OK(ParseSourceAddress("sst://h/db", &origin.address));
  REQUIRE(JudgeDifference(origin, copy, {}).next ==
          "sstferry refresh sst://h:7420/db '/copy of it' "
          "--verify");
  REQUIRE_OK(ParseSourceAddress("sst://h/db", &copy.address));
  REQUIRE(JudgeDifference(origin, copy, {}).next.empty());
}

TEST_CASE("Families may be added and dropped only at the source",
          "[pipeline][verdict]") {
  struct Row {
    const char* what;
    std::vector<std::string> only_copy;
    std::vector<std::string> only_origin;
    EndState state;
  };
  const Row rows[] = {
      {"dropped at the source", {"a"}, {}, EndState::kChangedSince},
      {"made at the source", {}, {"b"}, EndState::kChangedSince},
      {"lost by the copy", {}, {"a"}, EndState::kDifferent},
      {"made at the copy", {"b"}, {}, EndState::kDifferent},
      {"both", {"a", "b"}, {}, EndState::kDifferent}};
  for (const Row& row : rows) {
    INFO(row.what);
    JudgedSide copy = Copy();
    JudgedSide origin = Origin(200);
    copy.families_only_here = row.only_copy;
    origin.families_only_here = row.only_origin;
    RequireBothWays(copy, origin, {}, row.state,
                    row.state == EndState::kDifferent
                        ? "no write there explains column family '"
                        : "it was written to since the pull");
    REQUIRE(JudgeDifference(origin, copy, {}).is_fault ==
            (row.state == EndState::kDifferent));
  }
  JudgedSide copy = Copy();
  copy.families_only_here = {std::string(4096, 'x')};
  REQUIRE(JudgeDifference(Origin(200), copy, {}).reason.size() < 500);
}

TEST_CASE("Data that a pull left out is not a change at the source",
          "[pipeline][verdict]") {
  JudgedSide copy = Copy();
  copy.record->asked.families = {"a", "it's"};
  copy.record->asked.begin = "0x00";
  Selection same;
  same.families = {"it's", "a"};
  same.interval.begin = std::string(1, '\0');
  Selection less = same;
  less.families = {"a"};
  less.interval.end = "z";
  for (const Selection& selection : {same, less}) {
    RequireBothWays(copy, Origin(200), selection, EndState::kChangedSince, "");
    REQUIRE(JudgeDifference(Origin(200), copy, selection).next ==
            "sstferry refresh /db '/copy of it' --cf a --cf 'it'\\''s' --begin "
            "0x00 --verify");
  }
  Selection all_families = same;
  all_families.families.clear();
  Selection more_families = same;
  more_families.families.push_back("b");
  Selection from_start = same;
  from_start.interval.begin.reset();
  Selection from_elsewhere = same;
  from_elsewhere.interval.begin = "b";
  for (const Selection& selection :
       {Selection(), all_families, more_families, from_start,
        from_elsewhere}) {
    RequireBothWays(copy, Origin(200), selection, EndState::kDifferent,
                    "and only with --cf a --cf 'it'\\''s' --begin 0x00, which "
                    "is less than was compared");
    REQUIRE_FALSE(JudgeDifference(Origin(150), copy, selection).is_fault);
  }
  REQUIRE(JudgeDifference(Origin(200), copy, {}).next ==
          "sstferry verify /db '/copy of it' --cf a --cf 'it'\\''s' --begin "
          "0x00");
  copy.record->asked.families.clear();
  copy.record->asked.begin.reset();
  copy.record->asked.end = "";
  REQUIRE(JudgeDifference(copy, Origin(200), {}).next ==
          "sstferry verify '/copy of it' /db --end ''");
}

void WriteRecord(const ScratchDir& dir, const std::string& text) {
  std::ofstream(dir / kLastTransferName, std::ios::trunc) << text;
}

TEST_CASE("A record of a transfer is read as the summary wrote it",
          "[pipeline][verdict]") {
  const ScratchDir dir;
  LastTransfer record;
  REQUIRE_FALSE(ReadLastTransfer(dir.path(), &record));
  Summary summary;
  summary.transfer_id = "00ff";
  summary.source = "/data/db";
  summary.finished_at = "2026-11-21T12:00:00Z";
  summary.snapshot_taken_seconds = 1795258800;
  summary.state = "complete";
  summary.source_database_id = "origin";
  summary.snapshot_sequence = UINT64_MAX;
  summary.column_families = {"default", "a"};
  summary.selection.families = {"a"};
  summary.selection.interval.begin = std::string("\xff");
  SelectionText holds;
  holds.families = {"a", "b"};
  LastTransfer before;
  before.snapshot_taken_at = "2026-11-20T11:00:00Z";
  WriteRecord(dir, LastTransferText(summary, holds, /*holds_more=*/false,
                                    before));
  REQUIRE(ReadLastTransfer(dir.path(), &record));
  LastTransfer expected;
  expected.transfer_id = "00ff";
  expected.source = "/data/db";
  expected.finished_at = "2026-11-21T12:00:00Z";
  expected.source_database_id = "origin";
  expected.snapshot_sequence = UINT64_MAX;
  expected.snapshot_taken_at = "2026-11-20T11:00:00Z";  // of the oldest part
  expected.column_families = {"default", "a"};
  expected.asked.families = {"a"};
  expected.asked.begin = "0xFF";
  expected.holds.families = {"a", "b"};
  REQUIRE(record == expected);
  // The source's clock was ahead: the oldest part is as of its transfer's end.
  before.finished_at = "2026-11-20T10:00:00.123Z";
  WriteRecord(dir, LastTransferText(summary, holds, /*holds_more=*/false,
                                    before));
  REQUIRE(ReadLastTransfer(dir.path(), &record));
  expected.snapshot_taken_at = "2026-11-20T10:00:00Z";
  REQUIRE(record == expected);
  WriteRecord(dir, LastTransferText(summary, holds, /*holds_more=*/true,
                                    LastTransfer()));
  REQUIRE(ReadLastTransfer(dir.path(), &record));
  expected.snapshot_taken_at = "";  // unknown
  expected.holds_more = true;
  REQUIRE(record == expected);
  expected.snapshot_taken_at = "2026-11-21T11:00:00Z";
  expected.holds = expected.asked;
  for (const bool holds_more : {true, false}) {
    WriteRecord(dir, LastTransferText(summary, TextOf(summary.selection),
                                      holds_more, before));
    REQUIRE(ReadLastTransfer(dir.path(), &record));
    expected.holds_more = holds_more;
    REQUIRE(record == expected);
  }
}

TEST_CASE("A record of a transfer may contain anything",
          "[pipeline][verdict]") {
  const ScratchDir dir;
  LastTransfer record;
  for (const char* text :
       {"", "{", "[]", "7", "null", "{}", "{\"transfer_id\": 7}",
        "{\"transfer_id\": \"\"}", "[{\"transfer_id\": \"00ff\"}]"}) {
    INFO(text);
    WriteRecord(dir, text);
    REQUIRE_FALSE(ReadLastTransfer(dir.path(), &record));
  }
  LastTransfer expected;
  expected.transfer_id = "00ff";
  for (const char* text :
       {"{\"transfer_id\": \"00ff\"}",
        "{\"transfer_id\": \"00ff\", \"source_database_id\": [1],"
        " \"snapshot_sequence\": -1, \"column_families\": {\"a\": 1},"
        " \"selection\": 3}",
        "{\"transfer_id\": \"00ff\", \"snapshot_sequence\": \"7\","
        " \"column_families\": [1, null],"
        " \"selection\": {\"column_families\": 1, \"begin\": 2}}",
        "{\"transfer_id\": \"00ff\", \"snapshot_sequence\": 1.5}"}) {
    INFO(text);
    WriteRecord(dir, text);
    REQUIRE(ReadLastTransfer(dir.path(), &record));
    REQUIRE(record == expected);
  }
}

}  // namespace
}  // namespace sstferry::verdict_test
