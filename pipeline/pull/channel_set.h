// Channels that are not owned yet by whoever will close them: while a
// handshake waits for a peer, a cancellation must reach it.
#pragma once

#include <mutex>
#include <set>

#include "pipeline/wire/channel.h"

namespace sstferry {

// Ownership: borrows its channels from Add() to Remove().
// Threads:   any.
class ChannelSet {
 public:
  // Closes at once what comes after CloseAll().
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

// ClientHandshake(), which CloseAll() of `set` ends. Null: nothing but `limit`
// does.
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
