// Waits for writes to the directories of a database.
#pragma once

#include <chrono>
#include <string>

#include "sstferry/descriptor.h"

namespace sstferry {

// Waits by inotify. If inotify is not available, Wait() returns at once.
//
// Threads: one.
class DirectoryWatch {
 public:
  DirectoryWatch();
  // Watches another directory.
  void Add(const std::string& directory);
  // Blocks until a file has been written in one of the directories since the
  // last call, at most for `limit`. Returns true if a new name may have
  // appeared in a directory; always returns true after `limit`.
  bool Wait(std::chrono::milliseconds limit);
  bool is_watching() const { return watched_ > 0; }

 private:
  Descriptor inotify_;
  int watched_ = 0;
};

}  // namespace sstferry
