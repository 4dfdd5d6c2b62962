// Lets a script wait until the side under test can do no more without it, so
// that an input does the same every time, and no gate waits for what will not
// come.
#pragma once

#include <condition_variable>
#include <mutex>

#include "format/frame.h"

namespace sstferry::fuzz {

// A source is done with what it was asked once it has planned or ended; a
// target that asked waits for the frame that answers it. Both answer pings on
// the thread that reads them.
//
// Threads: any; Await() from the reader of the script.
// Bounded:   by the rules above; one that is wrong hangs, which is a finding.
class Gate {
 public:
  enum class Tests { kSource, kTarget };

  // Of the side under test.
  explicit Gate(Tests side);

  void Said(FrameType type);   // the script, a whole frame
  void Heard(FrameType type);  // from the side under test
  void SaidAll();              // the script
  void Close();                // nobody waits any more

  // Until the side under test waits for the script.
  void Await();
  // Until the script waits for the side under test.
  void AwaitRelease();

 private:
  const Tests side_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool waits_;  // under mu_, and all below
  bool closed_ = false;
  bool released_ = false;
  FrameType answer_ = FrameType::kEnd;  // that a target waits for
};

}  // namespace sstferry::fuzz
