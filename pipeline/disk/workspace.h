// The directories of one pull. No other code renames or deletes them.
//
//   TARGET_DIR.sstferry/        the workspace; removed after success
//     lock                      has an flock while a pull uses the workspace
//     journal                   the record of what is durable
//     staging/                  chunks that are being received
//     staging/earlier/          the db/ of a pull that started over, while
//                               its files are reused
//     other/                    the application's files from the source, and
//                               sstferry.files (other_files.h)
//     db/                       the new database
//     exchange                  exists only around an exchange
//     probe/                    exists during a test: of an exchange of two
//                               names, or of TARGET_DIR's attributes
//     old/                      the old database while a swap deletes it
//   TARGET_DIR                  appears (or is exchanged) atomically at the end
//
// The workspace never deletes a directory that sstferry did not make. It
// identifies a workspace by the first line of its lock file, and a database
// that an exchange moved into db/ by the record of the exchange
// (FindExchanged() in exchange_record.h).
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

// Name in staging/ for the db/ of a pull that started over.
inline constexpr char kEarlierName[] = "earlier";

// Treatment of a non-empty TARGET_DIR. If an exchange with hooks was
// interrupted, only kSwap may complete it.
enum class Existing {
  kRefuse,
  kRefresh,  // exchanges it, then deletes the old one. No process may have it
             // open
  kSwap,  // exchanges it between two hooks, then deletes the old one. A process
          // may have it open until before_swap has run
};

// The portion of db/ that Workspace::Clear() keeps.
enum class KeptOfDb {
  kNothing,
  kEarlier,  // it becomes earlier_dir()
  kAll,      // it stays in place
};

// Progress of an exchange. Each state is durable.
enum class SwapState {
  kNone,       // not begun, or complete
  kBegun,      // recorded; hooks may have run; db/ is the new database
  kExchanged,  // TARGET_DIR is the new database; after_swap must still run
  kRetired,    // only the deletion of old/ is missing
};

// Purpose of opening a workspace.
enum class WorkspaceUse {
  kPull,
  // Performs the checks of kPull, but takes no lock and changes nothing.
  // Clear() and Discard() do nothing, and no other function that writes may be
  // called.
  kLook,
};

// The workspace of one TARGET_DIR, locked while the object exists.
// Errors:  messages contain the path; kNoSpace if the disk is full.
// Threads: one at a time.
class Workspace {
 public:
  // Returns the path of the workspace for a TARGET_DIR.
  static std::string DirOf(const std::string& target_dir);
  // Returns true if `dir` is a workspace.
  static bool IsOne(const std::string& dir);
  // Checks that this process may read `dir`, even if it belongs to another
  // user. Returns OK if `dir` does not exist.
  //   kRefused  it belongs to another user, and only that user may read it
  [[nodiscard]] static rocksdb::Status CheckMine(const std::string& dir);

  // Checks TARGET_DIR, takes the lock and finds the step at which an earlier
  // swap stopped. Keeps the files of an unfinished pull until Clear(). If a
  // pull filled TARGET_DIR but ended before it removed its workspace, removes
  // the workspace; the refusal then says that TARGET_DIR is complete.
  //   kRefused  TARGET_DIR is not empty (Existing::kRefuse), not a directory,
  //             or a mount point; its parent is missing or cannot be written;
  //             sstferry did not make the workspace's directory; a swap was
  //             interrupted that only a swap may complete
  //   kBusy     another pull uses the workspace
  // `next`: the command to suggest if TARGET_DIR already has a replica or, with
  // kRefresh, cannot be exchanged.
  [[nodiscard]] static rocksdb::Status Open(
      const std::string& target_dir, Existing existing,
      std::shared_ptr<rocksdb::FileSystem> file_system, const LogFunction& log,
      std::unique_ptr<Workspace>* workspace,
      WorkspaceUse use = WorkspaceUse::kPull, const std::string& next = "");
  // Opens the workspace, without db/, of a database that is changed in place.
  // `open_here`: this process already has the database open.
  //   kRefused  as for Open(); TARGET_DIR does not exist or is empty
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

  // Checks, before data moves, that a directory that replaces TARGET_DIR can
  // get TARGET_DIR's attributes (attributes.h). Sets the inheritable attributes
  // on the workspace, so that new files in it inherit the same as in
  // TARGET_DIR.
  //   kRefused  an attribute, which the message names, cannot be kept
  [[nodiscard]] rocksdb::Status TryAttributes();

  // Returns true if there is a journal, and db/ if needed, so that a pull may
  // be able to resume.
  bool has_unfinished() const;
  // Removes the files of an unfinished pull, and creates empty directories.
  [[nodiscard]] rocksdb::Status Clear(KeptOfDb kept = KeptOfDb::kNothing);
  // Empties staging/. Also removes the record of an exchange, unless one of its
  // hooks may have run.
  [[nodiscard]] rocksdb::Status ClearStaging();
  // Removes everything from staging/ except these names.
  [[nodiscard]] rocksdb::Status ClearStagingBut(
      const std::set<std::string>& names);
  // Replaces other_dir() with an empty directory. Its name becomes durable when
  // the journal next syncs the workspace.
  [[nodiscard]] rocksdb::Status ClearOther();
  // Writes a file into TARGET_DIR durably, by renaming it from staging/.
  [[nodiscard]] rocksdb::Status PutIntoTarget(const std::string& name,
                                              const rocksdb::Slice& contents);
  // Removes what Clear() created, and the workspace. REQUIRES: nothing was
  // written to the directories.
  [[nodiscard]] rocksdb::Status Discard();
  // Removes the workspace. REQUIRES: there is no db/.
  [[nodiscard]] rocksdb::Status Remove() { return RemoveWorkspace(); }

  // Renames db/ to TARGET_DIR, which is missing or empty, and removes the
  // workspace. If the workspace cannot be removed, this is not an error: *note
  // receives a sentence. After an error TARGET_DIR is either unchanged or the
  // new database. REQUIRES: Existing::kRefuse; db/ is closed and everything in
  // it is synced.
  [[nodiscard]] rocksdb::Status Publish(std::string* note);

  // Finds out if a swap has exchanged TARGET_DIR, and its after_swap has failed
  // or not run yet. Changes nothing and takes no lock.
  [[nodiscard]] static rocksdb::Status FindAwaitedAfterSwap(
      const std::string& target_dir, bool* awaits);
  // Returns the state of the exchange. Existing::kRefresh and kSwap publish in
  // steps (workspace_swap.cc). Open() finds the step at which an earlier pull
  // ended.
  SwapState swap_state() const { return swap_state_; }
  // Returns the id of the transfer whose swap is in swap_state().
  const std::string& swap_transfer() const { return swap_.transfer_id; }
  // Records the exchange. Call this before before_swap. `adopts_old`: keeps the
  // complete old database, with all application files. `has_after_swap`: a
  // command of the operator must run after the exchange, so only a swap with
  // such a command completes it.
  [[nodiscard]] rocksdb::Status BeginSwap(const std::string& transfer_id,
                                          bool adopts_old = false,
                                          bool has_after_swap = false);
  // Returns true if the recorded exchange keeps the complete old database.
  bool adopts_old() const { return swap_.adopts_old; }
  // Checks that a command with or without after_swap may continue the exchange
  // in swap_state().
  //   kRefused  its after_swap may still have to run, and `has_after_swap` is
  //             false
  [[nodiscard]] rocksdb::Status CheckMayComplete(bool has_after_swap) const;
  // Exchanges the names of db/ and TARGET_DIR; renames db/ if TARGET_DIR is
  // missing. Before that, puts the application's files into db/
  // (other_files.h); *kept receives the names of files that both sides have
  // changed. Last of all, locks the workspace's directory (LockDirectory()),
  // calls `last_check`, and exchanges the names under the lock. REQUIRES:
  // kBegun, db/ closed and synced. After an error of `last_check` and these
  // errors nothing has changed:
  //   kBusy     a process has the database in TARGET_DIR open, or another
  //             process holds the lock of the workspace's directory
  //   kRefused  TARGET_DIR is not the same directory as at BeginSwap(), or a
  //             file in it can be neither kept nor removed
  [[nodiscard]] rocksdb::Status Swap(
      const std::function<rocksdb::Status()>& last_check,
      std::vector<std::string>* kept);
  // Moves the old database out of db/. Call this after after_swap. With
  // `keeps`, or if the old database was adopted, renames it to *path, next to
  // TARGET_DIR (old_directories.h), where it no longer belongs to the
  // workspace; otherwise renames it to old/. *path stays empty if there was no
  // old database.
  //   kRefused             db/ is not what the record says; nothing was moved
  //   kInternal, kDenied   it is unknown what db/ is
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
  // Checks that TARGET_DIR can be renamed and exchanged; kRefused otherwise.
  [[nodiscard]] rocksdb::Status CheckMovable();
  // Removes the workspace if this object has just made it, and returns `why`.
  rocksdb::Status GiveUp(const rocksdb::Status& why);
  [[nodiscard]] rocksdb::Status CheckLayer() const;
  [[nodiscard]] rocksdb::Status CheckExchange();
  // Returns a command that needs no exchange; empty: none is known.
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
  bool open_here_ = false;  // this process has the database open
  const std::shared_ptr<rocksdb::FileSystem> file_system_;
  const LogFunction log_;
  bool target_exists_ = false;  // TARGET_DIR is a non-empty directory
  int lock_fd_ = -1;
  SwapState swap_state_ = SwapState::kNone;
  ExchangeRecord swap_;  // the record for swap_state_
};

}  // namespace sstferry
