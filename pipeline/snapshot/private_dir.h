// The directory in which sstferry keeps the files of one snapshot (a private
// directory). It is next to the source, or in another directory on the same
// file system. If the source's file system is read-only, it may be anywhere.
//
// Its owner is the process that holds its lock; the owner also removes it. A
// private directory has a typical name and a lock with the directory's inode
// number. The name alone proves nothing, because any account that can write to
// the parent can give this name to another directory.
//
//   NAME.sstferry-snapshot-PID-RANDOM/
//     lock    has the directory's inode number; the owner holds its flock; if
//             another process gets the lock, it may remove the directory
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
// Ownership: the destructor removes the directory with its contents, except
// after Keep(true). If the process crashes, RemoveLeftoverSnapshots() in a
// later process removes the directory.
// Threads: used by one thread.
class PrivateDir {
 public:
  // Checks that Create() can make a directory in `parent`, without making one.
  [[nodiscard]] static rocksdb::Status CheckParent(const std::string& parent);

  // Creates a private directory. `parent` is a path without symbolic links.
  //   kSourceError  the parent is not writable (the message says what to do).
  //   kNoSpace      the parent's file system is full.
  [[nodiscard]] static rocksdb::Status Create(
      const std::string& parent, const std::string& name,
      std::unique_ptr<PrivateDir>* result);

  // Makes a second private directory with the same snapshot as the directory
  // `path`, so that the snapshot can get a second lease. The new directory is
  // next to `path` and has links to the files in its db/. This process can
  // reach `path` by `own_path`. If `copies_wals` is true, copies the WALs
  // instead, because RocksDB may change them.
  [[nodiscard]] static rocksdb::Status CreateLinked(
      const std::string& path, const std::string& own_path,
      std::unique_ptr<PrivateDir>* result, bool copies_wals = false);

  // Takes over a directory that another process has left behind with a lease.
  // Sets *result to null and returns OK if another process holds the
  // directory's lock, if it belongs to another user, or if sstferry did not
  // make it.
  //   kSnapshotGone  its lock was not made for this directory
  [[nodiscard]] static rocksdb::Status Adopt(
      const std::string& path, std::unique_ptr<PrivateDir>* result);

  PrivateDir(const PrivateDir&) = delete;
  PrivateDir& operator=(const PrivateDir&) = delete;
  ~PrivateDir();

  // Returns the path at which the directory was created. Another account that
  // can write to the parent may have moved the directory and put another one
  // there.
  const std::string& path() const { return path_; }
  // Returns a path that leads to the directory while this object exists, even
  // if the directory is renamed.
  const std::string& own_path() const { return own_path_; }
  std::string pinned() const { return own_path_ + "/held"; }
  std::string db() const { return own_path_ + "/db"; }
  std::string options() const { return own_path_ + "/options"; }
  std::string replay() const { return own_path_ + "/replay"; }

  // Sets a function for messages. If the directory cannot be removed, the
  // function receives the reason. May be null.
  void set_log(std::function<void(const std::string&)> log) {
    log_ = std::move(log);
  }

  // If `keep` is true, the destructor does not remove the directory, so that
  // another object can take it over by Adopt().
  void Keep(bool keep) { keep_ = keep; }

  // Removes everything in held/ and db/.
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

// Asks the owner of a private directory to release its snapshot. The owner
// finds the request by IsReleaseAsked().
[[nodiscard]] rocksdb::Status AskForRelease(const std::string& path);
bool IsReleaseAsked(const std::string& path);
// Removes the request for a release, because the owner has refused it or the
// process that asked no longer waits.
void ForgetRelease(const std::string& path);

// Lists the private directories in `parent`, sorted by name.
[[nodiscard]] rocksdb::Status ListPrivateDirs(const std::string& parent,
                                              std::vector<std::string>* paths);

// Removes private directories in `parent` that no process needs: their owner
// has ended, and their lease is missing or expired. `log` (may be null)
// receives one line for each removed directory.
//
// The owner has ended if its lock is free. If a directory has no lock, is older
// than a minute and is empty, its owner has crashed while it made or removed
// the directory. Directories of running owners and of other users are never
// changed, and directories that disappear meanwhile are ignored. If the renewal
// time of a lease is in the future because the clock was set back, it is set to
// the present.
//   kSourceError  a directory cannot be read or removed, or has a lock that
//                 Create() did not make for it; such a directory is not changed
[[nodiscard]] rocksdb::Status RemoveLeftoverSnapshots(
    const std::string& parent,
    const std::function<void(const std::string&)>& log,
    const LeaseRules& rules = {});
// Calls RemoveLeftoverSnapshots() before a private directory is made in
// `parent`. `parent` may be missing. Failures are only logged, because old
// directories do not prevent a new snapshot. `log` may be null.
void RemoveLeftovers(const std::string& parent, const LogFunction& log);

}  // namespace sstferry
