// Tells which records of its WALs RocksDB replayed. RocksDB returns OK when it
// drops some, depending on the recovery mode; what it says of that in its log
// is not relied on.
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

// Watches one recovery. Outlives the database that is opened with it.
//
// Threads: RocksDB calls it from the one that opens the database.
class ReplayWatch : public rocksdb::WalFilter {
 public:
  // `expected` is what the recovery has to replay. It may replay more after
  // these only if `may_follow`: a WAL ends inside a record. `stopped` (may be
  // null) is polled at each record, and ends the replay.
  ReplayWatch(const ReplayedRecords& expected, bool may_follow,
              std::function<bool()> stopped = nullptr);
  ~ReplayWatch() override;

  // Makes a database that is opened with these options be watched. It writes no
  // LOG file.
  void Watch(rocksdb::DBOptions* options);

  // Returns false if the recovery did not replay what it had to.
  bool IsComplete() const;
  uint64_t replayed() const { return seen_.count; }
  // First line that RocksDB logged as a warning since the recovery began; may
  // be empty. For messages.
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
  bool has_expected_ = false;  // seen_ was equal to expected_
};

}  // namespace sstferry
