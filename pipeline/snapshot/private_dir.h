// The private directory of a snapshot, beside the source (or under another
// parent on the same file system, or on any if the source's is read-only). Its
// name marks it as sstferry's; its owner holds its lock and removes it.
//
//   NAME.sstferry-snapshot-PID-RANDOM/
//     lock    flock held by the owner; a process that gets the lock may remove
//             the directory
//     held/   links that only keep the source's files alive
//     db/     the database that RocksDB opens
//     lease   the transfer that the snapshot is retained for, and how long
//     options the source's OPTIONS, for opening db/ again
//     replay  facts about the replayed WALs
//     release request to the owner to release the snapshot; the owner removes
//             it if it refuses
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/snapshot/lease_file.h"
#include "pipeline/snapshot/posix_files.h"
#include "rocksdb/status.h"

namespace sstferry {

// Owns one private directory.
//
// Ownership: the destructor removes the directory and its contents, except
// after Keep(true). If a process dies, RemoveLeftoverSnapshots() of a later one
// removes its directories.
// Threads:   used by one thread.
class PrivateDir {
 public:
  // Checks whether Create() may make directories in `parent`; makes none.
  [[nodiscard]] static rocksdb::Status CheckParent(const std::string& parent);

  // `parent` is a real path.
  // kSourceError  the parent is not writable (the message says what to do).
  // kNoSpace      the parent's file system is full.
  [[nodiscard]] static rocksdb::Status Create(
      const std::string& parent, const std::string& name,
      std::unique_ptr<PrivateDir>* result);

  // Makes a directory beside `path` (a private one as well, which this process
  // reaches by `own_path`) whose db/ has links to the files of its db/, for
  // another lease of the same snapshot. `copies_wals`: of WALs it has copies,
  // which RocksDB may change.
  [[nodiscard]] static rocksdb::Status CreateLinked(
      const std::string& path, const std::string& own_path,
      std::unique_ptr<PrivateDir>* result, bool copies_wals = false);

  // Takes over a directory that another process left with a lease. OK and null:
  // another process holds it, or it belongs to another user, or sstferry did
  // not make it.
  [[nodiscard]] static rocksdb::Status Adopt(
      const std::string& path, std::unique_ptr<PrivateDir>* result);

  PrivateDir(const PrivateDir&) = delete;
  PrivateDir& operator=(const PrivateDir&) = delete;
  ~PrivateDir();

  // Its name, which others may give to another directory meanwhile: whoever
  // owns the parent.
  const std::string& path() const { return path_; }
  // Leads to it as long as this object lives, whatever its name is.
  const std::string& own_path() const { return own_path_; }
  std::string pinned() const { return own_path_ + "/held"; }
  std::string db() const { return own_path_ + "/db"; }
  std::string options() const { return own_path_ + "/options"; }
  std::string replay() const { return own_path_ + "/replay"; }

  // Receives why the directory could not be removed. May be null.
  void set_log(std::function<void(const std::string&)> log) {
    log_ = std::move(log);
  }

  // True: the directory outlives this object, so that a later one can adopt it.
  void Keep(bool keep) { keep_ = keep; }

  // Empties held/ and db/.
  [[nodiscard]] rocksdb::Status Clear();

 private:
  PrivateDir(std::string path, Descriptor parent, Descriptor dir, int lock_fd)
      : path_(std::move(path)),
        parent_(std::move(parent)),
        dir_(std::move(dir)),
        own_path_(PathOfOpen(dir_)),
        lock_fd_(lock_fd) {}

  const std::string path_;
  const Descriptor parent_;
  const Descriptor dir_;
  const std::string own_path_;
  const int lock_fd_;
  std::atomic<bool> keep_{false};
  std::function<void(const std::string&)> log_;
};

// Asks the owner of a private directory to release its snapshot.
[[nodiscard]] rocksdb::Status AskForRelease(const std::string& path);
bool IsReleaseAsked(const std::string& path);
// Removes the request: the owner refuses, or the asking process has given up.
void ForgetRelease(const std::string& path);

// Lists the private directories under `parent`, sorted by name.
[[nodiscard]] rocksdb::Status ListPrivateDirs(const std::string& parent,
                                              std::vector<std::string>* paths);

// Removes the private directories under `parent` whose owner is dead and whose
// lease is missing or expired. An owner is dead if its lock is free, or if the
// directory has no lock and is older than a minute (the owner died while making
// or removing it). Directories of live owners and of other users are never
// changed. A lease renewed in the future (the clock was set back) is set back
// to now.
// Directories that disappear meanwhile are no error. `log` (may be null)
// receives one line per removed directory.
[[nodiscard]] rocksdb::Status RemoveLeftoverSnapshots(
    const std::string& parent,
    const std::function<void(const std::string&)>& log,
    const LeaseRules& rules = {});

}  // namespace sstferry
