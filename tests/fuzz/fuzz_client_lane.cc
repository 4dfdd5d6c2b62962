// Input: scripts of a source for the connections of one lane, one after the
// other. The target requests three parts of two column families. A script has a
// handshake, then chunks, rebuilt and compressed, deltas, and totals. RocksDB
// ingests everything that passes the checks, and must not abort.
#include <filesystem>

#include "pipeline/pull/ingestor.h"
#include "pipeline/pull/journal_file.h"
#include "pipeline/pull/lane_client.h"
#include "pipeline/pull/source_session.h"
#include "pipeline/pull/target_db.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/tiny_database.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

Part MakePart(uint32_t id, uint32_t family) {
  Part part;
  part.id = id;
  part.family = family;
  part.bytes = 3000 - 1000 * id;  // requested in this order
  return part;
}

// The target of all inputs. It is replaced after each ingest.
struct World {
  ScratchDir scratch;
  std::shared_ptr<rocksdb::FileSystem> files = rocksdb::FileSystem::Default();
  std::vector<Part> parts{MakePart(0, 0), MakePart(1, 0), MakePart(2, 1)};
  std::unique_ptr<TargetDb> target;
  std::unique_ptr<JournalFile> journal;

  World() {
    parts[0].interval.end = "key2";
    parts[1].interval.begin = "key2";
    std::filesystem::create_directory(scratch / "staging");
    MakeTarget();
  }

  void MakeTarget() {
    target.reset();
    std::filesystem::remove_all(scratch / "db");
    std::filesystem::create_directory(scratch / "db");
    std::vector<BuiltFamily> families(2);
    for (BuiltFamily& family : families) {
      family.pull_options.disable_auto_compactions = true;
      family.pull_options.write_buffer_size = 64u << 10;
      family.format_version = 5;
    }
    families[1].pull_options.comparator = rocksdb::ReverseBytewiseComparator();
    fuzz::MustWork(TargetDb::Create(scratch / "db", {}, {"default", "reverse"},
                                    std::move(families), files, &target));
    fuzz::MustWork(
        JournalFile::Create(files.get(), scratch / "journal", &journal));
  }

  void ClearStaging() {
    for (const auto& entry :
         std::filesystem::directory_iterator(scratch / "staging")) {
      std::filesystem::remove(entry.path());
    }
  }
};

// Opens the connection of the next script.
Status OpenNext(Slice* script, fuzz::ScriptChunk* chunk,
                std::unique_ptr<Channel>* open, Channel** channel) {
  if (script->empty()) {
    return MakeStatus(EndState::kRefused, "no more connections");
  }
  *open = std::make_unique<Channel>(std::make_unique<fuzz::ScriptConnection>(
      fuzz::TakeConnection(script), nullptr, nullptr, chunk));
  Hello hello = MakeHello();
  hello.kind = ConnectionKind::kLane;
  HelloAck ack;
  *channel = open->get();
  (*channel)->AllowFlags(kFrameFlagZstd);
  return ClientHandshake(open->get(), hello,
                         WaitLimit::Within(std::chrono::seconds(1)), &ack);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  Slice script(reinterpret_cast<const char*>(data), size);
  const std::vector<PartStart> starts(world.parts.size());
  PartScheduler scheduler(world.parts, starts, 1);
  Ingestor ingestor(
      world.target->db(),
      {{world.target->handle(0), false}, {world.target->handle(1), false}},
      world.journal.get(), /*sync_journal=*/false, /*max_waiting=*/4);
  const StallGuard guard(std::chrono::seconds(5), [] { return uint64_t{0}; });
  LaneShared state;
  state.guard = &guard;
  state.parts = &world.parts;
  state.starts = starts;
  state.families = {
      {rocksdb::BytewiseComparator(), 5},
      {rocksdb::ReverseBytewiseComparator(), 5}};
  state.chunk_bytes = 1u << 20;
  state.staging_dir = world.scratch / "staging";
  state.file_system = world.files.get();
  state.sync_chunks = false;
  state.scheduler = &scheduler;
  state.store = &ingestor;
  state.family_totals.resize(2);
  std::unique_ptr<Channel> open;
  fuzz::ScriptChunk chunk;
  state.open_lane = [&](uint32_t, Channel** channel) {
    return OpenNext(&script, &chunk, &open, channel);
  };
  state.retry_for = std::chrono::hours(1);  // reconnects to each script
  LaneClient(&state, 0).Run().PermitUncheckedError();
  world.ClearStaging();
  if (ingestor.ingest_calls() > 0) {
    world.MakeTarget();
  }
  return 0;
}

}  // namespace sstferry
