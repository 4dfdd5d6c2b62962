// What a source tells of the snapshots it holds. See format/message/messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/message/messages_any.h"

namespace sstferry {

// Asks which snapshots are held.
struct StatusRequest {
  std::string database;  // NAME; empty: of all that the asker may read
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const StatusRequest&, const StatusRequest&) = default;
};

struct HeldSnapshot {
  TransferId transfer_id{};  // to others than its target: cut, then zeros
  std::string database;             // NAME
  uint64_t snapshot_sequence = 0;
  uint64_t age_seconds = 0;
  uint64_t ttl_left_seconds = 0;    // once readers is 0
  uint32_t readers = 0;             // connected control sessions
  uint64_t pinned_bytes = 0;        // of its table and blob files
  friend bool operator==(const HeldSnapshot&, const HeldSnapshot&) = default;
};

// Those that the asker may read.
struct StatusReply {
  std::vector<HeldSnapshot> snapshots;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const StatusReply&, const StatusReply&) = default;
};

}  // namespace sstferry
