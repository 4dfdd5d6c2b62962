// Threads that are reused for later inputs, because under sanitizers, starting
// a thread costs more than most inputs do.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace sstferry::fuzz {

// Threads: Do() and Await() from one thread.
class Crew {
 public:
  ~Crew();
  // Starts the work at once in a thread of its own.
  void Do(std::function<void()> work);
  // Blocks until all work is done.
  void Await();

 private:
  struct Member {
    std::function<void()> work;  // null: idle
    std::thread thread;
  };
  void Work(Member* member);

  std::mutex mu_;
  std::condition_variable changed_;
  std::list<Member> members_;  // under mu_, except the threads
  size_t busy_ = 0;            // under mu_
  bool stopping_ = false;      // under mu_
};

}  // namespace sstferry::fuzz
