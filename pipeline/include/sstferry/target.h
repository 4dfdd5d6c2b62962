// The target's public face: pull a database, plan a pull, verify two sides.
// What the command-line tool uses, and nothing more.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sstferry/options.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
}  // namespace rocksdb

namespace sstferry {

// A database that the application has open for reading and writing, and keeps
// open until Run() has returned.
struct OpenReplica {
  rocksdb::DB* db = nullptr;
  // Of all its column families but those that are none of the refresh's
  // business.
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  // Takes the handle of a column family that was created, when Run() ends.
  // Null: the application finds it when it opens the database next.
  std::function<void(rocksdb::ColumnFamilyHandle*)> on_created;
};

// One command against one or two sources. Make one, Run() it once.
//
// Ownership: options are copied; what the registry borrows must outlive Run().
// Threads:   Run() blocks its thread and starts lanes of its own, all joined
//   when it returns. All else may be called from any thread.
// Results:   *summary is complete whatever Run() returns, and
//   summary->status equals the returned status.
class Operation {
 public:
  virtual ~Operation() = default;
  [[nodiscard]] virtual rocksdb::Status Run(Summary* summary) = 0;
  // Run() returns kCancelled within five seconds.
  virtual void Cancel() = 0;
  // Instead of PullOptions::max_rate_bytes_per_sec, before or while it runs: at
  // once, and for what waits, too. 0: no limit. A verify or a plan has no rate
  // and ignores it.
  virtual void SetMaxRate(uint64_t bytes_per_sec) = 0;
  virtual Progress progress() const = 0;
};

// Pulls options.source into options.target_dir.
//   OK           target_dir holds the whole snapshot, synced and closed
//   kRefused     target_dir is not empty (without replace), is a mount point,
//                or the source holds what cannot be moved faithfully
//   kBusy        another process has the target
//   others       as their names say; target_dir is as it was before
std::unique_ptr<Operation> MakePull(const PullOptions& options);

// Makes an open database current from options.source, while it is read (and
// written: in refreshed column families what the source does not hold goes).
// options.mode, target_dir and replace do not apply; visibility is kAll or
// kChunk. A family that options.drop_missing drops is gone when Run() returns;
// its handle stays the application's.
//   OK           the database shows what the snapshot holds
//   kRefused     made from another source, or nobody says from which, without
//                options.adopt; RocksDB's version cannot do it safely
//   others       with kAll as it was before; with kChunk each key interval is
//                wholly old or wholly new, which last_transfer.json tells
std::unique_ptr<Operation> MakeRefresh(const PullOptions& options,
                                       const OpenReplica& replica);

// Reports what MakePull() would do and why; writes nothing but the source's
// private snapshot. With an address that has no name: what the server serves.
std::unique_ptr<Operation> MakePlan(const PullOptions& options);

// Compares two sides entry by entry. kDifferent when they differ.
std::unique_ptr<Operation> MakeVerify(const VerifyOptions& options);

}  // namespace sstferry
