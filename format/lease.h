// Lease of a retained snapshot: a file in the snapshot's private directory.
// With it, another process of the source can continue to serve the snapshot.
// Normative text: format/FORMAT.md, "Lease". The file is one of
// format/sealed_file.h with magic 53 46 4c 45 41 53 45 31 ("SFLEASE1").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages.h"

namespace sstferry {

inline constexpr char kLeaseMagic[9] = "SFLEASE1";
// Room for an OpenRequest, which is one frame, and for the target's identity.
inline constexpr uint32_t kMaxLeasePayloadBytes = 2u << 20;
inline constexpr uint32_t kMaxOwnerNames = 256;
inline constexpr uint32_t kMaxPathBytes = 4096;
// A month, much longer than any useful lease. A record with more is damaged.
inline constexpr uint64_t kMaxLeaseSeconds = 31ull * 86400;

struct Lease {
  static constexpr char kName[] = "lease";

  TransferId transfer_id{};
  std::string database;        // NAME of the served database
  std::string directory;       // of the source, without symbolic links
  OpenRequest request;         // the request that opened the snapshot
  Hello target;                // the Hello of the target that sent this request
  std::string owner_subject;   // subject of its certificate; empty: no
                               // certificate
  std::vector<std::string> owner_names;
  uint32_t plan_lanes = 1;
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  bool read_only = false;      // WAL entries are not in the tables
  uint64_t wal_bytes = 0;      // copied from the source
  Digest128 plan;              // digest over families and parts
  uint64_t pinned_bytes = 0;   // size of table and blob files
  // Seconds since 1970, because a lease outlives the process.
  uint64_t created_seconds = 0;
  uint64_t renewed_seconds = 0;  // when a target was last connected
  uint64_t ttl_seconds = 0;
  uint32_t readers = 0;          // connected targets when the lease was written
  friend bool operator==(const Lease&, const Lease&) = default;
};

// Appends a complete file. kRefused: a field exceeds its maximum (for example,
// an owner with too many names).
[[nodiscard]] rocksdb::Status EncodeLease(const Lease& lease, std::string* out);

// Decodes a file. Corruption: not exactly one complete lease.
[[nodiscard]] rocksdb::Status DecodeLease(const rocksdb::Slice& file,
                                          Lease* lease);

// Returns the remaining seconds of the lease at `now`, at most
// `max_ttl_seconds`; 0: it has expired. If the lease was renewed after `now`
// (the clock was set back), it has its full time left.
uint64_t LeaseSecondsLeft(const Lease& lease, uint64_t now_seconds,
                          uint64_t max_ttl_seconds);

}  // namespace sstferry
