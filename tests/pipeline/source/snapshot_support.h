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
#include "tests/support/test_db.h"

namespace sstferry {

// Every name below `directory` with inode, size, modification time and
// contents in one text: equal texts mean that nobody wrote there.
std::string Fingerprint(const std::string& directory);

std::vector<std::string> NamesIn(const std::string& directory);
// Names ending in `suffix`, sorted.
std::vector<std::string> FilesWith(const std::string& directory,
                                   const std::string& suffix);
void FlipByte(const std::string& path, uint64_t offset, uint8_t bits);

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
