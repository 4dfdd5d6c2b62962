// The lease file of a private directory, and which directories may be removed.
// What is read here is not trusted: a directory or a file of another user, or
// one that others may write, is never followed, and every length is bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "format/record/lease.h"

namespace sstferry {

enum class LeaseState {
  kNone,     // there is no lease
  kGood,
  kBad,      // damaged, or something else than a file
  kForeign,  // not a directory of this user alone: not for us to touch
};

// `path` is a private directory.
LeaseState ReadLease(const std::string& path, Lease* lease);

// Whole or not at all, and durable when it returns OK.
[[nodiscard]] rocksdb::Status WriteLease(const std::string& path,
                                         const Lease& lease);

// Whether `path` is a directory of this user alone that holds regular files and
// nothing else.
bool HoldsOnlyFiles(const std::string& path);

// How long leases run.
struct LeaseRules {
  // Seconds since 1970; null: the system's clock.
  std::function<uint64_t()> wall_seconds;
  // Seconds that the reader grants to one, however much it says; null: all.
  std::function<uint64_t(const Lease&)> max_ttl;

  uint64_t Now() const;
  uint64_t Left(const Lease& lease) const;
};

}  // namespace sstferry
