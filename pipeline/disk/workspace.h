// The directories of one pull. Only this code renames or deletes them.
//
//   TARGET_DIR.sstferry/        the workspace; removed after success
//     lock                      has an flock while a pull works here
//     journal                   the record of what is durable
//     staging/                  chunks that arrive
//     staging/earlier/          the db/ of a pull that started over, while
//                               files are taken from it
//     other/                    the application's files from the source, and
//                               sstferry.files (other_files.h)
//     db/                       the new database
//     exchange                  exists only around an exchange
//     probe/                    exists while two names are exchanged as a test
//     old/                      the old database while a swap deletes it
//   TARGET_DIR                  appears (or is exchanged) at the end, at once
//
// The workspace never deletes a directory that sstferry did not make: it
// identifies a workspace by the first line of its lock file, and a database
// that an exchange moved into db/ by the inode numbers recorded before the
// exchange.
#pragma once

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

// Name in staging/ of the db/ of a pull that started over.
inline constexpr char kEarlierName[] = "earlier";

// Treatment of a TARGET_DIR that is not empty.
enum class Existing {
  kRefuse,
  // Exchanges it, then deletes the old one. No process may have it open, and an
  // exchange between hooks that was interrupted is left to its swap.
  kRefresh,
  kSwap,  // exchanges it between two hooks, then deletes the old one, which a
          // process may have open until before_swap has run
};

// The part of db/ that Workspace::Clear() keeps.
enum class KeptOfDb {
  kNothing,
  kEarlier,  // it becomes earlier_dir()
  kAll,      // it stays in place
};

// Progress of an exchange. Each state is durable.
enum class SwapState {
  kNone,       // not begun, or complete
  kBegun,      // recorded: hooks may have run; db/ is the new database
  kExchanged,  // TARGET_DIR is the new database; after_swap must still run
  kRetired,    // only the deletion of old/ is missing
};

// Purpose of opening a workspace.
enum class WorkspaceUse {
  kPull,
  // Makes the checks of kPull, but takes no lock and changes nothing. Clear()
  // and Discard() do nothing, and no other function that writes may be called.
  kLook,
};

// The workspace of one TARGET_DIR, locked while the object exists.
// Errors:  carry the path; kNoSpace if the disk is full.
// Threads: one at a time.
class Workspace {
 public:
  // Returns the path of the workspace for a TARGET_DIR.
  static std::string DirOf(const std::string& target_dir);
  // Returns true if `dir` is a workspace.
  static bool IsOne(const std::string& dir);
  // Checks that this process may read `dir`, even if it belongs to another
  // user. OK if it does not exist.
  //   kRefused  it belongs to another user, and only that user may read it
  [[nodiscard]] static rocksdb::Status CheckMine(const std::string& dir);

  // Checks TARGET_DIR, takes the lock and finds the step at which an earlier
  // swap stopped. Keeps the leftovers of an unfinished pull until Clear().
  // Removes the workspace of a pull that filled TARGET_DIR and died before it
  // had removed the workspace itself; the refusal then says that TARGET_DIR is
  // complete.
  //   kRefused  TARGET_DIR is not empty (Existing::kRefuse), no directory or a
  //             mount point; its parent is missing or cannot be written; the
  //             workspace's directory was not made by sstferry; a swap was
  //             interrupted that only a swap may complete
  //   kBusy     another pull works here
  // `next`: the command to run instead if TARGET_DIR has a replica already or,
  // with kRefresh, cannot be exchanged.
  [[nodiscard]] static rocksdb::Status Open(
      const std::string& target_dir, Existing existing,
      std::shared_ptr<rocksdb::FileSystem> file_system, const LogFunction& log,
      std::unique_ptr<Workspace>* workspace,
      WorkspaceUse use = WorkspaceUse::kPull, const std::string& next = "");
  // Opens the workspace, without db/, of a database that stays in place.
  // `open_here`: this process has the database open already.
  //   kRefused  as above; TARGET_DIR does not exist or is empty
  //   kBusy     as above, or another process has the database open
  [[nodiscard]] static rocksdb::Status OpenBeside(
      const std::string& target_dir, bool open_here,
      std::shared_ptr<rocksdb::FileSystem> file_system, const LogFunction& log,
      std::unique_ptr<Workspace>* workspace,
      WorkspaceUse use = WorkspaceUse::kPull);
  ~Workspace();  // releases the lock; deletes nothing

  const std::string& target_dir() const { return target_dir_; }
  const std::string& dir() const { return dir_; }
  std::string db_dir() const { return dir_ + "/db"; }
  std::string staging_dir() const { return dir_ + "/staging"; }
  std::string earlier_dir() const { return dir_ + "/staging/" + kEarlierName; }
  std::string other_dir() const { return dir_ + "/other"; }
  std::string journal_path() const { return dir_ + "/journal"; }

  // Returns true if there is a journal, and db/ if one is needed: a pull may be
  // able to resume from them.
  bool has_unfinished() const;
  // Removes the leftovers of an unfinished pull, and creates the directories
  // again.
  [[nodiscard]] rocksdb::Status Clear(KeptOfDb kept = KeptOfDb::kNothing);
  // Empties staging/, and removes the record of an exchange, except if a hook
  // may have run for it.
  [[nodiscard]] rocksdb::Status ClearStaging();
  // Removes everything from staging/ except these names.
  [[nodiscard]] rocksdb::Status ClearStagingBut(
      const std::set<std::string>& names);
  // Creates other_dir() again, empty. Its name becomes durable with the
  // journal's next sync of the workspace.
  [[nodiscard]] rocksdb::Status ClearOther();
  // Writes a file into TARGET_DIR durably, by a rename from staging/.
  [[nodiscard]] rocksdb::Status PutIntoTarget(const std::string& name,
                                              const rocksdb::Slice& contents);
  // Removes what Clear() created, and the workspace. REQUIRES: both directories
  // are still unused.
  [[nodiscard]] rocksdb::Status Discard();
  // Removes the workspace. REQUIRES: there is no db/.
  [[nodiscard]] rocksdb::Status Remove() { return RemoveWorkspace(); }

  // Gives db/ the name TARGET_DIR, which is missing or empty, and removes the
  // workspace. If the workspace cannot be removed, *note gets a sentence, which
  // is no error. After an error TARGET_DIR is either unchanged or the new
  // database. REQUIRES: Existing::kRefuse; db/ is closed and everything in it
  // is synced.
  [[nodiscard]] rocksdb::Status Publish(std::string* note);

  // The others publish in steps (workspace_swap.cc). Open() finds the
  // step at which an earlier pull died.
  SwapState swap_state() const { return swap_state_; }
  // The transfer whose swap is in swap_state().
  const std::string& swap_transfer() const { return swap_.transfer_id; }
  // Records the exchange. Call it before before_swap. `adopts_old`: the old
  // database is kept whole, with all files of its application.
  [[nodiscard]] rocksdb::Status BeginSwap(const std::string& transfer_id,
                                          bool adopts_old = false);
  // Returns true if the recorded exchange keeps the old database whole.
  bool adopts_old() const { return swap_.adopts_old; }
  // Exchanges the names of db/ and TARGET_DIR; renames db/ if there is no
  // TARGET_DIR. Before that, db/ gets the application's files (other_files.h);
  // *kept gets the names of those that both sides have changed. REQUIRES:
  // kBegun, db/ closed and synced. After these errors nothing has changed:
  //   kBusy     a process has the database in TARGET_DIR open
  //   kRefused  TARGET_DIR is another directory than at BeginSwap(), or a file
  //             in it can be neither kept nor removed
  [[nodiscard]] rocksdb::Status Swap(std::vector<std::string>* kept);
  // Moves the old database out of db/. Call it after after_swap. If `keeps`, or
  // if it was adopted, the old database gets a name beside TARGET_DIR, *path
  // (old_directories.h), and no longer belongs to this workspace; otherwise it
  // becomes old/. *path stays empty if there was no old database.
  [[nodiscard]] rocksdb::Status RetireOld(bool keeps, std::string* path);
  // Deletes old/ at `bytes_per_sec`. OK if it does not exist.
  //   kCancelled  `stop` was raised first; the next Open() finds the rest
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
  // kRefused: TARGET_DIR cannot be renamed, or not exchanged.
  [[nodiscard]] rocksdb::Status CheckMovable();
  [[nodiscard]] rocksdb::Status CheckLayer() const;
  [[nodiscard]] rocksdb::Status CheckExchange();
  // Returns the command that needs no exchange; empty: none is known.
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
  bool beside_ = false;     // the database stays in place
  bool open_here_ = false;  // this process has that database open
  const std::shared_ptr<rocksdb::FileSystem> file_system_;
  const LogFunction log_;
  bool target_exists_ = false;  // TARGET_DIR is a non-empty directory
  int lock_fd_ = -1;
  SwapState swap_state_ = SwapState::kNone;
  ExchangeRecord swap_;  // the record that belongs to swap_state_
};

}  // namespace sstferry
