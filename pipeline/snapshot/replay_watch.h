// Finds out which WAL records RocksDB has replayed when it opened a database.
// In some recovery modes, RocksDB drops records and still returns OK. RocksDB's
// own log does not always mention this.
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

// Watches the recovery of one database. The object must exist as long as the
// database is open.
//
// Threads: RocksDB calls it from the thread that opens the database.
class ReplayWatch : public rocksdb::WalFilter {
 public:
  // `expected` has the records that the recovery must replay. If a WAL ends
  // inside a record, `may_follow` is true, and the recovery may replay more
  // records after these. `stopped` (may be null) is called for each record. If
  // it returns true, the replay ends.
  ReplayWatch(const ReplayedRecords& expected, bool may_follow,
              std::function<bool()> stopped = nullptr);
  ~ReplayWatch() override;

  // Changes the options of the database so that this object watches its
  // recovery, and RocksDB writes no LOG file.
  void Watch(rocksdb::DBOptions* options);

  // Returns true if the recovery has replayed the expected records, and no
  // other records unless they are allowed.
  bool IsComplete() const;
  uint64_t replayed() const { return seen_.count; }
  // Returns the first warning that RocksDB has logged since the recovery began,
  // for use in a message. May be empty.
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
  // True if seen_ was equal to expected_ after some record.
  bool has_expected_ = false;
};

}  // namespace sstferry
