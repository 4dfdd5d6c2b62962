// The target's files on a failing disk: journal, staging files and whole pulls.
// Also counts the syncs on a healthy disk.
#include <algorithm>
#include <filesystem>

#include "pipeline/disk/deferred_sync.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/staging_file.h"
#include "pipeline/disk/synced_files.h"
#include "pipeline/pull/journal_file.h"
#include "tests/pipeline/target/resume_support.h"
#include "tests/support/catch.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/journal_records.h"
#include "tests/support/power_loss_file_system.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::disk_test {
namespace {

using rocksdb::Status;

TEST_CASE("JournalFile reports a failed write or sync forever",
          "[target][journal]") {
  ScratchDir dir;
  const bool at_sync = GENERATE(false, true);
  FaultyFileSystem disk;
  std::unique_ptr<JournalFile> journal;
  REQUIRE_OK(JournalFile::Create(&disk, dir / "journal", &journal));
  REQUIRE_OK(journal->Append(JournalRecordType::kComplete, JournalComplete()));
  disk.FailAt(at_sync ? FileStep::kSync : FileStep::kAppend, 1, DiskFull());
  Status first = at_sync ? journal->Sync()
                         : journal->Append(JournalRecordType::kComplete,
                                           JournalComplete());
  INFO(first.ToString());
  REQUIRE(EndStateOf(first) == EndState::kNoSpace);
  REQUIRE(MessageOf(first).find(dir / "journal") != std::string::npos);
  const std::string bytes = BytesOf(dir / "journal");
  REQUIRE(journal->Sync().ToString() == first.ToString());
  REQUIRE(journal->Append(JournalRecordType::kComplete, JournalComplete())
              .ToString() == first.ToString());
  REQUIRE(journal->Close().ToString() == first.ToString());
  REQUIRE(BytesOf(dir / "journal") == bytes);
}

TEST_CASE("A journal cut anywhere is read up to its last complete record",
          "[target][journal][crash]") {
  ScratchDir dir;
  rocksdb::FileSystem* disk = rocksdb::FileSystem::Default().get();
  std::unique_ptr<JournalFile> journal;
  REQUIRE_OK(JournalFile::Create(disk, dir / "journal", &journal));
  for (int i = 0; i < 3; ++i) {
    REQUIRE_OK(
        journal->Append(JournalRecordType::kComplete, JournalComplete()));
  }
  REQUIRE_OK(journal->Close());
  const std::string whole = BytesOf(dir / "journal");
  const size_t record = (whole.size() - kJournalMagicBytes) / 3;
  for (size_t cut = kJournalMagicBytes; cut <= whole.size(); ++cut) {
    const std::string journal_bytes = whole.substr(0, cut);
    size_t records = 0;
    uint64_t at = kJournalMagicBytes;
    JournalRecord found;
    Status status = ReadJournalRecord(journal_bytes, at, &found);
    while (status.ok()) {
      records++;
      at += found.total_bytes;
      status = ReadJournalRecord(journal_bytes, at, &found);
    }
    REQUIRE((status.IsIncomplete() || status.IsNotFound()));
    REQUIRE(status.IsNotFound() == (at == cut));
    INFO("cut at " << cut);
    REQUIRE(records == (cut - kJournalMagicBytes) / record);
  }
}

TEST_CASE("StagingFile names the file and the state of a failed step",
          "[target][staging]") {
  ScratchDir dir;
  struct Fault {
    FileStep step;
    rocksdb::IOStatus status;
    EndState state;
  };
  for (const Fault& fault :
       {Fault{FileStep::kCreate, DiskFull(), EndState::kNoSpace},
        Fault{FileStep::kAppend, DiskFull(), EndState::kNoSpace},
        Fault{FileStep::kSync, DiskFull(), EndState::kNoSpace},
        Fault{FileStep::kAppend, DiskBroken(), EndState::kInternal},
        Fault{FileStep::kSync, DiskBroken(), EndState::kInternal}}) {
    FaultyFileSystem disk;
    disk.FailAt(fault.step, 1, fault.status, "", /*for_good=*/true);
    StagingBuffer buffer;
    StagingFile file(&disk, {dir / "chunk", std::nullopt, false}, &buffer);
    Status status = file.Open();
    if (status.ok()) {
      char* room = nullptr;
      status = file.Room(4, &room);
      memcpy(room, "data", 4);
      file.Commit(4);
      const Status finished = file.Finish(true);
      status = status.ok() ? finished : status;
    }
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == fault.state);
    REQUIRE(MessageOf(status).find(dir / "chunk") != std::string::npos);
  }
}

TEST_CASE("WriteDurably leaves the old contents if a step fails",
          "[target][crash]") {
  ScratchDir dir;
  for (const FileStep step : {FileStep::kCreate, FileStep::kAppend,
                              FileStep::kSync, FileStep::kRename}) {
    WriteBytes(dir / "file", "old");
    FaultyFileSystem disk;
    disk.FailAt(step, 1, DiskBroken());
    REQUIRE_FALSE(WriteDurably(&disk, dir / "file", "new").ok());
    REQUIRE(BytesOf(dir / "file") == "old");
  }
  FaultyFileSystem disk;
  REQUIRE_OK(WriteDurably(&disk, dir / "file", "new"));
  REQUIRE(BytesOf(dir / "file") == "new");
  REQUIRE(disk.log() ==
          std::vector<std::string>{"create " + (dir / "file.tmp"),
                                   "sync " + (dir / "file.tmp"),
                                   "rename " + (dir / "file"),
                                   "syncdir " + dir.path()});
}

TEST_CASE("Pull onto a failing disk ends with its state, and renames nothing",
          "[target][nospace]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  struct Fault {
    FileStep step;
    const char* part;
    uint64_t nth;
  };
  for (const Fault& fault :
       {Fault{FileStep::kAppend, "/staging/", 3},
        Fault{FileStep::kSync, "/staging/", 2},
        Fault{FileStep::kAppend, "/journal", 4},
        Fault{FileStep::kSync, "/journal", 2},
        Fault{FileStep::kLink, "/db/", 2},
        Fault{FileStep::kAppend, "MANIFEST", 5},
        Fault{FileStep::kSync, "MANIFEST", 5},
        Fault{FileStep::kAppend, "/db/OPTIONS", 1},
        Fault{FileStep::kAppend, "/db/OPTIONS", 2},
        Fault{FileStep::kAppend, "last_transfer.json", 1}}) {
    for (const bool full : {true, false}) {
      auto disk = std::make_shared<FaultyFileSystem>();
      disk->FailAt(fault.step, fault.nth, full ? DiskFull() : DiskBroken(),
                   fault.part, /*for_good=*/true);
      PullOptions options = PullFrom(dir / "source", dir / "target");
      options.file_system = disk;
      const Summary summary = RunPull(options);
      INFO(fault.part << " " << fault.nth << ": "
                      << summary.status.ToString());
      REQUIRE(EndStateOf(summary.status) ==
              (full ? EndState::kNoSpace : EndState::kInternal));
      REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
      REQUIRE(NamesOf(dir.path()) ==
              std::vector<std::string>{"source", "target.sstferry"});
    }
  }
  REQUIRE_OK(RunPull(PullFrom(dir / "source", dir / "target")).status);
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source", "target"});
}

TEST_CASE("A chunk that could not be synced is not synced again, nor recorded",
          "[target][durability]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  auto disk = std::make_shared<FaultyFileSystem>();
  // The kernel reports a lost page only once: a second sync would succeed.
  disk->FailAt(FileStep::kSync, 3, DiskBroken(), "/staging/");
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.file_system = disk;
  options.lanes = 1;
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kInternal);
  REQUIRE(ExitCodeOf(EndState::kInternal) == 1);
  std::string failed;
  uint64_t syncs = 0;
  for (const std::string& line : disk->log()) {
    if (line.rfind("sync ", 0) == 0 &&
        line.find("/staging/") != std::string::npos) {
      failed = ++syncs == 3 ? line : failed;
    }
  }
  REQUIRE(syncs == 3);
  REQUIRE(MessageOf(summary.status).find(failed) != std::string::npos);
  REQUIRE(RecordedChunks(dir / "target.sstferry/journal") <= 2);
  REQUIRE_OK(RunPull(PullFrom(dir / "source", dir / "target")).status);
}

TEST_CASE("A chunk that cannot be read back is named, and never ingested",
          "[target]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  auto disk = std::make_shared<FaultyFileSystem>();
  disk->FailAt(FileStep::kRead, 1, DiskBroken(), "/staging/");
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.file_system = disk;
  options.lanes = 1;
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kInternal);
  REQUIRE(MessageOf(summary.status)
              .find(dir / "target.sstferry/staging/") != std::string::npos);
  REQUIRE(disk->count(FileStep::kLink) == 0);
  REQUIRE(RecordedChunks(dir / "target.sstferry/journal") == 0);
}

TEST_CASE("If the MANIFEST cannot be written, an ingest fails with that error",
          "[target]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  const bool once = GENERATE(true, false);
  auto disk = std::make_shared<FaultyFileSystem>();
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.file_system = disk;
  // The first four syncs are those of the empty database.
  disk->FailAt(FileStep::kSync, 5, DiskBroken(), "MANIFEST", !once);
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kInternal);
  REQUIRE(MessageOf(summary.status).find("ingest of ") != std::string::npos);
  REQUIRE(MessageOf(summary.status).find(DiskBroken().ToString()) !=
          std::string::npos);
  REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
}

TEST_CASE("A background error of the new database ends a pull and is named",
          "[target][nospace]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  const bool full = GENERATE(true, false);
  size_t named = 0;
  // It depends on RocksDB which of these failures is a background error.
  for (uint64_t nth = 5; nth <= 8; ++nth) {
    auto disk = std::make_shared<FaultyFileSystem>();
    PullOptions options = PullFrom(dir / "source", dir / "target");
    options.file_system = disk;
    disk->FailAt(FileStep::kSync, nth, full ? DiskFull() : DiskBroken(),
                 "MANIFEST", /*for_good=*/true);
    const Summary summary = RunPull(options);
    INFO(nth << ": " << summary.status.ToString());
    REQUIRE(EndStateOf(summary.status) ==
            (full ? EndState::kNoSpace : EndState::kInternal));
    REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
    if (MessageOf(summary.status)
            .find("background error of RocksDB in " +
                  (dir / "target.sstferry/db") +
                  " during a write of its MANIFEST: ") == 0) {
      REQUIRE(summary.error_where == "target database");
      ++named;
    }
    std::filesystem::remove_all(dir / "target.sstferry");
  }
  REQUIRE(named > 0);
}

uint64_t Syncs(const FaultyFileSystem& disk) {
  return disk.count(FileStep::kSync) + disk.count(FileStep::kSyncDir);
}

struct SyncedPull {
  uint64_t chunks = 0;
  uint64_t calls = 0;
  uint64_t syncs = 0;
};

// Pulls `entries` entries of 1000 bytes over one lane.
SyncedPull CountSyncs(size_t entries) {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = entries;
  MakeSampleDatabase(dir / "source", shape);
  auto disk = std::make_shared<FaultyFileSystem>();
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.file_system = disk;
  options.lanes = 1;
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  return {summary.chunks, summary.ingest_calls, Syncs(*disk)};
}

TEST_CASE("A pull syncs each chunk once, and five times for each ingest call",
          "[target][durability]") {
  // The number of chunks per call depends on the machine's speed.
  const SyncedPull few = CountSyncs(100);
  const SyncedPull many = CountSyncs(16000);
  const uint64_t chunks = many.chunks - few.chunks;
  const uint64_t calls = many.calls - few.calls;
  const uint64_t syncs = many.syncs - few.syncs;
  INFO(chunks << " chunks, " << calls << " calls, " << syncs << " syncs");
  REQUIRE(few.chunks == 1);
  REQUIRE(many.chunks >= 31);
  REQUIRE(many.calls <= many.chunks);
  // Per call: the directory staging/, the journal, the MANIFEST twice, and the
  // database's directory.
  REQUIRE(syncs <= chunks + 5 * calls);
  // At least: each call has records in the journal and in the MANIFEST.
  REQUIRE(syncs >= chunks + 2 * calls);
}

TEST_CASE("Pull without durability leaves syncing to the end",
          "[target][durability]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  auto disk = std::make_shared<FaultyFileSystem>();
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.file_system = disk;
  options.durability = Durability::kNone;
  REQUIRE_OK(RunPull(options).status);
  // SyncTree() is called twice.
  REQUIRE(disk->count(FileStep::kSyncDir, "/db") == 2);
  const std::vector<std::string> log = disk->log();
  const auto first_sync = std::find_if(
      log.begin(), log.end(), [&](const std::string& line) {
        return line.rfind("sync " + (dir / "target.sstferry/db"), 0) == 0;
      });
  for (auto line = log.begin(); line != first_sync; ++line) {
    INFO(*line);
    REQUIRE((line->rfind("sync ", 0) != 0 ||
             line->find("/journal") != std::string::npos ||
             line->find("/lock") != std::string::npos));
  }
  REQUIRE(std::none_of(first_sync, log.end(), [](const std::string& line) {
    return line.rfind("link ", 0) == 0;
  }));
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
}

TEST_CASE("The record of an exchange is synced even without durability",
          "[target][durability]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  auto disk = std::make_shared<FaultyFileSystem>();
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.file_system = disk;
  options.durability = Durability::kNone;
  options.mode = PullMode::kSwap;
  REQUIRE_OK(RunPull(options).status);
  REQUIRE(disk->count(FileStep::kSync, "/exchange") == 1);
}

TEST_CASE(
    "SyncedFiles syncs files that were written since their last sync, once",
    "[target][durability]") {
  ScratchDir dir;
  auto disk = std::make_shared<FaultyFileSystem>();
  const auto watched = MakeSyncedFilesFileSystem(disk);
  const rocksdb::IOOptions io;
  const auto write = [&](bool sync) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    REQUIRE_OK(watched->NewWritableFile(dir / "a", {}, &file, nullptr));
    REQUIRE_OK(file->Append("bytes", io, nullptr));
    if (sync) {
      REQUIRE_OK(file->Fsync(io, nullptr));
    }
    REQUIRE_OK(file->Close(io, nullptr));
  };
  const auto sync_again = [&](const char* name, bool append) {
    const uint64_t before = disk->count(FileStep::kSync);
    std::unique_ptr<rocksdb::FSWritableFile> file;
    REQUIRE_OK(watched->ReopenWritableFile(dir / name, {}, &file, nullptr));
    if (append) {
      REQUIRE_OK(file->Append("more", io, nullptr));
    }
    REQUIRE_OK(file->Sync(io, nullptr));
    REQUIRE_OK(file->Close(io, nullptr));
    return disk->count(FileStep::kSync) - before;
  };
  SECTION("a synced file, under a second name") {
    write(true);
    REQUIRE_OK(watched->LinkFile(dir / "a", dir / "b", io, nullptr));
    REQUIRE_OK(watched->DeleteFile(dir / "a", io, nullptr));
    REQUIRE(sync_again("b", false) == 0);
    REQUIRE(sync_again("b", true) == 1);
  }
  SECTION("a file that was never synced, under a second name") {
    write(false);
    REQUIRE_OK(watched->LinkFile(dir / "a", dir / "b", io, nullptr));
    REQUIRE(sync_again("b", false) == 1);
    REQUIRE(sync_again("b", false) == 0);
  }
  SECTION("a file whose sync failed") {
    disk->FailAt(FileStep::kSync, 1, DiskBroken());
    std::unique_ptr<rocksdb::FSWritableFile> file;
    REQUIRE_OK(watched->NewWritableFile(dir / "a", {}, &file, nullptr));
    REQUIRE_OK(file->Append("bytes", io, nullptr));
    REQUIRE_FALSE(file->Fsync(io, nullptr).ok());
    REQUIRE_OK(file->Close(io, nullptr));
    REQUIRE(sync_again("a", false) == 1);
  }
  SECTION("a name that was used again") {
    write(true);
    write(false);
    REQUIRE(sync_again("a", false) == 1);
  }
}

TEST_CASE("SyncBatch syncs files under their current names",
          "[target][durability]") {
  ScratchDir dir;
  std::filesystem::create_directory(dir / "disk");
  WriteBytes(dir / "disk/there", "old");
  const auto disk = std::make_shared<PowerLossFileSystem>(dir / "disk");
  SyncBatch batch(disk);
  REQUIRE_OK(WriteDurably(&batch, dir / "disk/written", "new"));
  REQUIRE_OK(WriteDurably(&batch, dir / "disk/there", "newer"));
  REQUIRE(disk->unsynced_files() == 2);
  const bool runs = GENERATE(true, false);
  if (runs) {
    REQUIRE_OK(batch.Run());
    REQUIRE(disk->unsynced_files() + disk->unsynced_names() == 0);
  }
  disk->LosePower(Survival::kNothing, 1);
  REQUIRE(std::filesystem::exists(dir / "disk/written") == runs);
  REQUIRE(BytesOf(dir / "disk/there") == (runs ? "newer" : "old"));
}

TEST_CASE("SyncAll syncs all given files and says which failed",
          "[target][durability]") {
  ScratchDir dir;
  auto disk = std::make_shared<FaultyFileSystem>();
  std::set<std::string> files;
  for (int i = 0; i < 20; ++i) {
    WriteBytes(dir / std::to_string(i), "bytes");
    files.insert(dir / std::to_string(i));
  }
  REQUIRE_OK(SyncAll(disk.get(), files, {dir.path()}));
  REQUIRE(disk->count(FileStep::kSync) == 20);
  REQUIRE(disk->count(FileStep::kSyncDir) == 1);
  files.insert(dir / "none");
  const rocksdb::Status status = SyncAll(disk.get(), files, {});
  REQUIRE(status.ToString().find("sync " + (dir / "none")) !=
          std::string::npos);
  // the others are synced nevertheless
  REQUIRE(disk->count(FileStep::kSync) == 40);
}

TEST_CASE("A resumed clone syncs units that were only recorded",
          "[target][durability][clone]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeAndHold(dir / "source"));
  std::filesystem::create_directory(dir / "disk");
  const auto disk = std::make_shared<PowerLossFileSystem>(dir / "disk");
  PullOptions options = PullFrom(server.address(), dir / "disk/target");
  options.method = PullMethod::kClone;
  options.file_system = disk;
  const Summary first = RunPull(options);
  REQUIRE_OK(first.status);
  options.target_dir = dir / "disk/resumed";
  // Cancel when most files are complete: units of later files sync their own.
  (void)PullAndCancel(options, "LaneClient:ChunkSynced",
                      static_cast<int>(first.chunks) - 1);
  const Summary last = RunPull(options);
  REQUIRE_OK(last.status);
  REQUIRE(last.chunks_resumed > 0);
  disk->LosePower(Survival::kNothing, 1);
  REQUIRE(EntriesOf(dir / "disk/resumed") == EntriesOf(dir / "source"));
}

TEST_CASE("A pull that is run again believes no bytes whose sync failed",
          "[target][durability][clone]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeAndHold(dir / "source"));
  std::filesystem::create_directory(dir / "disk");
  const auto disk = std::make_shared<PowerLossFileSystem>(dir / "disk");
  PullOptions options = PullFrom(server.address(), dir / "disk/target");
  options.method = GENERATE(PullMethod::kClone, PullMethod::kIngest);
  options.durability = GENERATE(Durability::kChunk, Durability::kNone);
  options.file_system = disk;
  // After a full disk, the source keeps the snapshot. After an error, it does
  // not: files of the first pull are used for another snapshot.
  const bool full = GENERATE(true, false);
  disk->FailSync(".sst", 1, full ? DiskFull() : DiskBroken());
  const Summary first = RunPull(options);
  INFO(first.status.ToString());
  REQUIRE(EndStateOf(first.status) ==
          (full ? EndState::kNoSpace : EndState::kInternal));
  REQUIRE(MessageOf(first.status).find("sync ") != std::string::npos);
  const Summary second = RunPull(options);
  REQUIRE_OK(second.status);
  disk->LosePower(Survival::kNothing, 1);
  REQUIRE(EntriesOf(dir / "disk/target") == EntriesOf(dir / "source"));
}

TEST_CASE("A refresh that is run again ingests no chunk whose sync failed",
          "[target][durability][refresh]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeAndHold(dir / "source"));
  std::filesystem::create_directory(dir / "disk");
  const auto disk = std::make_shared<PowerLossFileSystem>(dir / "disk");
  PullOptions options = PullFrom(server.address(), dir / "disk/target");
  options.file_system = disk;
  REQUIRE_OK(RunPull(options).status);
  {
    test::OpenDb source(dir / "source", test::OneFamily(test::Quiet()));
    source.Put("key", "changed");
    source.Flush();
  }
  options.mode = PullMode::kRefresh;
  options.durability = Durability::kNone;
  disk->FailSync(".sst", 1, DiskFull());
  const Summary first = RunPull(options);
  INFO(first.status.ToString());
  REQUIRE(MessageOf(first.status).find("ingest of ") != std::string::npos);
  REQUIRE(RecordedChunks(dir / "disk/target.sstferry/journal") > 0);
  const Summary second = RunPull(options);
  REQUIRE_OK(second.status);
  disk->LosePower(Survival::kNothing, 1);
  REQUIRE(EntriesOf(dir / "disk/target") == EntriesOf(dir / "source"));
}

}  // namespace
}  // namespace sstferry::disk_test
