// The directory in which a snapshot lives: made beside (or under a parent on
// the same file system as) the source, named so that it can be recognised,
// locked as long as its owner lives, removed with it.
//
//   NAME.sstferry-snapshot-PID-RANDOM/
//     lock    flock held by the owner; whoever can take it may remove all
//     held/   hard links that only keep the source's files alive
//     db/     what RocksDB opens
//     lease   for how long it is kept for a target that is gone, and what for;
//             options: the source's OPTIONS, with which db/ is opened again;
//             replay: what its WALs held
//     release somebody asks the owner to let it go; removed where it does not
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/source/directory/lease_file.h"
#include "rocksdb/status.h"

namespace sstferry {

// Ownership: the directory and everything in it belong to this object and are
//   removed by its destructor, unless Keep() said otherwise; a process that
//   dies leaves them to RemoveLeftoverSnapshots().
// Threads:   none of its own; used by one thread.
class PrivateDir {
 public:
  // kSourceError  the parent cannot be written (the message says what to do).
  // kNoSpace      the parent's disk is full.
  [[nodiscard]] static rocksdb::Status Create(
      const std::string& parent, const std::string& name,
      std::unique_ptr<PrivateDir>* result);

  // One that a process left with a lease. OK and null: somebody else holds it,
  // or it is not this user's, or not what this tool leaves.
  [[nodiscard]] static rocksdb::Status Adopt(
      const std::string& path, std::unique_ptr<PrivateDir>* result);

  PrivateDir(const PrivateDir&) = delete;
  PrivateDir& operator=(const PrivateDir&) = delete;
  ~PrivateDir();

  const std::string& path() const { return path_; }
  std::string held() const { return path_ + "/held"; }
  std::string db() const { return path_ + "/db"; }

  std::string options() const { return path_ + "/options"; }
  std::string replay() const { return path_ + "/replay"; }

  // Whether the directory outlives this object, for another to adopt it.
  void Keep(bool keep) { keep_ = keep; }

  // Makes held/ and db/ empty again.
  [[nodiscard]] rocksdb::Status Clear();

 private:
  PrivateDir(std::string path, int lock_fd)
      : path_(std::move(path)), lock_fd_(lock_fd) {}

  const std::string path_;
  const int lock_fd_;
  std::atomic<bool> keep_{false};
};

// Asks the owner of a private directory to let it go.
[[nodiscard]] rocksdb::Status AskForRelease(const std::string& path);
bool IsReleaseAsked(const std::string& path);
// The answer no, or nobody asks any more.
void ForgetRelease(const std::string& path);

// The private directories under `parent`, by name.
[[nodiscard]] rocksdb::Status ListPrivateDirs(const std::string& parent,
                                              std::vector<std::string>* paths);

// Removes the private directories under `parent` whose owner is dead and that
// no lease keeps: their lock can be taken, or they have none and are older than
// a minute (their owner died while making or removing them). A live one, and
// one of another user, is never touched. A lease of the future, which a clock
// that was set back makes, is dated back to now.
// Directories that vanish meanwhile are no error. `log` (may be null) gets one
// line for each removed directory.
[[nodiscard]] rocksdb::Status RemoveLeftoverSnapshots(
    const std::string& parent,
    const std::function<void(const std::string&)>& log,
    const LeaseRules& rules = {});

}  // namespace sstferry
