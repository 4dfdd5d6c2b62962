// The private directory of a snapshot. It is next to the source, or under
// another parent on the same file system, or anywhere if the source's file
// system is read-only. Its name and its lock mark it as sstferry's. The name
// alone does not: whoever may write to the parent can rename another directory
// to it. Its owner process holds its lock and removes it.
//
//   NAME.sstferry-snapshot-PID-RANDOM/
//     lock    names the directory's inode; the owner holds its flock; another
//             process that gets the lock may remove the directory
//     held/   links that only keep the source's files alive
//     db/     the database that RocksDB opens
//     lease   the transfer for which the snapshot is retained, and how long
//     options the source's OPTIONS, to open db/ again
//     replay  facts about the replayed WALs
//     release asks the owner to release the snapshot; to refuse, the owner
//             removes this file
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/snapshot/lease_file.h"
#include "pipeline/snapshot/posix_files.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Owns one private directory.
//
// Ownership: the destructor removes the directory and its contents, except
//   after Keep(true). If a process crashes, RemoveLeftoverSnapshots() in a
//   later process removes its directories.
// Threads:   used by one thread.
class PrivateDir {
 public:
  // Checks that Create() could make a directory in `parent`; makes none.
  [[nodiscard]] static rocksdb::Status CheckParent(const std::string& parent);

  // Creates a private directory. `parent` is a real path.
  // kSourceError  the parent is not writable (the message says what to do).
  // kNoSpace      the parent's file system is full.
  [[nodiscard]] static rocksdb::Status Create(
      const std::string& parent, const std::string& name,
      std::unique_ptr<PrivateDir>* result);

  // Makes a directory next to the private directory `path`, with links to the
  // files in the db/ of `path`, so that the same snapshot gets a second lease.
  // This process opens `path` by `own_path`. `copies_wals`: copies the WALs
  // instead of linking them, because RocksDB may change them.
  [[nodiscard]] static rocksdb::Status CreateLinked(
      const std::string& path, const std::string& own_path,
      std::unique_ptr<PrivateDir>* result, bool copies_wals = false);

  // Takes over a directory that another process left behind with a lease.
  // Returns OK and null if another process holds its lock, if it belongs to
  // another user, or if sstferry did not make it.
  //   kSnapshotGone  its lock was not made for this directory
  [[nodiscard]] static rocksdb::Status Adopt(
      const std::string& path, std::unique_ptr<PrivateDir>* result);

  PrivateDir(const PrivateDir&) = delete;
  PrivateDir& operator=(const PrivateDir&) = delete;
  ~PrivateDir();

  // Returns the directory's original path. Any account that may write to the
  // parent can give this path to another directory.
  const std::string& path() const { return path_; }
  // Returns a path that leads to the directory as long as this object exists,
  // even after a rename.
  const std::string& own_path() const { return own_path_; }
  std::string pinned() const { return own_path_ + "/held"; }
  std::string db() const { return own_path_ + "/db"; }
  std::string options() const { return own_path_ + "/options"; }
  std::string replay() const { return own_path_ + "/replay"; }

  // Sets a function that receives the reason if the directory cannot be
  // removed. May be null.
  void set_log(std::function<void(const std::string&)> log) {
    log_ = std::move(log);
  }

  // Makes the directory outlive this object if `keep` is true, so that another
  // object can adopt it.
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
// Removes the request, after the owner refused or the asking process gave up.
void ForgetRelease(const std::string& path);

// Lists the private directories under `parent`, sorted by name.
[[nodiscard]] rocksdb::Status ListPrivateDirs(const std::string& parent,
                                              std::vector<std::string>* paths);

// Removes the private directories under `parent` whose owner process has ended
// and whose lease is missing or expired. The owner has ended if its lock is
// free, or if the directory has no lock, holds nothing and is older than a
// minute (the owner crashed while it made or removed the directory). Never
// changes directories of running owners or other users. If a lease's renewal
// time is in the future (the clock was set back), sets it to now. Ignores
// directories that disappear meanwhile. `log` (may be null) receives one line
// per removed directory.
//   kSourceError  a directory cannot be read or removed, or has a lock that
//                 Create() did not make for it; such a directory is not changed
[[nodiscard]] rocksdb::Status RemoveLeftoverSnapshots(
    const std::string& parent,
    const std::function<void(const std::string&)>& log,
    const LeaseRules& rules = {});
// Calls RemoveLeftoverSnapshots() before a new private directory is made in
// `parent`, which may be missing. Logs failures, because leftovers do not
// prevent a snapshot. `log` may be null.
void RemoveLeftovers(const std::string& parent, const LogFunction& log);

}  // namespace sstferry
