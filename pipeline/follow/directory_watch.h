// Waits for writes to the directories of a database.
#pragma once

#include <chrono>
#include <string>

#include "sstferry/descriptor.h"

namespace sstferry {

// Uses inotify. If inotify is not available, Wait() returns immediately.
//
// Threads: one.
class DirectoryWatch {
 public:
  DirectoryWatch();
  // Watches another directory.
  void Add(const std::string& directory);
  // Blocks until a file in one of the directories was written since the last
  // call, but at most for `limit`. Returns false only if it is certain that no
  // directory has a new name since then.
  bool Wait(std::chrono::milliseconds limit);
  bool is_watching() const { return watched_ > 0; }

 private:
  Descriptor inotify_;
  int watched_ = 0;
};

}  // namespace sstferry
