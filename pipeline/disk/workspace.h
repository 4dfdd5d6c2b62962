// Manages the directories of one pull. No other code renames or deletes them.
//
//   TARGET_DIR.sstferry/        the workspace; removed after success
//     lock                      has an flock while a pull uses the workspace
//     journal                   records which received data is durable
//     staging/                  chunks that are being received
//     staging/earlier/          the db/ of a pull that started over, while
//                               its files are reused
//     other/                    the application's files from the source, and
//                               sstferry.files (other_files.h)
//     db/                       the new database
//     exchange                  the record of an exchange; exists only during
//                               the exchange
//     probe/                    exists only during a test: whether the file
//                               system can exchange two names, or copy
//                               TARGET_DIR's attributes
//     old/                      the old database while a swap deletes it
//   TARGET_DIR                  appears (or is exchanged) atomically at the end
//
// This class never deletes a directory that sstferry did not make. The first
// line of the lock file proves that a directory is a workspace. After an
// exchange, db/ may contain the old database; the record of the exchange proves
// this (FindExchanged() in exchange_record.h).
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pipeline/base/stop_signal.h"
#include "pipeline/disk/exchange_record.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Name of the directory in staging/ that has the earlier db/ of a pull that
// started over.
inline constexpr char kEarlierName[] = "earlier";

// How to treat a TARGET_DIR that is not empty. If an exchange with hooks was
// interrupted, only kSwap may complete it.
enum class Existing {
  kRefuse,
  // Exchanges TARGET_DIR with db/, then deletes the old database. No process
  // may have the old database open.
  kRefresh,
  // Exchanges TARGET_DIR with db/ between two hooks, then deletes the old
  // database. Processes must close the old database in the before_swap hook.
  kSwap,
};

// Specifies the files of db/ that Workspace::Clear() keeps.
enum class KeptOfDb {
  kNothing,
  kEarlier,  // db/ is renamed to earlier_dir()
  kAll,      // db/ is not changed
};

// Progress of an exchange. A crash does not undo a state that was reached.
enum class SwapState {
  kNone,       // no exchange, or a complete one
  // Recorded. db/ is the new database. The before_swap hook may have run.
  kBegun,
  // TARGET_DIR is the new database. The after_swap hook must still run.
  kExchanged,
  kRetired,    // Only old/ must still be deleted.
};

// Purpose of opening a workspace.
enum class WorkspaceUse {
  kPull,
  // Makes the same checks as kPull, but locks and changes nothing. Clear() and
  // Discard() then do nothing. The caller must not call any other function that
  // writes.
  kLook,
};

// The workspace of one TARGET_DIR. The object holds its lock.
//
// Errors: messages contain the path; kNoSpace if the disk is full.
// Threads: one at a time.
class Workspace {
 public:
  // Returns the path of the workspace for a TARGET_DIR.
  static std::string DirOf(const std::string& target_dir);
  // Returns true if `dir` is a workspace.
  static bool IsOne(const std::string& dir);
  // Checks that this process may read `dir`. Returns OK if `dir` does not
  // exist.
  //   kRefused  this process may not read it; the message names the user to
  //             whom it belongs
  [[nodiscard]] static rocksdb::Status CheckMine(const std::string& dir);

  // Checks TARGET_DIR, locks the workspace, and finds the step at which an
  // earlier swap stopped. The files of an unfinished pull stay until Clear().
  // An earlier pull may have filled TARGET_DIR and ended before it removed its
  // workspace. Then removes the workspace, and refuses with a message that
  // TARGET_DIR is complete. `next` is a command to suggest if TARGET_DIR
  // already has a replica or, with kRefresh, cannot be exchanged.
  //   kRefused  TARGET_DIR is not empty (Existing::kRefuse), not a directory,
  //             or a mount point; its parent is missing or cannot be written;
  //             sstferry did not make the workspace's directory; or a swap was
  //             interrupted that only a swap may complete
  //   kBusy     another pull uses the workspace
  [[nodiscard]] static rocksdb::Status Open(
      const std::string& target_dir, Existing existing,
      std::shared_ptr<rocksdb::FileSystem> file_system, const LogFunction& log,
      std::unique_ptr<Workspace>* workspace,
      WorkspaceUse use = WorkspaceUse::kPull, const std::string& next = "");
  // Opens the workspace for a database that is changed in place. Such a
  // workspace has no db/. `open_here` means that this process already has the
  // database open.
  //   kRefused  as for Open(), or TARGET_DIR does not exist or is empty
  //   kBusy     as for Open(), or another process has the database open
  [[nodiscard]] static rocksdb::Status OpenBeside(
      const std::string& target_dir, bool open_here,
      std::shared_ptr<rocksdb::FileSystem> file_system, const LogFunction& log,
      std::unique_ptr<Workspace>* workspace,
      WorkspaceUse use = WorkspaceUse::kPull);
  ~Workspace();  // releases the lock; deletes nothing

  const std::string& dir() const { return dir_; }
  std::string db_dir() const { return dir_ + "/db"; }
  std::string staging_dir() const { return dir_ + "/staging"; }
  std::string earlier_dir() const { return dir_ + "/staging/" + kEarlierName; }
  std::string other_dir() const { return dir_ + "/other"; }
  std::string journal_path() const { return dir_ + "/journal"; }

  // Checks, before data is sent, that the new directory can get TARGET_DIR's
  // attributes (attributes.h). Gives the workspace those attributes that new
  // files inherit. So files in the workspace inherit the same attributes as
  // files in TARGET_DIR.
  //   kRefused  an attribute, which the message names, cannot be kept
  [[nodiscard]] rocksdb::Status TryAttributes();

  // Returns true if a pull may be able to resume: there is a journal, and also
  // db/ unless the database is changed in place.
  bool has_unfinished() const;
  // Removes the files of an unfinished pull, except the files in db/ that
  // `kept` describes. Then creates the missing directories.
  [[nodiscard]] rocksdb::Status Clear(KeptOfDb kept = KeptOfDb::kNothing);
  // Empties staging/. Also removes the record of an exchange, unless a hook may
  // have run for it.
  [[nodiscard]] rocksdb::Status ClearStaging();
  // Removes everything from staging/ except the files in `names`.
  [[nodiscard]] rocksdb::Status ClearStagingBut(
      const std::set<std::string>& names);
  // Replaces other_dir() with an empty directory. The directory's name becomes
  // durable when the journal next syncs the workspace.
  [[nodiscard]] rocksdb::Status ClearOther();
  // Writes a file in staging/, and durably renames it into TARGET_DIR.
  [[nodiscard]] rocksdb::Status PutIntoTarget(const std::string& name,
                                              const rocksdb::Slice& contents);
  // Removes the workspace with the directories that Clear() created. REQUIRES:
  // these directories are empty.
  [[nodiscard]] rocksdb::Status Discard();
  // Removes the workspace. REQUIRES: db/ does not exist.
  [[nodiscard]] rocksdb::Status Remove() { return RemoveWorkspace(); }

  // Renames db/ to TARGET_DIR, which is missing or empty, and removes the
  // workspace. If the workspace cannot be removed, returns OK and sets *note to
  // a sentence about this. After an error, TARGET_DIR is either unchanged or
  // the new database. REQUIRES: Existing::kRefuse; db/ is closed, and
  // everything in it is synced.
  [[nodiscard]] rocksdb::Status Publish(std::string* note);

  // Sets *awaits to true if a swap has exchanged TARGET_DIR, but its after_swap
  // hook has failed or not run yet. Changes and locks nothing.
  [[nodiscard]] static rocksdb::Status FindAwaitedAfterSwap(
      const std::string& target_dir, bool* awaits);
  // Returns the state of the exchange. With Existing::kRefresh or kSwap, the
  // new database replaces TARGET_DIR in several steps (workspace_swap.cc).
  // Open() finds the step at which an earlier pull stopped.
  SwapState swap_state() const { return swap_state_; }
  // Returns the id of the transfer whose swap is in swap_state().
  const std::string& swap_transfer() const { return swap_.transfer_id; }
  // Records the exchange. The caller must call this before it runs before_swap.
  // `adopts_old` keeps the complete old database, with all files of the
  // application. `has_after_swap` means that a command of the operator must run
  // after the exchange. Then only a swap that has such a command may complete
  // the exchange.
  [[nodiscard]] rocksdb::Status BeginSwap(const std::string& transfer_id,
                                          bool adopts_old = false,
                                          bool has_after_swap = false);
  // Returns true if the recorded exchange keeps the complete old database.
  bool adopts_old() const { return swap_.adopts_old; }
  // Checks that a command may continue the exchange in swap_state().
  //   kRefused  the exchange's after_swap may still have to run, but the
  //             command has none (`has_after_swap` is false)
  [[nodiscard]] rocksdb::Status CheckMayComplete(bool has_after_swap) const;
  // Exchanges the names of db/ and TARGET_DIR. If TARGET_DIR is missing,
  // renames db/ instead. Before that, puts the application's files into db/
  // (other_files.h). *kept receives the names of files that both sides have
  // changed. Immediately before the exchange, locks the workspace's directory
  // (LockDirectory()) and calls `last_check`. REQUIRES: the state is kBegun;
  // db/ is closed and synced. If `last_check` fails, or for these errors, the
  // names are unchanged:
  //   kBusy     a process has the database in TARGET_DIR open, or another
  //             process has locked the workspace's directory
  //   kRefused  TARGET_DIR is not the same directory as at BeginSwap(), or a
  //             file in it can be neither kept nor removed
  [[nodiscard]] rocksdb::Status Swap(
      const std::function<rocksdb::Status()>& last_check,
      std::vector<std::string>* kept);
  // Moves the old database out of db/. The caller must call this after
  // after_swap. If `keeps` is true or the old database was adopted, renames it
  // to a name next to TARGET_DIR (old_directories.h) and sets *path to this
  // name. The directory then no longer belongs to the workspace. Otherwise
  // renames it to old/. If there was no old database, *path stays empty.
  //   kRefused            db/ is not what the record says; nothing was moved
  //   kInternal, kDenied  it is unknown which database is in db/
  [[nodiscard]] rocksdb::Status RetireOld(bool keeps, std::string* path);
  // Deletes old/ at `bytes_per_sec`. Returns OK if old/ does not exist.
  //   kCancelled  `stop` was raised first; the next Open() finds old/ again
  [[nodiscard]] rocksdb::Status RemoveOld(uint64_t bytes_per_sec,
                                          StopSignal* stop);
  [[nodiscard]] rocksdb::Status RemoveWorkspace();

 private:
  Workspace(std::string target_dir, Existing existing,
            std::shared_ptr<rocksdb::FileSystem> file_system, LogFunction log);
  [[nodiscard]] rocksdb::Status Open();
  [[nodiscard]] rocksdb::Status Look();
  [[nodiscard]] rocksdb::Status CheckName() const;
  [[nodiscard]] rocksdb::Status CheckTarget();
  [[nodiscard]] rocksdb::Status CheckNonEmpty();
  [[nodiscard]] rocksdb::Status RefuseNonEmpty();
  std::string FinishedTransfer() const;
  [[nodiscard]] rocksdb::Status Lock();
  // Checks that TARGET_DIR can be renamed and exchanged. Returns kRefused if
  // not.
  [[nodiscard]] rocksdb::Status CheckMovable();
  // Removes the workspace if this object has just created it. Returns `why`.
  rocksdb::Status GiveUp(const rocksdb::Status& why);
  [[nodiscard]] rocksdb::Status CheckLayer() const;
  [[nodiscard]] rocksdb::Status CheckExchange();
  // Returns a command that changes the database without an exchange. Empty: no
  // such command is known.
  std::string InPlace() const {
    return existing_ == Existing::kRefresh ? next_ : "";
  }
  [[nodiscard]] rocksdb::Status CreateDirectory(const std::string& path);
  [[nodiscard]] rocksdb::Status CreateLockFile(const std::string& path);
  [[nodiscard]] rocksdb::Status WriteLockMark(const std::string& path);
  [[nodiscard]] rocksdb::Status FindSwap();
  [[nodiscard]] rocksdb::Status LeftToSwap() const;
  [[nodiscard]] rocksdb::Status RemoveParts(
      std::initializer_list<const char*> names, void (*removed_one)());
  std::string old_dir() const { return dir_ + "/old"; }

  const std::string target_dir_;
  std::string next_;
  const std::string parent_;
  const std::string dir_;
  const Existing existing_;
  WorkspaceUse use_ = WorkspaceUse::kPull;
  bool beside_ = false;     // the database is changed in place
  bool open_here_ = false;  // true: this process has the database open
  const std::shared_ptr<rocksdb::FileSystem> file_system_;
  const LogFunction log_;
  bool target_exists_ = false;  // TARGET_DIR is a non-empty directory
  int lock_fd_ = -1;
  SwapState swap_state_ = SwapState::kNone;
  ExchangeRecord swap_;  // the record for swap_state_
};

}  // namespace sstferry
