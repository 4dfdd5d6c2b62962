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

// Those that the asker may read.
struct StatusReply {
  std::vector<HeldSnapshot> snapshots;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const StatusReply&, const StatusReply&) = default;
};

}  // namespace sstferry
