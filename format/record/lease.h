// The lease of a snapshot: what lies in its private directory so that another
// process of the source can go on serving it. Normative text: format/FORMAT.md,
// "Lease". The file is one of format/record/sealed_file.h with magic
// 53 46 4c 45 41 53 45 31 ("SFLEASE1").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/message/messages.h"

namespace sstferry {

inline constexpr char kLeaseMagic[9] = "SFLEASE1";
// An OpenRequest, which came in one frame, and what is told of its sender.
inline constexpr uint32_t kMaxLeasePayloadBytes = 2u << 20;
inline constexpr uint32_t kMaxOwnerNames = 256;
inline constexpr uint32_t kMaxPathBytes = 4096;
// A month: nobody waits longer for a target, and a damaged number must not.
inline constexpr uint64_t kMaxLeaseSeconds = 31ull * 86400;

struct Lease {
  TransferId transfer_id{};
  std::string database;        // NAME under which it is served
  std::string directory;       // of the source, with no link in it
  OpenRequest request;         // with which it was opened
  Hello target;                // of whom it was opened by
  std::string owner_subject;   // of its certificate; empty: it had none
  std::vector<std::string> owner_names;
  uint32_t plan_lanes = 1;
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  bool read_only = false;      // WAL entries are not in tables
  uint64_t wal_bytes = 0;      // that were copied
  Digest128 plan;              // of families and ranges
  uint64_t pinned_bytes = 0;   // of table and blob files
  // Seconds since 1970, since they outlive a process.
  uint64_t created_seconds = 0;
  uint64_t renewed_seconds = 0;  // a target was connected last
  uint64_t ttl_seconds = 0;
  uint32_t readers = 0;          // targets connected when it was written
  friend bool operator==(const Lease&, const Lease&) = default;
};

// Appends a whole file. kRefused when a field is longer than it may be (an
// owner with too many names).
[[nodiscard]] rocksdb::Status EncodeLease(const Lease& lease, std::string* out);

// Corruption for anything but one whole lease.
[[nodiscard]] rocksdb::Status DecodeLease(const rocksdb::Slice& file,
                                          Lease* lease);

// What is left at `now`, of at most `max_ttl_seconds`; 0: it has run out. One
// that was renewed after `now` (the clock was set back) has all left.
uint64_t LeaseSecondsLeft(const Lease& lease, uint64_t now_seconds,
                          uint64_t max_ttl_seconds);

}  // namespace sstferry
