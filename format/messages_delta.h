// Messages of lane connections by which both sides of a refresh find the
// entries of a part that differ. See format/messages.h.
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
  uint32_t group_entries = 1;  // desired mean
  friend bool operator==(const GroupRequest&, const GroupRequest&) = default;
};

struct GroupReply {
  static constexpr char kName[] = "GroupReply";

  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  Digest128 content;  // over the digests of all entries
  // In key order; none: the part has no entries, or too many to be told.
  std::vector<Digest128> groups;
  friend bool operator==(const GroupReply&, const GroupReply&) = default;
};

// Tells the entries of groups that differ by three bytes each, before any is
// told whole: in a large group most of them are equal at both sides.
struct SiftRequest {
  static constexpr char kName[] = "SiftRequest";

  uint32_t part_id = 0;
  // The source's groups that the target does not have; ascending.
  std::vector<uint32_t> groups;
  // kMarkBytes for each entry of the target in groups that the source does not
  // have, in key order.
  std::string marks;
  friend bool operator==(const SiftRequest&, const SiftRequest&) = default;
};

struct SiftReply {
  static constexpr char kName[] = "SiftReply";

  // Over the digests of those entries of the source that have one of the marks.
  // Marks alone prove nothing: equal digests do.
  Digest128 common;
  // Indexes of the other marks, ascending: the source has no entry for them.
  std::vector<uint32_t> others;
  friend bool operator==(const SiftReply&, const SiftReply&) = default;
};

// Returns the mark of an entry with that digest.
inline uint32_t MarkOf(const Digest128& digest) {
  return static_cast<uint32_t>(digest.low) & 0xffffff;
}

// An entry of the target. Neighbouring keys are alike: in a DeltaRequest a key
// lacks the bytes that it shares with the one before it in the message.
struct GroupEntry {
  std::string key;
  Digest128 digest;          // of key and value
  uint8_t shared_bytes = 0;  // that `key` lacks, inside a DeltaRequest
  friend bool operator==(const GroupEntry&, const GroupEntry&) = default;
};

// Encoded size in bytes of the item inside a DeltaRequest payload.
size_t EncodedBytes(const GroupEntry& item);

// Takes the bytes that its key shares with the key before it out of an entry.
void LeaveOutShared(const rocksdb::Slice& before, GroupEntry* entry);
// Puts them back. False: the key before it has not so many bytes, or the key
// becomes longer than kMaxKeyBytes.
[[nodiscard]] bool PutBackShared(const rocksdb::Slice& before,
                                 GroupEntry* entry);

// How a DeltaRequest tells what the target has.
enum class DeltaBasis : uint8_t {
  // All entries in groups that the source does not have; `groups` are the
  // source's that the target does not have.
  kGroups = 0,
  kEntries = 1,  // all entries in the interval
  // The first and the last key in the interval, of more than the target tells.
  // The source has told that it has no entry there.
  kOutermost = 2,
  // The entries of `others` in the part's SiftReply.
  kSifted = 3,
};
inline constexpr uint8_t kMaxDeltaBasis = 3;

// Asks for the delta chunk of a part, in as many messages as needed.
struct DeltaRequest {
  static constexpr char kName[] = "DeltaRequest";

  uint32_t part_id = 0;
  // Only the first message has what follows, up to `groups`.
  bool begins = false;
  Totals received;           // what the target has of the part
  KeyInterval interval;  // the piece of the part that the delta is for
  DeltaBasis basis = DeltaBasis::kGroups;
  // More neighbouring keys than that which only the target has are deleted by
  // one range deletion; 0: each by itself.
  uint32_t most_point_deletions = 0;
  std::vector<uint32_t> groups;     // ascending
  std::vector<GroupEntry> entries;  // in key order
  bool complete = false;            // the last message
  friend bool operator==(const DeltaRequest&, const DeltaRequest&) = default;
};

}  // namespace sstferry
