// Public interface of the target: pulls a database, plans a pull, and verifies
// two sides. The command-line tool uses only this interface.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sstferry/options.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
}  // namespace rocksdb

namespace sstferry {

// A database that the application has opened for reading and writing. It must
// stay open until Run() has returned.
struct OpenReplica {
  // May be a DBWithTTL or a TransactionDB. A refresh writes the source's values
  // into the database below a StackableDB, so iterators of any other
  // StackableDB must return the values of that database unchanged.
  rocksdb::DB* db = nullptr;
  // Handles of all its column families. Families that the refresh does not
  // cover may be missing.
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  // Receives the handle of each column family that Run() created, at the end of
  // Run(). Null: the application finds the family when it next opens the
  // database.
  std::function<void(rocksdb::ColumnFamilyHandle*)> on_created;
};

// A command on one or two sources: a pull, a refresh, a plan or a verify. Run()
// may be called once.
//
// Ownership: copies the options; borrowed objects of the registry must outlive
// Run().
// Threads:   Run() blocks the calling thread, starts lane threads, and joins
// them before it returns. All other members may be called from any thread.
// Results:   *summary is complete even if Run() fails, and summary->status
// equals the returned status.
class Operation {
 public:
  virtual ~Operation() = default;
  [[nodiscard]] virtual rocksdb::Status Run(Summary* summary) = 0;
  // Makes Run() return kCancelled within five seconds.
  virtual void Cancel() = 0;
  // Replaces PullOptions::max_rate_bytes_per_sec, before or during Run(). Takes
  // effect at once, also for waiting lanes. 0: no limit. A verification
  // and a plan ignore it.
  virtual void SetMaxRate(uint64_t bytes_per_sec) = 0;
  virtual Progress progress() const = 0;
};

// Returns the account that root should use for a pull into target_dir, or for a
// promotion of it: the account that owns directories on the path to target_dir,
// and so could create links there. nullopt: no such account, several such
// accounts (then the command is refused), or this process does not run as root.
std::optional<uint32_t> AccountOfTarget(const std::string& target_dir);

// Pulls options.source into options.target_dir.
//   OK           target_dir holds the complete snapshot, synced and closed
//   kRefused     target_dir is not empty (kPull) or is a mount point, or the
//                source has data that cannot be copied exactly
//   kBusy        another process uses the target
//   others       see EndState; target_dir is unchanged
std::unique_ptr<Operation> MakePull(const PullOptions& options);

// Refreshes an open database from options.source while the application reads
// and writes it. Removes entries that the source does not have from the
// refreshed column families, including entries written meanwhile. options.mode,
// target_dir and if_absent do not apply. A family that options.drop_missing
// drops no longer exists when Run() returns; the application still owns its
// handle.
//   OK           the database has the contents of the snapshot
//   kRefused     the database was made from another or an unknown source and
//                options.adopt is not set, one side has a SingleDelete, or this
//                RocksDB version cannot refresh it safely
//   others       the database is unchanged
std::unique_ptr<Operation> MakeRefresh(const PullOptions& options,
                                       const OpenReplica& replica);

// Plans a pull: runs the steps of MakePull() up to the first file that the pull
// would create in or next to target_dir, and returns the pull's result up to
// that step. The summary says what the pull would move, and why. Does not retry
// if the source cannot be reached. Writes only the source's private snapshot,
// takes no lock and calls no hook; only the presence of a swap hook matters.
// With an empty target_dir, plans for a new database. For an address without a
// name, lists the databases that the server serves.
std::unique_ptr<Operation> MakePlan(const PullOptions& options);

// Deletes the databases that swaps of options.target_dir have kept
// (PullOptions::keeps_old), except the newest `keep`, at
// delete_rate_bytes_per_sec. A separate operation, so that the swap does not
// wait for the deletion. Deletes only databases that a swap moved there. The
// summary's notes list the deleted databases.
std::unique_ptr<Operation> MakeOldRemoval(const PullOptions& options,
                                          uint32_t keep);

// Compares two sides: byte by byte if both have the same files and each side is
// compared completely, otherwise entry by entry. Returns kDifferent if they
// differ.
std::unique_ptr<Operation> MakeVerify(const VerifyOptions& options);

}  // namespace sstferry
