// Records the units of a clone in the journal. Units are received directly into
// their files, so they need not be moved or ingested.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/clone_layout.h"
#include "pipeline/pull/journal_file.h"

namespace sstferry {

// Records units in the journal.
//
// Ownership: borrows its arguments.
// Threads:   any.
// Crash:     a unit's bytes and its name are durable before its record is; a
//            resumed pull compares the bytes with the record.
class UnitStore : public ChunkStore {
 public:
  // If `sync` is true, makes units, names and records durable.
  UnitStore(const CloneLayout* layout, rocksdb::FileSystem* file_system,
            JournalFile* journal, bool sync)
      : layout_(layout),
        file_system_(file_system),
        journal_(journal),
        sync_(sync) {}

  [[nodiscard]] rocksdb::Status Add(StagedChunk chunk,
                                    StageClock* clock) override;
  [[nodiscard]] rocksdb::Status Flush(StageClock* clock) override;
  [[nodiscard]] rocksdb::Status EndPart(
      const JournalPartDone& done) override;
  // Adds the units to the next sync. The process that recorded them may have
  // crashed before it synced them.
  [[nodiscard]] rocksdb::Status AddRecorded(
      const std::vector<StagedChunk>& chunks, StageClock* clock) override;
  void Stop() override;
  void FillSummary(Summary*) const override {}

 private:
  // REQUIRES: sync_mu_ is locked.
  [[nodiscard]] rocksdb::Status SyncUnits();

  const CloneLayout* const layout_;
  rocksdb::FileSystem* const file_system_;
  JournalFile* const journal_;
  const bool sync_;
  std::mutex sync_mu_;  // one sync at a time; taken before mu_
  std::mutex mu_;
  std::set<std::string> unsynced_files_;  // under mu_, and all below
  uint64_t unsynced_bytes_ = 0;
  uint32_t unsynced_ = 0;  // number of unsynced units
  bool has_unsynced_ = false;  // true: records are unsynced
  bool stopped_ = false;
  rocksdb::Status status_;
};

}  // namespace sstferry
