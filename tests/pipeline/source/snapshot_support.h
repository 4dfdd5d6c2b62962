// What the snapshot tests share: temporary directories, a fingerprint of a
// directory, this program started again as another process.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/db.h"

namespace sstferry {

// A fresh directory under the system's temporary one, removed at the end.
class TempTree {
 public:
  TempTree();
  ~TempTree();
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

// Every name below `directory` with inode, size, modification time and
// contents in one text: equal texts mean that nobody wrote there.
std::string Fingerprint(const std::string& directory);

std::vector<std::string> NamesIn(const std::string& directory);
// Names ending in `suffix`, sorted.
std::vector<std::string> FilesWith(const std::string& directory,
                                   const std::string& suffix);
void FlipByte(const std::string& path, uint64_t offset, uint8_t bits);

// A database with its handles, closed at the end.
class TestDb {
 public:
  // Families are made where missing; "default" is always the first.
  TestDb(const rocksdb::Options& options, const std::string& path,
         const std::vector<rocksdb::ColumnFamilyDescriptor>& families);
  TestDb(const rocksdb::Options& options, const std::string& path)
      : TestDb(options, path,
               {{rocksdb::kDefaultColumnFamilyName, options}}) {}
  ~TestDb();
  rocksdb::DB* operator->() const { return db_.get(); }
  rocksdb::DB* get() const { return db_.get(); }
  rocksdb::ColumnFamilyHandle* family(size_t i) const { return handles_[i]; }
  const std::vector<rocksdb::ColumnFamilyHandle*>& families() const {
    return handles_;
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

using Entries = std::map<std::string, std::string>;
Entries ReadAll(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family);
Entries ReadAll(const Snapshot& snapshot, const std::string& family);

// One case of this program run in another process, which gets `environment`
// on top of this one's. The child says one line through TellParent().
class ChildCase {
 public:
  ChildCase(const std::string& test_name,
            const std::map<std::string, std::string>& environment);
  ~ChildCase();  // kills and reaps it if it still runs
  ChildCase(const ChildCase&) = delete;
  ChildCase& operator=(const ChildCase&) = delete;

  // Blocks until the child speaks; empty when it ended without a word.
  std::string Listen();
  void Kill();
  // Exit code; -1 when it died by a signal.
  int Wait();

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

// In the child.
std::string FromParent(const std::string& name);  // empty when not a child
void TellParent(const std::string& line);

}  // namespace sstferry
