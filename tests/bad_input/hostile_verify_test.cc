// Tests a verify of two sources, one of which is hostile or becomes silent, and
// a pull whose source becomes silent during its verification.
#include <cstdio>
#include <filesystem>
#include <future>

#include "format/digest.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::hostile_verify_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

VerifyOptions VerifyOf(const FakeSource& left, const FakeSource& right) {
  VerifyOptions options;
  options.left = AddressAt(left.address());
  options.right = AddressAt(right.address());
  options.lanes = 2;
  options.timeouts.stall = milliseconds(60'000);  // honest sources pause, too
  return options;
}

Summary RunVerify(const VerifyOptions& options) {
  Summary summary;
  MakeVerify(options)->Run(&summary).PermitUncheckedError();
  return summary;
}

TEST_CASE("Verify refuses a side that sends other families than requested",
          "[bad_input][peer]") {
  SourceLies lies;
  const bool doubled = GENERATE(false, true);
  if (doubled) {
    lies.opened = [](Opened* opened) { opened->family_count = 2; };
    lies.families = [](std::vector<Family>* all) {
      all->push_back((*all)[0]);
      all->back().index = 1;
    };
  } else {
    lies.families = [](std::vector<Family>* all) {
      (*all)[0].description.name = "other";
    };
  }
  const std::unique_ptr<FakeSource> liar = LyingSource(lies);
  const std::unique_ptr<FakeSource> honest = LyingSource({});
  const bool left = GENERATE(true, false);
  const Summary summary = RunVerify(left ? VerifyOf(*liar, *honest)
                                         : VerifyOf(*honest, *liar));
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kCorrupt);
  const std::string side = left ? "CORRUPT: left: " : "CORRUPT: right: ";
  REQUIRE(summary.status.ToString().find(side) != std::string::npos);
}

// Answers a verify: digests that never match, then one page of entries.
void Answer(const EntriesReply& page, uint64_t entries, Channel* channel,
            const Frame& frame) {
  if (frame.type == FrameType::kDigestRequest) {
    DigestReply reply;
    reply.entries = entries;
    MustWork(channel->SendMessage(FrameType::kDigestReply, reply));
  } else if (frame.type == FrameType::kEntriesRequest) {
    // The verify may have ended.
    channel->SendMessage(FrameType::kEntriesReply, page).PermitUncheckedError();
  }
}

TEST_CASE("Verify refuses unordered keys, with a message of bounded length",
          "[bad_input][peer]") {
  EntriesReply page;
  page.entries.resize(2);
  page.entries[0].key = std::string(200'000, 'b');
  page.entries[1].key = std::string(200'000, 'a');
  page.complete = true;
  SourceLies lies;
  lies.other_request = [&page](Channel* channel, const Frame& frame) {
    Answer(page, 2, channel, frame);
  };
  EntriesReply nothing;
  nothing.complete = true;
  SourceLies honest;
  honest.other_request = [&nothing](Channel* channel, const Frame& frame) {
    Answer(nothing, 0, channel, frame);
  };
  const std::unique_ptr<FakeSource> left = LyingSource(lies);
  const std::unique_ptr<FakeSource> right = LyingSource(honest);
  const Summary summary = RunVerify(VerifyOf(*left, *right));
  const std::string message = summary.status.ToString();
  INFO(message.substr(0, 500));
  REQUIRE(EndStateOf(summary.status) == EndState::kCorrupt);
  REQUIRE(message.find("ascending keys, found 0x6161") != std::string::npos);
  REQUIRE(message.size() < 500);
}

// Answers every request for a digest like a database without entries.
void AnswerNothing(Channel* channel, const Frame& frame) {
  if (frame.type == FrameType::kDigestRequest) {
    DigestReply reply;
    reply.content = ContentDigest().Finish();
    MustWork(channel->SendMessage(FrameType::kDigestReply, reply));
  }
}

TEST_CASE("A verify may request a small side for the parts of a large one",
          "[bad_input][peer]") {
  constexpr uint32_t kParts = 3000;  // above a pull lane's limit
  SourceLies lies;
  lies.parts = [](std::vector<Part>* parts) {
    parts->resize(kParts);
    for (uint32_t i = 0; i < kParts; ++i) {
      char key[16];
      std::snprintf(key, sizeof(key), "k%08u", i);
      (*parts)[i].id = i;
      if (i > 0) {
        (*parts)[i].interval.begin = key;
        (*parts)[i - 1].interval.end = key;
      }
    }
  };
  lies.other_request = AnswerNothing;
  const std::unique_ptr<FakeSource> large = LyingSource(lies);
  ScratchDir dir;
  MakeSampleDatabase(dir / "small", {.entries = 0});
  VerifyOptions options = VerifyOf(*large, *large);
  options.right = {};
  options.right.directory = dir / "small";
  options.lanes = 1;
  const Summary summary = RunVerify(options);
  INFO(summary.status.ToString());
  REQUIRE(summary.status.ok());
  REQUIRE(summary.parts == kParts);
}

TEST_CASE("A verify of a snapshot that is not retained ends with SNAPSHOT_GONE",
          "[bad_input][end_state]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "left", {.entries = 1});
  MakeSampleDatabase(dir / "right", {.entries = 1});
  VerifyOptions options;
  options.left.directory = dir / "left";
  options.right.directory = dir / "right";
  REQUIRE(RunVerify(options).status.ok());
  options.left_snapshot.emplace().fill(0xab);
  const Summary summary = RunVerify(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kSnapshotGone);
  REQUIRE(summary.status.ToString().find("abababab") != std::string::npos);
}

TEST_CASE("A record counts only if it belongs to the pinned directory",
          "[bad_input][peer]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "copy", {.entries = 1});
  const auto write_record = [&dir](const std::string& id) {
    WriteBytes(dir / "copy/last_transfer.json",
               "{\"transfer_id\": \"" + id + "\", \"snapshot_sequence\": 1, "
               "\"source_database_id\": \"fake\"}");
  };
  const bool exchanged = GENERATE(false, true);
  write_record("first");
  SourceLies lies;
  int opens = 0;  // once for files, once for entries
  lies.opened = [&](Opened* opened) {
    opened->snapshot_sequence = 2;
    if (exchanged) {
      write_record("another, " + std::to_string(++opens));
    }
  };
  EntriesReply nothing;
  nothing.complete = true;
  lies.other_request = [&nothing](Channel* channel, const Frame& frame) {
    Answer(nothing, 0, channel, frame);
  };
  const std::unique_ptr<FakeSource> origin = LyingSource(lies);
  VerifyOptions options = VerifyOf(*origin, *origin);
  options.right = {};
  options.right.directory = dir / "copy";
  const Summary summary = RunVerify(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == (exchanged ? EndState::kDifferent
                                                   : EndState::kChangedSince));
  REQUIRE(summary.right.pulled_transfer_id == (exchanged ? "" : "first"));
}

// Notes that a request for a digest arrived, and never answers it.
class Silence {
 public:
  SourceLies lies() {
    SourceLies lies;
    lies.other_request = [this](Channel*, const Frame& frame) {
      if (frame.type == FrameType::kDigestRequest && !asked_.exchange(true)) {
        reached_.set_value();
      }
    };
    return lies;
  }
  void Await() {
    REQUIRE(reached_.get_future().wait_for(std::chrono::seconds(60)) ==
            std::future_status::ready);
  }

 private:
  std::atomic<bool> asked_{false};
  std::promise<void> reached_;
};

void RequireCancels(Operation* operation, Silence* silence, Summary* summary) {
  std::future<rocksdb::Status> run = std::async(
      std::launch::async, [&] { return operation->Run(summary); });
  silence->Await();
  const auto start = steady_clock::now();
  operation->Cancel();
  REQUIRE(EndStateOf(run.get()) == EndState::kCancelled);
  REQUIRE(steady_clock::now() - start < milliseconds(40'000));
}

TEST_CASE("A verify that waits for a digest can be cancelled",
          "[bad_input][end_state]") {
  Silence silence;
  const std::unique_ptr<FakeSource> silent = LyingSource(silence.lies());
  const std::unique_ptr<FakeSource> other = LyingSource({});
  const bool left = GENERATE(true, false);
  const std::unique_ptr<Operation> verify = MakeVerify(
      left ? VerifyOf(*silent, *other) : VerifyOf(*other, *silent));
  Summary summary;
  RequireCancels(verify.get(), &silence, &summary);
}

TEST_CASE("A pull can be cancelled while it is verified",
          "[bad_input][end_state]") {
  ScratchDir dir;
  Silence silence;
  const std::unique_ptr<FakeSource> source = LyingSource(silence.lies());
  PullOptions options = PullFrom("", dir / "target");
  options.source = AddressAt(source->address());
  options.verify = true;
  const std::unique_ptr<Operation> pull = MakePull(options);
  Summary summary;
  RequireCancels(pull.get(), &silence, &summary);
  REQUIRE(pull->progress().phase == "verify");
  REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
  REQUIRE(std::filesystem::exists(dir / "target.sstferry"));
}

}  // namespace
}  // namespace sstferry::hostile_verify_test
