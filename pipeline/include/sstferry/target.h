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

// A database that the application has opened for reading and writing. The
// application must not close it before Run() has returned.
struct OpenReplica {
  // May be a DBWithTTL or a TransactionDB. A refresh writes the source's values
  // directly into the database that a StackableDB wraps. So the iterators of
  // any other StackableDB must return the values of the wrapped database
  // unchanged.
  rocksdb::DB* db = nullptr;
  // Handles of the database's column families. Those of families that the
  // refresh does not cover may be missing.
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  // Receives the handles of the column families that Run() has created, before
  // Run() returns. Null: no handles are passed, and the application finds these
  // families when it opens the database again.
  std::function<void(rocksdb::ColumnFamilyHandle*)> on_created;
};

// A command on one or two sources: a pull, a refresh, a plan or a verify. Run()
// may be called once.
//
// Ownership: copies the options. Objects in the options' registry are borrowed
// and must exist until Run() has returned.
// Threads: Run() blocks, and joins the threads that it starts before it
// returns. All other members may be called from any thread.
// Results: *summary is complete even if Run() fails. summary->status equals the
// returned status.
class Operation {
 public:
  virtual ~Operation() = default;
  [[nodiscard]] virtual rocksdb::Status Run(Summary* summary) = 0;
  // Makes Run() return kCancelled within five seconds.
  virtual void Cancel() = 0;
  // Replaces PullOptions::max_rate_bytes_per_sec, before or during Run(). The
  // new limit applies at once, also to lanes that wait for the old one. 0: no
  // limit. A verify and a plan ignore the limit.
  virtual void SetMaxRate(uint64_t bytes_per_sec) = 0;
  virtual Progress progress() const = 0;
};

// Finds the account under which root should run a pull into target_dir, or a
// promotion of it. Some directories on the path to target_dir may belong to an
// account other than root. This account could create links there, so the
// function returns it. Returns nullopt if there is no such account, if there
// are several (the command is then refused), or if this process does not run as
// root.
std::optional<uint32_t> AccountOfTarget(const std::string& target_dir);

// Makes a pull of options.source into options.target_dir.
//   OK           target_dir holds the complete snapshot, synced and closed
//   kRefused     target_dir is not empty (kPull) or is a mount point, or the
//                source has data that cannot be copied exactly
//   kBusy        a process uses the target, perhaps this one
//   others       see EndState; target_dir is unchanged
std::unique_ptr<Operation> MakePull(const PullOptions& options);

// Makes a refresh of an open database from options.source. The application may
// read and write the database meanwhile. Entries that the source does not have
// are removed from the refreshed column families, even if the application wrote
// them during the refresh. options.mode, target_dir and if_absent are not used.
// If options.drop_missing drops a column family, the application still owns the
// family's handle.
//   OK           the database has the contents of the snapshot
//   kRefused     the database was made from another or an unknown source and
//                options.adopt is not set, one side has a SingleDelete, or this
//                RocksDB version cannot refresh it safely
//   others       the database is unchanged
std::unique_ptr<Operation> MakeRefresh(const PullOptions& options,
                                       const OpenReplica& replica);

// Makes a plan of a pull. The plan runs the steps of MakePull(), up to the
// first file that the pull would create in or next to target_dir. It ends as
// the pull would have ended up to this step. The summary says what the pull
// would move, and why. With an empty target_dir, it plans a pull into a new
// database. For a server address without a database name, it lists the served
// databases.
//
// If the source cannot be reached, a plan does not retry. It writes only the
// source's private snapshot, takes no lock, and calls no hook. It only
// considers if a swap hook is set.
std::unique_ptr<Operation> MakePlan(const PullOptions& options);

// Makes an operation that deletes the databases that swaps of
// options.target_dir have kept (see PullOptions::keeps_old), except the newest
// `keep`. It is a separate operation, so that a swap need not wait for the
// deletion. The rate is delete_rate_bytes_per_sec. Databases that no swap has
// moved there are not deleted. The summary's notes list the deleted databases.
std::unique_ptr<Operation> MakeOldRemoval(const PullOptions& options,
                                          uint32_t keep);

// Makes a comparison of two sides. If both have the same files and each side is
// compared completely, it compares the files byte by byte. Otherwise it
// compares entry by entry. Run() returns kDifferent if the sides differ.
std::unique_ptr<Operation> MakeVerify(const VerifyOptions& options);

}  // namespace sstferry
