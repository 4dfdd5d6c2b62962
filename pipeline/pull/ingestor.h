// Ingests received chunks into the target database: records each one in the
// journal at once, then ingests all waiting chunks in one call.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/journal_file.h"
#include "rocksdb/db.h"

namespace sstferry {

// A column family that chunks are ingested into.
struct IngestFamily {
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  bool keeps_level0 = false;  // FIFO, or one level: files stay in level 0
};

// Settings of an Ingestor.
struct IngestRules {
  // True: chunks are placed above the data of a database that an application
  // reads and may write, and ingests are deferred until IngestDeferred().
  // False: the database is new, and chunks are placed in the last level.
  bool over_data = false;
  // If set, called before `bytes` are ingested. It may block; an error that it
  // returns ends the ingest.
  std::function<rocksdb::Status(uint64_t bytes)> admit;
  // For tests; if not set, the steady clock.
  std::function<std::chrono::steady_clock::time_point()> now;
};

// Ingests the chunks of all lanes, without a thread of its own. If no other
// lane ingests when a lane adds a chunk, that lane ingests all waiting chunks;
// the others continue to receive. An ingest call costs five syncs, regardless
// of the number of chunks. So a single chunk waits for a second one or for
// Flush(), unless calls are rare: over a slow link, a chunk of a new database
// is ingested as soon as it has arrived.
//
// Ownership: borrows db, handles and journal.
// Threads:   any.
// Crash:     a chunk's record is durable before the chunk is ingested.
//            RocksDB's MANIFEST says which recorded chunks are ingested.
class Ingestor : public ChunkStore {
 public:
  Ingestor(rocksdb::DB* db, std::vector<IngestFamily> families,
           JournalFile* journal, bool sync_journal, size_t max_waiting,
           const IngestRules& rules = {});

  // Blocks while max_waiting chunks are queued.
  [[nodiscard]] rocksdb::Status Add(StagedChunk chunk,
                                    StageClock* clock) override;
  [[nodiscard]] rocksdb::Status Flush(StageClock* clock) override;
  [[nodiscard]] rocksdb::Status EndPart(
      const JournalPartDone& done) override;
  // Ingests or defers these chunks.
  [[nodiscard]] rocksdb::Status AddRecorded(
      const std::vector<StagedChunk>& chunks, StageClock* clock) override;
  // Does not interrupt a running RocksDB call.
  void Stop() override;
  void FillSummary(Summary* summary) const override;

  // Ingests all deferred chunks in one call. Readers see all of them at once;
  // after a crash, the database has all of them or none.
  [[nodiscard]] rocksdb::Status IngestDeferred(StageClock* clock);

  // Returns the number of deferred chunks.
  size_t deferred() const;
  uint64_t ingest_calls() const;
  // Returns the durations, in microseconds, of the ingest calls over existing
  // data: "p50", "p99", "max"; empty if there were no calls. No call blocked a
  // writer for longer than "max".
  std::map<std::string, uint64_t> CallMicros() const;
  // Returns, by level, the number of chunks that were in that level directly
  // after the call that ingested them. Counts only calls over existing data,
  // and only chunks that no compaction rewrote before they were counted.
  std::map<int, uint64_t> IngestedLevels() const;

 private:
  // Ingests while at least `least` (1 or more) chunks wait.
  void IngestWaiting(size_t least, std::unique_lock<std::mutex>* lock,
                     StageClock* clock);
  // Checks that no two files of a family overlap or share a key. Otherwise
  // RocksDB would put all files of the call into level 0.
  [[nodiscard]] rocksdb::Status CheckDisjoint(
      const std::vector<StagedChunk>& batch) const;
  // Returns how many waiting chunks are enough for an ingest call now.
  // REQUIRES: mu_ is locked.
  size_t LeastTogether() const;
  std::chrono::steady_clock::time_point Now() const;
  // Returns the status for a caller. REQUIRES: mu_ is locked.
  [[nodiscard]] rocksdb::Status Verdict() const;
  [[nodiscard]] rocksdb::Status SyncRecords(
      const std::vector<StagedChunk>& batch, StageClock* clock);
  [[nodiscard]] rocksdb::Status Ingest(const std::vector<StagedChunk>& batch,
                                       StageClock* clock);
  [[nodiscard]] rocksdb::Status Admit(const std::vector<StagedChunk>& batch);
  std::vector<rocksdb::IngestExternalFileArg> ArgumentsOf(
      const std::vector<StagedChunk>& batch) const;
  // Records the chunks as ingested.
  [[nodiscard]] rocksdb::Status RecordIngested(
      const std::vector<StagedChunk>& batch);
  // Ingests into a database that an application writes. First tries to flush
  // without stalling writers; then lets RocksDB stall them.
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
  std::vector<StagedChunk> received_;     // deferred chunks
  uint64_t ingest_calls_ = 0;
  std::vector<uint64_t> call_micros_;
  std::map<int, uint64_t> ingested_levels_;
  // End of the last call; before the first call, the creation of this object.
  std::chrono::steady_clock::time_point last_end_;
  std::chrono::steady_clock::duration last_duration_; // duration of that call
  bool stopped_ = false;
  rocksdb::Status status_;
};

}  // namespace sstferry
