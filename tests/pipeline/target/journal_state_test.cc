// Parses intact, torn and damaged journals of unfinished pulls.
#include <rapidcheck.h>

#include <filesystem>
#include <functional>

#include "pipeline/pull/journal_file.h"
#include "pipeline/pull/journal_state.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::journal_state_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Returns a plan of one family.
Plan PlanOf(const TransferId& id, uint32_t parts) {
  Plan plan;
  plan.opened.transfer_id = id;
  plan.opened.family_count = 1;
  plan.families.resize(1);
  plan.families[0].description.name = "default";
  plan.parts.resize(parts);
  for (uint32_t i = 0; i < parts; ++i) {
    plan.parts[i].id = i;
    plan.parts[i].bytes = 1000;
  }
  return plan;
}

// A journal that is being built, and the end of each of its records.
struct Script {
  std::string bytes = std::string(kJournalMagic, kJournalMagicBytes);
  std::vector<uint64_t> ends{kJournalMagicBytes};

  template <typename Message>
  void Add(JournalRecordType type, const Message& message) {
    std::string payload;
    Encode(message, &payload);
    AppendJournalRecord(type, payload, bytes.size(), &bytes);
    ends.push_back(bytes.size());
  }
  void AddPlan(const Plan& plan) {
    REQUIRE_OK(EncodePlan(plan.opened, plan,
                          [this](FrameType type, const std::string& payload) {
                            Add(JournalRecordType::kPlan,
                                JournalPlan{type, 0, payload});
                            return Status::OK();
                          }));
  }
  void Head(uint32_t parts) {
    JournalTransfer head;
    head.transfer_id[0] = 7;
    head.mode = kIngestMode;
    Add(JournalRecordType::kTransfer, head);
    AddPlan(PlanOf(head.transfer_id, parts));
  }
  void Chunk(uint32_t part, uint32_t ordinal, uint64_t bytes_of_file = 300) {
    JournalChunk chunk;
    chunk.chunk.part_id = part;
    chunk.chunk.ordinal = ordinal;
    chunk.chunk.file_bytes = bytes_of_file;
    chunk.chunk.entries = 3;
    Add(JournalRecordType::kChunk, chunk);
  }
  void Done(uint32_t part, uint64_t chunks, uint64_t bytes_each = 300) {
    JournalPartDone done;
    done.part_id = part;
    done.totals = {chunks, 3 * chunks, 0, bytes_each * chunks};
    Add(JournalRecordType::kPartDone, done);
  }
  void Complete(uint64_t chunks) {
    JournalComplete complete;
    complete.totals = {chunks, 3 * chunks, 0, 300 * chunks};
    Add(JournalRecordType::kComplete, complete);
  }
};

// Returns a complete journal of three parts. The middle one has no entries.
Script Whole() {
  Script script;
  script.Head(3);
  script.Chunk(0, 0);
  script.Chunk(2, 0);
  script.Done(1, 0);
  script.Chunk(0, 1);
  script.Done(0, 2);
  script.Done(2, 1);
  script.Complete(3);
  return script;
}

TEST_CASE("A later transfer record replaces the command line, and nothing else",
          "[target][journal]") {
  Script script = GENERATE(true, false) ? Whole() : [] {
    Script begun;
    begun.Head(3);
    return begun;
  }();
  JournalTransfer head;
  head.transfer_id[0] = 7;
  head.mode = kIngestMode;
  head.command_line = "sstferry pull a b --lanes 2";
  script.Add(JournalRecordType::kTransfer, head);
  JournalState state;
  REQUIRE_OK(ParseJournalState(script.bytes, &state));
  REQUIRE(state.head == head);
  REQUIRE(state.bytes == script.bytes.size());
  head.source = "another";
  script.Add(JournalRecordType::kTransfer, head);
  REQUIRE(ParseJournalState(script.bytes, &state).IsCorruption());
}

TEST_CASE("A journal with two transfer records before its plan is damaged",
          "[target][journal]") {
  Script script;
  JournalTransfer head;
  head.mode = kIngestMode;
  script.Add(JournalRecordType::kTransfer, head);
  script.Add(JournalRecordType::kTransfer, head);
  script.AddPlan(PlanOf(head.transfer_id, 3));
  JournalState state;
  REQUIRE(ParseJournalState(script.bytes, &state).IsCorruption());
}

TEST_CASE("A journal's state says what was received of each part",
          "[target][journal]") {
  Script script;
  script.Head(3);
  script.Chunk(0, 0);
  script.Chunk(0, 1);
  script.Done(0, 2);
  script.Chunk(2, 0);
  JournalState state;
  REQUIRE_OK(ParseJournalState(script.bytes, &state));
  REQUIRE(state.plan.parts.size() == 3);
  REQUIRE(state.plan.families.size() == 1);
  REQUIRE(state.whole == std::vector<bool>{true, false, false});
  REQUIRE(state.ReceivedTotals(0) == Totals{2, 6, 0, 600});
  REQUIRE(state.ReceivedTotals() == Totals{3, 9, 0, 900});
  REQUIRE(state.plan.bytes() == 3000);
  REQUIRE(state.planned_bytes_done() == 1300);
  REQUIRE_FALSE(state.complete);
  REQUIRE(state.bytes == script.bytes.size());
}

TEST_CASE("A chunk that is recorded again replaces it and the chunks after it",
          "[target][journal]") {
  Script script;
  script.Head(1);
  script.Chunk(0, 0);
  script.Chunk(0, 1);
  script.Chunk(0, 2);
  script.Done(0, 3);
  script.Chunk(0, 1, 500);
  JournalState state;
  REQUIRE_OK(ParseJournalState(script.bytes, &state));
  REQUIRE(state.whole == std::vector<bool>{false});
  REQUIRE(state.ReceivedTotals(0) == Totals{2, 6, 0, 800});
}

TEST_CASE("A journal cut at any byte is read up to its last complete record",
          "[target][journal][crash]") {
  const Script script = Whole();
  const size_t head_records = 5;  // the head and four messages of the plan
  for (size_t bytes = 0; bytes <= script.bytes.size(); ++bytes) {
    INFO("cut to " << bytes);
    JournalState state;
    const Status status =
        ParseJournalState(Slice(script.bytes.data(), bytes), &state);
    size_t whole = 0;
    while (whole + 1 < script.ends.size() && script.ends[whole + 1] <= bytes) {
      ++whole;
    }
    if (whole < head_records) {
      REQUIRE(status.IsIncomplete());
      continue;
    }
    REQUIRE_OK(status);
    REQUIRE(state.bytes == script.ends[whole]);
    REQUIRE(state.torn == (script.ends[whole] != bytes));
    REQUIRE(state.complete == (bytes == script.bytes.size()));
    JournalState again;
    REQUIRE_OK(ParseJournalState(Slice(script.bytes.data(), state.bytes),
                                 &again));
    REQUIRE(again.ReceivedTotals() == state.ReceivedTotals());
    REQUIRE(again.whole == state.whole);
  }
}

TEST_CASE("A flipped bit is damage, or makes the last record a torn tail",
          "[target][journal][corruption]") {
  const Script script = Whole();
  for (size_t bit = 0; bit < script.bytes.size() * 8; ++bit) {
    std::string bad = script.bytes;
    bad[bit / 8] ^= static_cast<char>(1u << (bit % 8));
    JournalState state;
    const Status status = ParseJournalState(bad, &state);
    INFO("byte " << bit / 8 << ": " << status.ToString());
    if (bit / 8 < script.ends[script.ends.size() - 2]) {
      REQUIRE(status.IsCorruption());
    } else {
      REQUIRE_OK(status);
      REQUIRE(state.torn);
      REQUIRE_FALSE(state.complete);
    }
  }
}

TEST_CASE("Records that contradict each other are damage",
          "[target][journal][corruption]") {
  const std::vector<std::function<void(Script*)>> lies = {
      [](Script* s) { s->Chunk(0, 1); },             // without chunk 0
      [](Script* s) { s->Chunk(2, 0); },             // no such part
      [](Script* s) { s->Done(0, 1); },              // other totals
      [](Script* s) { s->Done(2, 0); },              // no such part
      [](Script* s) { s->Complete(0); },             // parts are missing
      [](Script* s) { s->Head(1); },                 // a second head
      [](Script* s) {                                // after Complete
        s->Done(0, 0);
        s->Done(1, 0);
        s->Complete(0);
        s->Chunk(0, 0);
      },
      [](Script* s) {                                // other totals
        s->Done(0, 0);
        s->Done(1, 0);
        s->Complete(1);
      },
  };
  for (size_t i = 0; i < lies.size(); ++i) {
    INFO("lie " << i);
    Script script;
    script.Head(2);
    lies[i](&script);
    JournalState state;
    REQUIRE(ParseJournalState(script.bytes, &state).IsCorruption());
  }
  Script headless;
  headless.Chunk(0, 0);
  JournalState state;
  REQUIRE(ParseJournalState(headless.bytes, &state).IsCorruption());
}

TEST_CASE("A journal is continued after its last complete record",
          "[target][journal][crash]") {
  ScratchDir dir;
  const auto files = rocksdb::FileSystem::Default();
  REQUIRE(rc::check("any tail", [&] {
    const Script script = Whole();
    const size_t bytes = *rc::gen::inRange<size_t>(script.ends[5],
                                                   script.bytes.size() + 1);
    const std::string path = dir / "journal";
    WriteBytes(path, script.bytes.substr(0, bytes) +
                         *rc::gen::element(std::string(), std::string(9, 'x')));
    JournalState before;
    RC_ASSERT(ReadJournalState(files.get(), path, &before).ok());
    std::unique_ptr<JournalFile> journal;
    RC_ASSERT(
        JournalFile::Reopen(files.get(), path, before.bytes, &journal).ok());
    const bool complete = before.complete;
    if (!complete) {
      JournalChunk chunk;
      chunk.chunk.part_id = 2;
      chunk.chunk.ordinal =
          static_cast<uint32_t>(before.chunks[2].size());
      RC_ASSERT(journal->Append(JournalRecordType::kChunk, chunk).ok());
    }
    RC_ASSERT(journal->Close().ok());
    JournalState after;
    RC_ASSERT(ReadJournalState(files.get(), path, &after).ok());
    RC_ASSERT_FALSE(after.torn);
    RC_ASSERT(after.chunks[2].size() ==
              before.chunks[2].size() + (complete ? 0 : 1));
    RC_ASSERT(after.chunks[0] == before.chunks[0]);
  }));
}

TEST_CASE("A missing journal is NotFound, one that is too long is Corruption",
          "[target][journal]") {
  ScratchDir dir;
  JournalState state;
  const auto files = rocksdb::FileSystem::Default();
  REQUIRE(ReadJournalState(files.get(), dir / "none", &state).IsNotFound());
  WriteBytes(dir / "long", "");
  std::filesystem::resize_file(dir / "long", kMaxJournalBytes + 1);
  REQUIRE(ReadJournalState(files.get(), dir / "long", &state).IsCorruption());
}

TEST_CASE("The journal of a refresh says what was ingested",
          "[target][journal]") {
  JournalState state;
  Script other;
  JournalTransfer head;
  head.mode = kInPlaceMode;
  other.Add(JournalRecordType::kTransfer, head);
  Plan plan = PlanOf(head.transfer_id, 2);
  plan.parts[1].need = PartNeed::kCompare;
  other.AddPlan(plan);
  other.Chunk(0, 0);
  other.Chunk(0, 1);
  other.Add(JournalRecordType::kIngested, JournalIngested{0, 1});
  other.Done(0, 2);
  other.Done(1, 0);
  other.Complete(2);
  other.Add(JournalRecordType::kIngested, JournalIngested{0, 0});
  REQUIRE_OK(ParseJournalState(other.bytes, &state));
  REQUIRE(state.whole == std::vector<bool>{true, true});
  REQUIRE(state.ingested[0] == std::vector<bool>{true, true});
  REQUIRE(state.complete);
  other.Add(JournalRecordType::kIngested, JournalIngested{0, 2});
  REQUIRE(ParseJournalState(other.bytes, &state).IsCorruption());
}

TEST_CASE("A chunk that is received again was not ingested",
          "[target][journal]") {
  Script script;
  script.Head(1);
  script.Chunk(0, 0);
  script.Chunk(0, 1);
  script.Add(JournalRecordType::kIngested, JournalIngested{0, 1});
  script.Chunk(0, 1);
  JournalState state;
  REQUIRE_OK(ParseJournalState(script.bytes, &state));
  REQUIRE(state.ingested[0] == std::vector<bool>{false, false});
}

}  // namespace
}  // namespace sstferry::journal_state_test
