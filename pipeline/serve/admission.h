// Admits connections. Counts them in total and per address, and chooses which
// ones to close if too many have made no request yet.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "sstferry/transport.h"

namespace sstferry {

struct AdmissionLimits {
  uint32_t connections = 0;
  uint32_t connections_per_address = 0;
  uint32_t half_open = 0;
  uint32_t half_open_per_address = 0;
};

// Decides which connections a server keeps.
//
// A connection is half-open until its handshake is done and it has requested a
// database or the lane of a transfer. If there are too many half-open
// connections, or too many connections and some of them are half-open,
// Admission admits the new connection and drops the oldest half-open one. An
// honest peer sends its request within milliseconds, so the oldest half-open
// connections belong to a flood. An established connection is never dropped.
//
// Threads: any.
class Admission {
 public:
  explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

  // Returns the new connection's number, or 0 if the connection is refused;
  // *why then says which limit was reached. *dropped is the number of a
  // half-open connection that the caller must close (0: none). The dropped
  // connection no longer counts as half-open, but counts as a connection until
  // Leave(). Until then, there may be more connections than their limit, by at
  // most the limit of half-open connections.
  uint64_t Enter(const std::string& address, uint64_t* dropped,
                 std::string* why);
  // Makes the connection established. Returns false if it was dropped before.
  bool Establish(uint64_t id);
  bool IsDropped(uint64_t id) const;
  void Leave(uint64_t id);

  uint32_t connections() const;
  uint32_t half_open() const;

 private:
  struct Counts {
    uint32_t connections = 0;
    uint32_t half_open = 0;
  };
  enum class State { kHalfOpen, kEstablished, kDropped };
  struct Entry {
    std::string address;
    State state = State::kHalfOpen;
  };
  uint64_t DropOldest(const std::string* address);  // under mu_
  void EndHalfOpen(Entry* entry, State state);      // under mu_

  const AdmissionLimits limits_;
  mutable std::mutex mu_;
  uint64_t last_id_ = 0;                     // under mu_, and all below
  std::map<uint64_t, Entry> entries_;        // by number, and therefore by age
  // Addresses with an open connection.
  std::map<std::string, Counts> addresses_;
  uint32_t half_open_ = 0;
};

}  // namespace sstferry
