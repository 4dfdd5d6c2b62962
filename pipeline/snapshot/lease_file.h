// Reads and writes the lease file of a private directory, and decides if a
// directory may be removed. Files are not trusted: directories and files that
// belong to another user, or that others can write, are never used, and every
// length is limited.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "format/lease.h"

namespace sstferry {

// Result of reading a lease.
enum class LeaseState {
  kNone,     // no lease file
  kGood,
  kBad,      // damaged, or not a regular file
  // Another account owns the directory or can write to it, so this process must
  // not change it; or the directory cannot be opened now.
  kForeign,
  kUnknown,  // the file cannot be read now
};

// Reads the lease in the private directory `path`.
LeaseState ReadLease(const std::string& path, Lease* lease);

// Writes the lease atomically; it is durable when this returns OK.
[[nodiscard]] rocksdb::Status WriteLease(const std::string& path,
                                         const Lease& lease);

// Removes the lease, if any. The snapshot is then no longer retained for its
// transfer.
void RemoveLease(const std::string& path);

// Returns true if `path` is a directory that only this user can write and that
// contains only regular files.
bool HoldsOnlyFiles(const std::string& path);

// Clock and time limits of leases.
struct LeaseRules {
  // Returns seconds since 1970; null: uses the system's clock.
  std::function<uint64_t()> wall_seconds;
  // Returns the maximum number of seconds that the reader grants to a lease;
  // null: grants the lease's ttl_seconds.
  std::function<uint64_t(const Lease&)> max_ttl;

  uint64_t Now() const;
  uint64_t Left(const Lease& lease) const;
};

}  // namespace sstferry
