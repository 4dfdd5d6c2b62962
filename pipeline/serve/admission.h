// Admits connections: counts them in all and per address, and chooses which
// ones to close if too many have not finished their handshake.
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

// If there are too many half-open connections, admits the newest and drops the
// oldest: an honest peer finishes its handshake in milliseconds, so the oldest
// ones belong to a flood.
//
// Threads: any.
class Admission {
 public:
  explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

  // Returns the new connection's number (0: refused, *why is the limit), and in
  // *dropped that of a half-open one which the caller must close (0: none). It
  // no longer counts as half-open, but as a connection until Leave().
  uint64_t Enter(const std::string& address, uint64_t* dropped,
                 std::string* why);
  // Called after its handshake. Returns false if it was dropped before.
  bool Establish(uint64_t id);
  void Leave(uint64_t id);

  uint32_t connections() const;
  uint32_t half_open() const;

 private:
  struct Counts {
    uint32_t connections = 0;
    uint32_t half_open = 0;
  };
  struct Entry {
    std::string address;
    bool half_open = true;
  };
  uint64_t DropOldest(const std::string* address);  // under mu_
  void EndHalfOpen(Entry* entry);                   // under mu_

  const AdmissionLimits limits_;
  mutable std::mutex mu_;
  uint64_t last_id_ = 0;                     // under mu_, and all below
  std::map<uint64_t, Entry> entries_;        // by number, so by age
  std::map<std::string, Counts> addresses_;  // of which any is open
  uint32_t half_open_ = 0;
};

}  // namespace sstferry
