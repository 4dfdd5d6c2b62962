// Lets a cancellation close a channel during its handshake. At that time the
// future owner of the channel cannot close it yet.
#pragma once

#include <mutex>
#include <set>

#include "pipeline/wire/channel.h"

namespace sstferry {

// A set of channels that are shaking hands.
//
// Ownership: borrows each channel from Add() to Remove().
// Threads:   any.
class ChannelSet {
 public:
  // Adds a channel. If CloseAll() was called before, closes the channel at
  // once.
  void Add(Channel* channel) {
    std::lock_guard<std::mutex> lock(mu_);
    channels_.insert(channel);
    if (closed_) {
      channel->Close();
    }
  }
  void Remove(Channel* channel) {
    std::lock_guard<std::mutex> lock(mu_);
    channels_.erase(channel);
  }
  void CloseAll() {
    std::lock_guard<std::mutex> lock(mu_);
    closed_ = true;
    for (Channel* channel : channels_) {
      channel->Close();
    }
  }

 private:
  std::mutex mu_;
  std::set<Channel*> channels_;  // under mu_
  bool closed_ = false;          // under mu_
};

// Calls ClientHandshake() with the time limit `limit`. If `set` is not null,
// set->CloseAll() ends the handshake early.
[[nodiscard]] inline rocksdb::Status ShakeHands(ChannelSet* set,
                                                Channel* channel,
                                                const Hello& hello,
                                                const WaitLimit& limit,
                                                HelloAck* ack) {
  if (set == nullptr) {
    return ClientHandshake(channel, hello, limit, ack);
  }
  set->Add(channel);
  const rocksdb::Status status = ClientHandshake(channel, hello, limit, ack);
  set->Remove(channel);
  return status;
}

}  // namespace sstferry
