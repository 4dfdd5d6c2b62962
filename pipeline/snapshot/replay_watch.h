// Records which WAL entries RocksDB replayed. Depending on the recovery mode,
// RocksDB drops records but returns OK, and its log is not reliable about this.
#pragma once

#include <cstdarg>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "pipeline/snapshot/snapshot_replay.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/wal_filter.h"
#include "rocksdb/write_batch.h"

namespace sstferry {

// Watches one recovery. Must outlive the database that is opened with it.
//
// Threads: RocksDB calls it from the thread that opens the database.
class ReplayWatch : public rocksdb::WalFilter {
 public:
  // `expected` are the records that the recovery must replay. It may replay
  // more records after these only if `may_follow` is true, which is set if a
  // WAL ends inside a record. `stopped` (may be null) is polled at each record;
  // the replay ends when it returns true.
  ReplayWatch(const ReplayedRecords& expected, bool may_follow,
              std::function<bool()> stopped = nullptr);
  ~ReplayWatch() override;

  // Sets the options so that this object watches the recovery of the database
  // that is opened with them, and RocksDB writes no LOG file.
  void Watch(rocksdb::DBOptions* options);

  // Returns true if the recovery replayed exactly the expected records.
  bool IsComplete() const;
  uint64_t replayed() const { return seen_.count; }
  // Returns the first warning that RocksDB logged since the recovery began, for
  // messages; may be empty.
  std::string warning() const;

  const char* Name() const override { return "sstferry.ReplayWatch"; }
  void ColumnFamilyLogNumberMap(
      const std::map<uint32_t, uint64_t>& wals,
      const std::map<std::string, uint32_t>& families) override;
  WalProcessingOption LogRecordFound(unsigned long long wal,  // NOLINT: API
                                     const std::string& name,
                                     const rocksdb::WriteBatch& batch,
                                     rocksdb::WriteBatch* new_batch,
                                     bool* batch_changed) override;

 private:
  class Warnings;

  const ReplayedRecords expected_;
  const bool may_follow_;
  const std::function<bool()> stopped_;
  const std::shared_ptr<Warnings> warnings_;
  ReplayedRecords seen_;
  bool has_expected_ = false;  // seen_ equalled expected_ at some record
};

}  // namespace sstferry
