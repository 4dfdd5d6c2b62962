// Limits the open connections of a server, in total and for each address. If
// too many peers connect without sending a request, chooses the connections to
// close.
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
// A new connection is half-open until its handshake is done and its peer has
// asked for a database or for a lane of a transfer. Then it is established. If
// there are too many half-open connections, Admission admits the new connection
// and drops the oldest half-open one. It does the same if there are too many
// connections and some of them are half-open. An honest peer sends its request
// within milliseconds, so the oldest half-open connections belong to a flood.
// Admission never drops an established connection.
//
// Threads: any.
class Admission {
 public:
  explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

  // Admits a connection from `address` and returns the connection's number.
  // Returns 0 if the connection is refused; *why is then the limit that was
  // reached. Sets *dropped to the number of a half-open connection that the
  // caller must close, or to 0. Until Leave() is called for the dropped
  // connection, it counts as a connection, but not as half-open. In the
  // meantime, there may be more connections than allowed, by at most the limit
  // of half-open connections.
  uint64_t Enter(const std::string& address, uint64_t* dropped,
                 std::string* why);
  // Makes the connection established. Returns false if it has been dropped.
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
  std::map<uint64_t, Entry> entries_;        // by number, the oldest first
  // By address. Contains only addresses with open connections.
  std::map<std::string, Counts> addresses_;
  uint32_t half_open_ = 0;
};

}  // namespace sstferry
