// Reads and writes the lease file of a private directory, and decides whether a
// directory may be removed. Files are not trusted: directories and files of
// another user, or writable by others, are never followed, and every length is
// bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "format/lease.h"

namespace sstferry {

// Result of reading a lease.
enum class LeaseState {
  kNone,     // there is no lease
  kGood,
  kBad,      // damaged, or not a regular file
  kForeign,  // the directory is not this user's alone: must not be changed
};

// Reads the lease in the private directory `path`.
LeaseState ReadLease(const std::string& path, Lease* lease);

// Writes the lease atomically; it is durable when this returns OK.
[[nodiscard]] rocksdb::Status WriteLease(const std::string& path,
                                         const Lease& lease);

// Removes the lease, if there is one: the snapshot is no longer retained for
// its transfer.
void RemoveLease(const std::string& path);

// Returns true if `path` is a directory of only this user that contains only
// regular files.
bool HoldsOnlyFiles(const std::string& path);

// Clock and time limits of leases.
struct LeaseRules {
  // Seconds since 1970; null: the system's clock.
  std::function<uint64_t()> wall_seconds;
  // Maximum of seconds that the reader grants to a lease; null: ttl_seconds of
  // the lease.
  std::function<uint64_t(const Lease&)> max_ttl;

  uint64_t Now() const;
  uint64_t Left(const Lease& lease) const;
};

}  // namespace sstferry
