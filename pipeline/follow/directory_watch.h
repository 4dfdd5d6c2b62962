// Waits until something is written to a database.
#pragma once

#include <chrono>
#include <string>

#include "sstferry/descriptor.h"

namespace sstferry {

// Uses inotify; where there is none, Wait() returns at once.
//
// Threads: one.
class DirectoryWatch {
 public:
  DirectoryWatch();
  // Watches a directory, too.
  void Add(const std::string& directory);
  // Blocks until something was written in one of them since the last call, at
  // most so long. Returns true if a file may have got a name there.
  bool Wait(std::chrono::milliseconds limit);
  bool is_watching() const { return watched_ > 0; }

 private:
  Descriptor inotify_;
  int watched_ = 0;
};

}  // namespace sstferry
