// Lease of a retained snapshot. It is a file in the directory in which the
// source keeps the snapshot's files. The lease allows another process of the
// source to continue serving the snapshot. The file has the format of
// format/sealed_file.h with magic 53 46 4c 45 41 53 45 31 ("SFLEASE1").
// Normative text: format/FORMAT.md, "Lease".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages.h"

namespace sstferry {

inline constexpr char kLeaseMagic[9] = "SFLEASE1";
// Room for an OpenRequest, which is at most one frame, and for the identity of
// the target.
inline constexpr uint32_t kMaxLeasePayloadBytes = 2u << 20;
inline constexpr uint32_t kMaxOwnerNames = 256;
inline constexpr uint32_t kMaxPathBytes = 4096;
// Maximum lifetime: a month, much longer than any useful lease. A record with a
// longer lifetime is damaged.
inline constexpr uint64_t kMaxLeaseSeconds = 31ull * 86400;

struct Lease {
  static constexpr char kName[] = "lease";

  TransferId transfer_id{};
  std::string database;        // NAME of the served database
  std::string directory;       // source directory, symbolic links resolved
  OpenRequest request;         // the request that opened the snapshot
  Hello target;                // the Hello of the target that sent this request
  // Subject of the target's certificate; empty: the target has no certificate.
  std::string owner_subject;
  std::vector<std::string> owner_names;
  uint32_t plan_lanes = 1;
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  bool read_only = false;      // the tables lack the entries of the WALs
  uint64_t wal_bytes = 0;      // WAL bytes that were copied from the source
  Digest128 plan;              // digest over families and parts
  uint64_t pinned_bytes = 0;   // size of table and blob files
  // Seconds since 1970, because a lease outlives the process.
  uint64_t created_seconds = 0;
  uint64_t renewed_seconds = 0;  // when a target was last connected
  uint64_t ttl_seconds = 0;
  uint32_t readers = 0;          // connected targets when the lease was written
  friend bool operator==(const Lease&, const Lease&) = default;
};

// Appends a complete file. Returns kRefused if a field exceeds its maximum, for
// example if the owner has too many names.
[[nodiscard]] rocksdb::Status EncodeLease(const Lease& lease, std::string* out);

// Decodes a file. Returns Corruption unless `file` is exactly one complete
// lease.
[[nodiscard]] rocksdb::Status DecodeLease(const rocksdb::Slice& file,
                                          Lease* lease);

// Returns the seconds that are left of the lease at `now_seconds`, at most
// `max_ttl_seconds`; 0: it has expired. If the lease was renewed after
// `now_seconds`, because the clock was set back, its full time is left.
uint64_t LeaseSecondsLeft(const Lease& lease, uint64_t now_seconds,
                          uint64_t max_ttl_seconds);

}  // namespace sstferry
