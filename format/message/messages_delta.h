// Messages of lane connections by which both sides of a refresh find the
// entries of a range that differ. See format/message/messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/message/messages_any.h"

namespace sstferry {

// Asks for the digests of a range's groups of entries (FORMAT.md, "Groups").
struct GroupRequest {
  uint32_t range_id = 0;
  uint32_t group_entries = 1;  // desired mean
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const GroupRequest&, const GroupRequest&) = default;
};

struct GroupReply {
  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  Digest128 content;  // over the digests of all entries
  // False: the source sends chunks that replace the range, and no groups.
  bool takes_delta = false;
  std::vector<Digest128> groups;  // in key order
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const GroupReply&, const GroupReply&) = default;
};

// An entry of the target, in a group that the source does not have.
struct GroupEntry {
  std::string key;
  Digest128 digest;  // of key and value
  friend bool operator==(const GroupEntry&, const GroupEntry&) = default;
};

// Encoded size in bytes of the item inside a DeltaRequest payload.
size_t EncodedBytes(const GroupEntry& item);

// Asks for the delta chunk of a range, in as many messages as needed.
struct DeltaRequest {
  uint32_t range_id = 0;
  // The source's groups that the target does not have, ascending; only in the
  // first message.
  std::vector<uint32_t> groups;
  std::vector<GroupEntry> entries;  // in key order
  bool complete = false;            // the last message
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const DeltaRequest&, const DeltaRequest&) = default;
};

}  // namespace sstferry
