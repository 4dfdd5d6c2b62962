// Messages about the snapshots that a source retains. See
// format/message/messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/message/messages_any.h"

namespace sstferry {

// Asks for the source's snapshots.
struct StatusRequest {
  std::string database;  // NAME; empty: all that the sender may read
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const StatusRequest&, const StatusRequest&) = default;
};

// The snapshots of databases that the asking target may read.
struct StatusReply {
  std::vector<HeldSnapshot> snapshots;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const StatusReply&, const StatusReply&) = default;
};

}  // namespace sstferry
