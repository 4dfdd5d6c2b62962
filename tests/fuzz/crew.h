// Threads that are kept for the next input: making one costs more under
// sanitizers than most inputs do.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace sstferry::fuzz {

// Threads: Do() and Await() from one.
class Crew {
 public:
  ~Crew();
  // On a thread of its own, at once.
  void Do(std::function<void()> work);
  // Until all of it is done.
  void Await();

 private:
  struct Member {
    std::function<void()> work;  // null: idle
    std::thread thread;
  };
  void Work(Member* member);

  std::mutex mu_;
  std::condition_variable changed_;
  std::list<Member> members_;  // under mu_ but for the threads
  size_t busy_ = 0;            // under mu_
  bool stopping_ = false;      // under mu_
};

}  // namespace sstferry::fuzz
