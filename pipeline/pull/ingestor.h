// Ingests received chunks into the target database. Records each chunk in the
// journal when it arrives, and later ingests all waiting chunks in one call.
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
  bool keeps_level0 = false;  // FIFO or only one level: files stay in level 0
};

// Settings of an Ingestor.
struct IngestRules {
  // True if an application reads the database and may write to it. Chunks are
  // then placed above its data, and ingested only by IngestDeferred(). False if
  // the database is new. Chunks are then placed in the last level.
  bool over_data = false;
  // If set, called before `bytes` are ingested. It may block; an error that it
  // returns ends the ingest.
  std::function<rocksdb::Status(uint64_t bytes)> admit;
  // For tests; if not set, the steady clock.
  std::function<std::chrono::steady_clock::time_point()> now;
};

// Ingests the chunks of all lanes, without a thread of its own. A lane that
// adds a chunk also ingests all waiting chunks, unless another lane is already
// ingesting. The other lanes continue to receive. An ingest call costs five
// syncs, regardless of the number of chunks. So a single chunk waits for a
// second one or for Flush(). If calls are rare, for example over a slow link, a
// single chunk of a new database is ingested at once.
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
  // Ingests these chunks, or defers them if IngestRules::over_data is set.
  [[nodiscard]] rocksdb::Status AddRecorded(
      const std::vector<StagedChunk>& chunks, StageClock* clock) override;
  // Stops storing. Does not interrupt a running RocksDB call.
  void Stop() override;
  void FillSummary(Summary* summary) const override;

  // Ingests all deferred chunks in one call. Readers see all of them at once;
  // after a crash, the database has all of them or none.
  [[nodiscard]] rocksdb::Status IngestDeferred(StageClock* clock);

  // Returns the number of deferred chunks.
  size_t deferred() const;
  uint64_t ingest_calls() const;
  // Returns the durations of the ingest calls over existing data as "p50",
  // "p99" and "max", in microseconds. The map is empty if there were no calls.
  // No call blocked a writer for longer than "max".
  std::map<std::string, uint64_t> CallMicros() const;
  // Returns, for each level, how many chunks were in it directly after they
  // were ingested. Counts only ingests over existing data. Does not count a
  // chunk if a compaction rewrote it earlier.
  std::map<int, uint64_t> IngestedLevels() const;

 private:
  // Ingests all waiting chunks, and repeats this while at least `least` chunks
  // wait. `least` is 1 or more.
  void IngestWaiting(size_t least, std::unique_lock<std::mutex>* lock,
                     StageClock* clock);
  // Checks that no two files of a family overlap or share a key. If two files
  // did, RocksDB would put all files of the same call into level 0.
  [[nodiscard]] rocksdb::Status CheckDisjoint(
      const std::vector<StagedChunk>& batch) const;
  // Returns the number of waiting chunks from which an ingest call is worth its
  // cost now. REQUIRES: mu_ is locked.
  size_t LeastTogether() const;
  std::chrono::steady_clock::time_point Now() const;
  // Returns the first failure, or kCancelled after Stop(). REQUIRES: mu_ is
  // locked.
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
  // Ingests into a database that an application writes to. The first try does
  // not stall the application's writes. If RocksDB refuses it, the second try
  // lets RocksDB stall them.
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
  // End of the previous call; before the first call, the time at which this
  // object was created.
  std::chrono::steady_clock::time_point last_end_;
  std::chrono::steady_clock::duration last_duration_; // duration of that call
  bool stopped_ = false;
  rocksdb::Status status_;
};

}  // namespace sstferry
