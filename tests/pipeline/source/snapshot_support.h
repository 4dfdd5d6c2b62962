// Helpers of the snapshot tests: names of files, a fingerprint of a directory,
// and test cases of this program that run in another process.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/db.h"
#include "tests/support/test_db.h"

namespace sstferry {

// Returns a text of all names below `directory` with inode, size, modification
// time and contents. Equal texts mean that nothing was written there.
std::string Fingerprint(const std::string& directory);

std::vector<std::string> NamesIn(const std::string& directory);
// Returns the names that end with `suffix`, sorted.
std::vector<std::string> FilesWith(const std::string& directory,
                                   const std::string& suffix);
void FlipByte(const std::string& path, uint64_t offset, uint8_t bits);

using Entries = std::map<std::string, std::string>;
Entries ReadAll(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family);
Entries ReadAll(const Snapshot& snapshot, const std::string& family);

// A test case of this program that runs in another process, with `environment`
// in addition to this process's. The child sends one line by TellParent().
class ChildCase {
 public:
  ChildCase(const std::string& test_name,
            const std::map<std::string, std::string>& environment);
  ~ChildCase();  // kills and reaps the child if it still runs
  ChildCase(const ChildCase&) = delete;
  ChildCase& operator=(const ChildCase&) = delete;

  // Blocks until the child sends its line. Returns "" if it ended without one.
  std::string Listen();
  void Kill();
  // Waits for the child's end. Returns its exit code, or -1 after a signal.
  int Wait();

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

// Called by the child. Returns a variable of `environment`; "" in the parent.
std::string FromParent(const std::string& name);
void TellParent(const std::string& line);

}  // namespace sstferry
