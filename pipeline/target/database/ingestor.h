// Makes finished chunks part of the target database: recorded in the journal
// at once, then ingested, everything that waits in one call.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/target/database/chunk_store.h"
#include "pipeline/target/journal/journal_file.h"
#include "rocksdb/db.h"

namespace sstferry {

struct IngestFamily {
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  bool keeps_level0 = false;  // FIFO, or one level: not the last level's
};

struct IngestRules {
  // Chunks replace intervals of a database that is read, and perhaps written,
  // meanwhile. Without: of a new one, in which they get into the last level.
  bool replaces = false;
  // Nothing is ingested before IngestHeld().
  bool holds = false;
  // Asked before so many bytes are ingested, if set; may wait, may refuse.
  std::function<rocksdb::Status(uint64_t bytes)> admit;
  // Runs a call of RocksDB (and admit) elsewhere and waits for it, if set: for
  // lanes at a low priority, which writers must not wait for.
  std::function<rocksdb::Status(const std::function<rocksdb::Status()>& call)>
      make_call;
};

// There is no thread of its own: the lane that finds nobody ingesting does it
// for all, the others go on receiving. A chunk alone waits for a second one or
// for Flush(): a call costs four syncs, whatever it ingests.
//
// Ownership: borrows db, handles and journal.
// Threads:   any.
// Crash:     a chunk's record is durable before the chunk is ingested, and
//   RocksDB's MANIFEST says which of the recorded ones are.
class Ingestor : public ChunkStore {
 public:
  Ingestor(rocksdb::DB* db, std::vector<IngestFamily> families,
           JournalFile* journal, bool sync_journal, size_t max_waiting,
           const IngestRules& rules = {});

  // Waits while max_waiting chunks are queued.
  [[nodiscard]] rocksdb::Status Add(StagedChunk chunk,
                                    StageClock* clock) override;
  [[nodiscard]] rocksdb::Status Flush(StageClock* clock) override;
  [[nodiscard]] rocksdb::Status EndRange(
      const JournalRangeDone& done) override;
  // Ingests (or holds) them.
  [[nodiscard]] rocksdb::Status AddRecorded(
      const std::vector<StagedChunk>& chunks, StageClock* clock) override;
  // A call of RocksDB under way goes on.
  void Stop() override;
  void FillSummary(Summary* summary) const override;

  // Ingests everything that was held, in one call: it becomes visible at once,
  // and after a crash all of it or nothing is there.
  [[nodiscard]] rocksdb::Status IngestHeld(StageClock* clock);

  uint64_t ingest_calls() const;
  // How long a call that replaces lasted, which is an upper bound of how long
  // it let nobody write: "p50", "p99", "max"; empty without calls.
  std::map<std::string, uint64_t> CallMicros() const;
  // Level -> chunks that lay there right after the call that ingested them, of
  // calls that replace. One that a compaction was quicker to take is in none.
  std::map<int, uint64_t> IngestedLevels() const;

 private:
  // While at least `least` (1 or more) chunks wait.
  void IngestWaiting(size_t least, std::unique_lock<std::mutex>* lock,
                     StageClock* clock);
  // kInternal when two files of a family overlap or share a key: in one call
  // RocksDB would put all of them into level 0.
  [[nodiscard]] rocksdb::Status CheckDisjoint(
      const std::vector<StagedChunk>& batch) const;
  [[nodiscard]] rocksdb::Status Verdict() const;  // under mu_
  [[nodiscard]] rocksdb::Status SyncRecords(
      const std::vector<StagedChunk>& batch, StageClock* clock);
  [[nodiscard]] rocksdb::Status Ingest(const std::vector<StagedChunk>& batch,
                                       StageClock* clock);
  [[nodiscard]] rocksdb::Status Admit(const std::vector<StagedChunk>& batch);
  std::vector<rocksdb::IngestExternalFileArg> ArgumentsOf(
      const std::vector<StagedChunk>& batch) const;
  // Waits for flushes before it makes writers wait.
  [[nodiscard]] rocksdb::Status IngestOver(
      std::vector<rocksdb::IngestExternalFileArg> args);
  [[nodiscard]] rocksdb::Status FlushFamilies(
      const std::vector<rocksdb::IngestExternalFileArg>& args);
  void Hold(const std::vector<StagedChunk>& batch);
  void CountLevels(const std::vector<StagedChunk>& batch);

  rocksdb::DB* const db_;
  const std::vector<IngestFamily> families_;
  JournalFile* const journal_;
  const bool sync_journal_;
  const size_t max_waiting_;
  const IngestRules rules_;

  mutable std::mutex mu_;
  std::condition_variable changed_;
  bool ingesting_ = false;            // under mu_, and all below
  std::vector<StagedChunk> waiting_;
  std::vector<StagedChunk> held_;
  uint64_t ingest_calls_ = 0;
  std::vector<uint64_t> call_micros_;
  std::map<int, uint64_t> ingested_levels_;
  bool stopped_ = false;
  rocksdb::Status status_;
};

}  // namespace sstferry
