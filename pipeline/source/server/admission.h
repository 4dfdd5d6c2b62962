// Who is let in: counts connections in all and per address, and picks those
// that must go when too many have not shaken hands.
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

// The newest is let in rather than refused where half-open connections are too
// many: whoever is honest shakes hands in milliseconds, whoever floods has the
// oldest ones.
//
// Threads: any.
class Admission {
 public:
  explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

  // The new connection's number, and in *dropped that of a half-open one which
  // must be closed (0: none); it no longer counts as half-open, but as a
  // connection until Leave(). 0: refused, *why says by which limit.
  uint64_t Enter(const std::string& address, uint64_t* dropped,
                 std::string* why);
  // It has shaken hands. False: it was dropped before.
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
