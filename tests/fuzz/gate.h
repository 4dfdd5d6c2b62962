// Lets a script wait until the side under test can do nothing more without it.
// So an input always has the same effect, and no side waits for a frame that
// never arrives.
#pragma once

#include <condition_variable>
#include <mutex>

#include "format/frame.h"

namespace sstferry::fuzz {

// A source has finished a request when it has planned or ended. A target that
// sent a request waits for the last frame of the answer. Both answer pings in
// the thread that reads them.
//
// Threads: any; Await() from the reader of the script.
// Bounded: by the rules above. If one of them is wrong, the target hangs, which
// counts as a finding.
class Gate {
 public:
  enum class Tests { kSource, kTarget };

  // `side`: the side under test.
  explicit Gate(Tests side);

  void Said(FrameType type);   // the script sent a complete frame
  void Heard(FrameType type);  // the side under test sent a frame
  void SaidAll();              // the script has sent everything
  void Close();                // ends all waits

  // Blocks until the side under test waits for the script.
  void Await();
  // Blocks until the script waits for the side under test.
  void AwaitRelease();

 private:
  const Tests side_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool waits_;  // under mu_, and all below
  bool closed_ = false;
  bool released_ = false;
  FrameType answer_ = FrameType::kEnd;  // the frame that a target waits for
};

}  // namespace sstferry::fuzz
