// Lets the threads of a model run one at a time, in a random order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

namespace sstferry {

// Lets one thread run at a time. Each Pause() may choose another one.
class Turns {
 public:
  using Random = std::mt19937_64;

  // `between` is called before each choice of the next thread.
  Turns(Random* random, std::function<void()> between)
      : random_(random), between_(std::move(between)) {}

  void Run(const std::vector<std::function<void(int)>>& clients) {
    waiting_.clear();
    for (size_t i = 0; i < clients.size(); ++i) {
      waiting_.push_back(std::make_unique<Turn>(0));
      alive_.push_back(static_cast<int>(i));
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < clients.size(); ++i) {
      threads.emplace_back([this, i, &clients] {
        const int self = static_cast<int>(i);
        waiting_[i]->acquire();
        clients[i](self);
        std::erase(alive_, self);
        Next(-1);
      });
    }
    Next(-1);
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  void Pause(int self) {
    // Mostly the same thread continues: errors need few but long sleeps.
    if ((*random_)() % 4 != 0) {
      return;
    }
    if (Next(self)) {
      waiting_[static_cast<size_t>(self)]->acquire();
    }
  }

 private:
  using Turn = std::binary_semaphore;

  // Gives the turn to a random thread. Returns false if `self` keeps it.
  bool Next(int self) {
    if (alive_.empty()) {
      return false;
    }
    between_();
    const int next = alive_[(*random_)() % alive_.size()];
    if (next == self) {
      return false;
    }
    waiting_[static_cast<size_t>(next)]->release();
    return true;
  }

  Random* const random_;
  const std::function<void()> between_;
  std::vector<std::unique_ptr<Turn>> waiting_;
  std::vector<int> alive_;
};

}  // namespace sstferry
