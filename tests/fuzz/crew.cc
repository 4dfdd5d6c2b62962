#include "tests/fuzz/crew.h"

#include <algorithm>
#include <utility>

namespace sstferry::fuzz {

Crew::~Crew() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (Member& member : members_) {
    member.thread.join();
  }
}

void Crew::Do(std::function<void()> work) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    ++busy_;
    const auto idle =
        std::find_if(members_.begin(), members_.end(),
                     [](const Member& member) { return !member.work; });
    Member* const member =
        idle != members_.end() ? &*idle : &members_.emplace_back();
    member->work = std::move(work);
    if (!member->thread.joinable()) {
      member->thread = std::thread([this, member] { Work(member); });
    }
  }
  changed_.notify_all();
}

void Crew::Await() {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [this] { return busy_ == 0; });
}

void Crew::Work(Member* member) {
  std::unique_lock<std::mutex> lock(mu_);
  while (true) {
    changed_.wait(lock, [this, member] { return stopping_ || member->work; });
    if (!member->work) {
      return;
    }
    lock.unlock();
    member->work();
    lock.lock();
    member->work = nullptr;
    --busy_;
    changed_.notify_all();
  }
}

}  // namespace sstferry::fuzz
