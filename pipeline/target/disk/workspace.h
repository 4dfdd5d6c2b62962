// The directories of one pull, and the only code that renames or deletes them.
//
//   TARGET_DIR.sstferry/        the workspace; gone after success
//     lock                      flock held while a pull works here
//     journal                   what is durable
//     staging/                  chunks on their way in
//     db/                       the new database
//     exchange                  only around an exchange
//     old/                      what a refresh took away, while it is deleted
//   TARGET_DIR                  appears (or is exchanged) at the end, at once
//   TARGET_DIR.old-<transfer>   what --replace took away
//
// A directory that this tool did not make is never deleted: the workspace is
// recognised by its lock file's first line, and what an exchange brought into
// db/ by the inode numbers recorded before it.
#pragma once

#include <initializer_list>
#include <memory>
#include <set>
#include <string>

#include "pipeline/base/stop_signal.h"
#include "pipeline/target/disk/exchange_record.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// What becomes of a TARGET_DIR that is not empty.
enum class Existing {
  kRefuse,
  kReplace,  // exchanged, and kept beside
  kRefresh,  // exchanged between two hooks, then deleted; may be open till then
};

// How far the exchange of a refresh has got; each is durable.
enum class SwapState {
  kNone,       // not begun, or over
  kBegun,      // recorded: hooks may have run; db/ is the new database
  kExchanged,  // TARGET_DIR is the new database; what comes after is owed
  kRetired,    // nothing is owed but to delete old/
};

// Threads: one at a time.
class Workspace {
 public:
  // Where the workspace of a TARGET_DIR is, and whether a directory is one.
  static std::string DirOf(const std::string& target_dir);
  static bool IsOne(const std::string& dir);
  // kRefused where that cannot be told: `dir` is there, and another user's.
  [[nodiscard]] static rocksdb::Status CheckMine(const std::string& dir);

  // Checks TARGET_DIR, completes an exchange that was cut short and takes the
  // lock. What an unfinished pull left stays until Clear().
  // A workspace whose pull filled TARGET_DIR and was ended before it had
  // removed it is removed; the refusal then says that TARGET_DIR is complete.
  //   kRefused  not empty with Existing::kRefuse; not a directory; a mount
  //             point; the parent is missing or cannot be written; a
  //             workspace that is not ours
  //   kBusy     another pull works here, or a process has the database open
  //             that is to be replaced
  [[nodiscard]] static rocksdb::Status Open(
      const std::string& target_dir, Existing existing,
      std::shared_ptr<rocksdb::FileSystem> file_system, const LogFunction& log,
      std::unique_ptr<Workspace>* workspace);
  // Beside a database that stays where it is: there is no db/ in it.
  // `held_here`: this process has the database open already.
  //   kRefused  as above; TARGET_DIR is not there, or empty
  //   kBusy     as above
  [[nodiscard]] static rocksdb::Status OpenBeside(
      const std::string& target_dir, bool held_here,
      std::shared_ptr<rocksdb::FileSystem> file_system, const LogFunction& log,
      std::unique_ptr<Workspace>* workspace);
  ~Workspace();  // releases the lock; deletes nothing

  const std::string& target_dir() const { return target_dir_; }
  const std::string& dir() const { return dir_; }
  std::string db_dir() const { return dir_ + "/db"; }
  std::string staging_dir() const { return dir_ + "/staging"; }
  std::string journal_path() const { return dir_ + "/journal"; }

  // A journal is there, and db/ where there shall be one: a pull might go on
  // from them.
  bool has_unfinished() const;
  // Removes what an unfinished pull left, and makes the directories anew.
  [[nodiscard]] rocksdb::Status Clear();
  // Only staging/, and the record of an exchange that no hook knows of.
  [[nodiscard]] rocksdb::Status ClearStaging();
  // Of staging/, all but these names.
  [[nodiscard]] rocksdb::Status ClearStagingBut(
      const std::set<std::string>& names);
  // What Clear() made, and the workspace. REQUIRES: nothing was put into it.
  [[nodiscard]] rocksdb::Status Discard();
  // All of it, with db/ gone or never there.
  [[nodiscard]] rocksdb::Status Remove() { return RemoveWorkspace(); }

  // Makes db/ the TARGET_DIR and removes the workspace. REQUIRES: db/ is
  // closed and everything in it synced. *old_dir gets the place of the
  // replaced directory, empty when there was none, and *note a sentence when
  // the workspace could not be removed, which fails nothing. After an error
  // TARGET_DIR is as it was before, or already the new one.
  [[nodiscard]] rocksdb::Status Publish(const std::string& transfer_id,
                                        std::string* old_dir,
                                        std::string* note);

  // The same for Existing::kRefresh, in steps (workspace_swap.cc). Open()
  // finds out at which of them an earlier pull died.
  SwapState swap_state() const { return swap_state_; }
  // The transfer that swap_state() is of.
  const std::string& swap_transfer() const { return swap_.transfer_id; }
  // To be called before anything is done to the application.
  [[nodiscard]] rocksdb::Status BeginSwap(const std::string& transfer_id);
  // db/ and TARGET_DIR get each other's name, or db/ that one. kBusy when a
  // process has the database there open, kRefused when it is not what it was;
  // then nothing has changed. REQUIRES: kBegun, db/ closed and synced.
  [[nodiscard]] rocksdb::Status Swap();
  // When nothing is owed to the application any more.
  [[nodiscard]] rocksdb::Status RetireOld();
  // At so many bytes a second. kCancelled when `stop` came first; the next
  // Open() finds the rest. Nothing to do is OK.
  [[nodiscard]] rocksdb::Status RemoveOld(uint64_t bytes_per_sec,
                                          StopSignal* stop);
  [[nodiscard]] rocksdb::Status RemoveWorkspace();

 private:
  Workspace(std::string target_dir, Existing existing,
            std::shared_ptr<rocksdb::FileSystem> file_system, LogFunction log);
  [[nodiscard]] rocksdb::Status Open();
  [[nodiscard]] rocksdb::Status CheckTarget();
  [[nodiscard]] rocksdb::Status CheckNonEmpty();
  [[nodiscard]] rocksdb::Status RefuseNonEmpty();
  std::string FinishedTransfer() const;
  [[nodiscard]] rocksdb::Status Lock();
  [[nodiscard]] rocksdb::Status CreateDirectory(const std::string& path);
  [[nodiscard]] rocksdb::Status CreateLockFile(const std::string& path);
  [[nodiscard]] rocksdb::Status WriteLockMark(const std::string& path);
  [[nodiscard]] rocksdb::Status FinishExchange();
  [[nodiscard]] rocksdb::Status RemoveParts(
      std::initializer_list<const char*> names, void (*removed_one)());
  [[nodiscard]] rocksdb::Status Exchange(const std::string& transfer_id,
                                         std::string* old_dir);
  [[nodiscard]] rocksdb::Status RecordExchange(const std::string& transfer_id,
                                               ExchangeRecord* record);
  [[nodiscard]] rocksdb::Status FinishSwap(const ExchangeRecord& record,
                                           bool* finished);
  std::string old_dir() const { return dir_ + "/old"; }

  const std::string target_dir_;
  const std::string parent_;
  const std::string dir_;
  const Existing existing_;
  bool beside_ = false;     // of a database that stays where it is
  bool held_here_ = false;  // and that this process has open
  const std::shared_ptr<rocksdb::FileSystem> file_system_;
  const LogFunction log_;
  bool target_exists_ = false;  // as a non-empty directory
  int lock_fd_ = -1;
  SwapState swap_state_ = SwapState::kNone;
  ExchangeRecord swap_;  // that swap_state_ is of
};

}  // namespace sstferry
