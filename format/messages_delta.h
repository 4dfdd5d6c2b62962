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
  Digest128 content;  // sum of the digests of all entries
  // Digests of the groups in key order. Empty if the part has no entries, or
  // too many groups.
  std::vector<Digest128> groups;
  friend bool operator==(const GroupReply&, const GroupReply&) = default;
};

// Asks which entries of the groups that differ exist at the source. The request
// has a mark of three bytes for each such entry of the target. Most entries of
// a large group are equal on both sides, so the target sends complete entries
// only later and only where needed.
struct SiftRequest {
  static constexpr char kName[] = "SiftRequest";

  uint32_t part_id = 0;
  // Indexes of the source's groups whose digests the target lacks; ascending.
  std::vector<uint32_t> groups;
  // Marks of the target's entries in groups whose digests the source lacks, in
  // key order. A mark has kMarkBytes.
  std::string marks;
  friend bool operator==(const SiftRequest&, const SiftRequest&) = default;
};

struct SiftReply {
  static constexpr char kName[] = "SiftReply";

  // Digest over the digests of the source's entries whose marks are in the
  // request. The target computes the digest of its own entries with these
  // marks. If the two digests are equal, the entries are equal. (Equal marks do
  // not prove this, because two different entries may have the same mark.)
  Digest128 common;
  // Indexes of the marks for which the source has no entry; ascending.
  std::vector<uint32_t> others;
  friend bool operator==(const SiftReply&, const SiftReply&) = default;
};

// Returns the mark of the entry with this digest.
inline uint32_t MarkOf(const Digest128& digest) {
  return static_cast<uint32_t>(digest.low) & 0xffffff;
}

// An entry of the target. Neighbouring keys are similar. So in a DeltaRequest,
// `key` omits the leading bytes that are equal to those of the previous key in
// the message.
struct GroupEntry {
  std::string key;
  Digest128 digest;          // digest of the complete key and the value
  uint8_t shared_bytes = 0;  // number of bytes omitted from `key`
  friend bool operator==(const GroupEntry&, const GroupEntry&) = default;
};

// Returns the encoded size in bytes of the item in a DeltaRequest payload.
size_t EncodedBytes(const GroupEntry& item);

// Shortens the key of an entry: removes the leading bytes that it shares with
// `before`, the previous key.
void LeaveOutShared(const rocksdb::Slice& before, GroupEntry* entry);
// Restores the bytes that LeaveOutShared() removed. Returns false if `before`
// has fewer bytes, or if the key becomes longer than kMaxKeyBytes.
[[nodiscard]] bool PutBackShared(const rocksdb::Slice& before,
                                 GroupEntry* entry);

// The entries of the target that a DeltaRequest lists.
enum class DeltaBasis : uint8_t {
  // All entries in groups whose digests the source lacks. `groups` lists the
  // source's groups whose digests the target lacks.
  kGroups = 0,
  kEntries = 1,  // all entries in the interval
  // Only the first and the last entry in the interval. Used if the source has
  // reported that it has no entry there.
  kOutermost = 2,
  // The entries whose marks are in `others` of the part's SiftReply.
  kSifted = 3,
};
inline constexpr uint8_t kMaxDeltaBasis = 3;

// Requests the delta chunk of a part. A long request is sent in several
// messages.
struct DeltaRequest {
  static constexpr char kName[] = "DeltaRequest";

  uint32_t part_id = 0;
  // True in the first message of a request. Only this message has the members
  // from `received` to `groups`.
  bool begins = false;
  Totals received;           // totals of the part that the target already has
  KeyInterval interval;  // the portion of the part that the delta covers
  DeltaBasis basis = DeltaBasis::kGroups;
  // Maximum number of consecutive target-only keys that are deleted one by one.
  // More keys are deleted by one range deletion. 0: all keys are deleted one by
  // one.
  uint32_t most_point_deletions = 0;
  std::vector<uint32_t> groups;     // ascending
  std::vector<GroupEntry> entries;  // in key order
  bool complete = false;            // true in the last message
  friend bool operator==(const DeltaRequest&, const DeltaRequest&) = default;
};

}  // namespace sstferry
