// Reads and writes the lease file of a snapshot's private directory, and
// decides if the directory may be removed. A lease says for which transfer, and
// how long, the snapshot is retained. The code does not trust the files: it
// never uses a directory or a lease that belongs to another user or that others
// can write, and it limits every length.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "format/lease.h"

namespace sstferry {

// Result of reading a lease.
enum class LeaseState {
  kNone,  // no lease file
  kGood,
  kBad,  // the file is damaged, or not a regular file
  // Another account owns the directory or can write to it. Or the directory
  // cannot be opened now. In both cases, this process must not change it.
  kForeign,
  kUnknown,  // the file cannot be read now
};

// Reads the lease in the private directory `path`.
LeaseState ReadLease(const std::string& path, Lease* lease);

// Writes the lease atomically; it is durable when this returns OK.
[[nodiscard]] rocksdb::Status WriteLease(const std::string& path,
                                         const Lease& lease);

// Removes the lease, if there is one. The snapshot is then no longer retained
// for a transfer.
void RemoveLease(const std::string& path);

// Returns true if only this user can write to the directory `path`, and if it
// contains only regular files and links to regular files.
bool HoldsOnlyFiles(const std::string& path);

// Clock and time limits of leases.
struct LeaseRules {
  // Returns the current time in seconds since 1970. Null: uses the system's
  // clock.
  std::function<uint64_t()> wall_seconds;
  // Returns the maximum time in seconds for which this process retains a
  // snapshot with this lease. Null: uses the lease's own ttl_seconds.
  std::function<uint64_t(const Lease&)> max_ttl;

  uint64_t Now() const;
  uint64_t Left(const Lease& lease) const;
};

}  // namespace sstferry
