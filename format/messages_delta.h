// Lane messages by which the two sides of a refresh find the entries of a part
// that differ. See format/messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages_any.h"

namespace sstferry {

// Asks for the digests of a part's groups of entries (FORMAT.md, "Groups").
struct GroupRequest {
  static constexpr char kName[] = "GroupRequest";

  uint32_t part_id = 0;
  uint32_t group_entries = 1;  // desired mean number of entries per group
  friend bool operator==(const GroupRequest&, const GroupRequest&) = default;
};

struct GroupReply {
  static constexpr char kName[] = "GroupReply";

  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  Digest128 content;  // over the digests of all entries
  // In key order. Empty: the part has no entries, or too many groups.
  std::vector<Digest128> groups;
  friend bool operator==(const GroupReply&, const GroupReply&) = default;
};

// Sends a three-byte mark for each entry of the groups that differ. The
// complete entries follow later and only where needed, because most entries of
// a large group are equal on both sides.
struct SiftRequest {
  static constexpr char kName[] = "SiftRequest";

  uint32_t part_id = 0;
  // Indexes of the source's groups that the target lacks; ascending.
  std::vector<uint32_t> groups;
  // A mark (kMarkBytes) for each of the target's entries in groups that the
  // source lacks, in key order.
  std::string marks;
  friend bool operator==(const SiftRequest&, const SiftRequest&) = default;
};

struct SiftReply {
  static constexpr char kName[] = "SiftReply";

  // Digest over the digests of the source entries whose marks are in the
  // request. Different entries may have equal marks. If this digest is equal on
  // both sides, the entries are equal.
  Digest128 common;
  // Indexes of the marks for which the source has no entry; ascending.
  std::vector<uint32_t> others;
  friend bool operator==(const SiftReply&, const SiftReply&) = default;
};

// Returns the mark of an entry with this digest.
inline uint32_t MarkOf(const Digest128& digest) {
  return static_cast<uint32_t>(digest.low) & 0xffffff;
}

// An entry of the target. Neighbouring keys are similar, so in a DeltaRequest
// `key` omits the leading bytes that it shares with the previous key of the
// message.
struct GroupEntry {
  std::string key;
  Digest128 digest;          // digest of key and value
  uint8_t shared_bytes = 0;  // number of bytes omitted from `key`
  friend bool operator==(const GroupEntry&, const GroupEntry&) = default;
};

// Returns the encoded size in bytes of the item in a DeltaRequest payload.
size_t EncodedBytes(const GroupEntry& item);

// Removes from an entry's key the leading bytes that it shares with `before`,
// the previous key.
void LeaveOutShared(const rocksdb::Slice& before, GroupEntry* entry);
// Restores the removed bytes. Returns false if `before` is shorter than the
// removed bytes, or the key becomes longer than kMaxKeyBytes.
[[nodiscard]] bool PutBackShared(const rocksdb::Slice& before,
                                 GroupEntry* entry);

// Says which entries a DeltaRequest contains to describe the target.
enum class DeltaBasis : uint8_t {
  // All entries in groups that the source lacks. `groups` lists the source's
  // groups that the target lacks.
  kGroups = 0,
  kEntries = 1,  // all entries in the interval
  // The first and the last key in the interval, but no keys between them. The
  // source has reported that it has no entry in the interval.
  kOutermost = 2,
  // The entries in `others` of the part's SiftReply.
  kSifted = 3,
};
inline constexpr uint8_t kMaxDeltaBasis = 3;

// Requests the delta chunk of a part, in as many messages as needed.
struct DeltaRequest {
  static constexpr char kName[] = "DeltaRequest";

  uint32_t part_id = 0;
  // The first message of a request. Only this message has the members from
  // `received` to `groups`.
  bool begins = false;
  Totals received;           // totals of this part that the target has received
  KeyInterval interval;  // the portion of the part that the delta covers
  DeltaBasis basis = DeltaBasis::kGroups;
  // If more consecutive keys than this exist only at the target, one range
  // deletion deletes them; otherwise they are deleted one by one. 0: always one
  // by one.
  uint32_t most_point_deletions = 0;
  std::vector<uint32_t> groups;     // ascending
  std::vector<GroupEntry> entries;  // in key order
  bool complete = false;            // the last message
  friend bool operator==(const DeltaRequest&, const DeltaRequest&) = default;
};

}  // namespace sstferry
