// Admits connections: counts them in all and per address, and chooses which
// ones to close if too many of them hold a place and ask for nothing.
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

// A connection is half-open until it was given something: until its handshake
// is done and it asked for a database, or for the lane of a transfer. If there
// are too many half-open connections, or all places are taken and half-open ones
// have some of them, Admission admits the newest and drops the oldest half-open
// one: an honest peer asks within milliseconds, so the oldest ones belong to a
// flood. Whoever was given something is never dropped.
//
// Threads: any.
class Admission {
 public:
  explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

  // Returns the new connection's number (0: refused, *why is the limit), and in
  // *dropped that of a half-open one which the caller must close (0: none). It
  // no longer counts as half-open, but as a connection until Leave(): for the
  // time that its thread takes to end, there may be more connections than the
  // limit, by as many as may be half-open.
  uint64_t Enter(const std::string& address, uint64_t* dropped,
                 std::string* why);
  // Called when it is given something. Returns false if it was dropped before.
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
  std::map<uint64_t, Entry> entries_;        // by number, so by age
  std::map<std::string, Counts> addresses_;  // of which any is open
  uint32_t half_open_ = 0;
};

}  // namespace sstferry
