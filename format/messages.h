// The payload of every frame type but ChunkData (which is raw file bytes).
// Byte layouts and the conversation they form: format/FORMAT.md.
//
// Each message has EncodeTo(), which appends, and DecodeFrom(), which reads
// exactly one whole payload: it bounds every length and count by
// format/limits.h before believing it, refuses trailing bytes with Corruption
// and leaves *this unspecified on error. Nothing here allocates more than the
// payload's size times a small constant.
//
// The sender sees to the limits of keys, names and counts before it encodes;
// only texts for a person (message, where, notes, reason) are cut to fit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/end_state.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Protocol versions this build speaks. There is none before 1.
inline constexpr uint16_t kProtocolVersion = 1;
inline constexpr uint16_t kOldestProtocolVersion = 1;

// Feature bits of Hello; unknown bits are ignored, used only if both set them.
inline constexpr uint64_t kFeatureContentDigest = 1u << 0;
inline constexpr uint64_t kSupportedFeatures = kFeatureContentDigest;

using TransferId = std::array<uint8_t, 16>;
std::string ToHex(const TransferId& id);

struct NamedValue {
  std::string name;
  std::string value;
  friend bool operator==(const NamedValue&, const NamedValue&) = default;
};

// A half-open key interval; an absent bound is unbounded, "" is a key.
struct KeyInterval {
  std::optional<std::string> begin;
  std::optional<std::string> end;
  friend bool operator==(const KeyInterval&, const KeyInterval&) = default;
};

struct Totals {
  uint64_t chunks = 0;
  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  uint64_t sst_bytes = 0;
  friend bool operator==(const Totals&, const Totals&) = default;
  Totals& operator+=(const Totals& other);
};

enum class ConnectionKind : uint8_t { kControl = 0, kLane = 1 };

struct Hello {
  uint16_t oldest_version = kOldestProtocolVersion;
  uint16_t newest_version = kProtocolVersion;
  uint64_t features = kSupportedFeatures;
  ConnectionKind kind = ConnectionKind::kControl;
  TransferId transfer_id{};  // of a lane: the transfer it joins
  uint32_t lane = 0;
  std::string software;         // "sstferry 0.1.0"
  std::string rocksdb_version;  // "7.8.3"
  uint32_t max_format_version = 0;   // of SST files this side can read
  std::vector<uint8_t> compressions; // rocksdb::CompressionType values
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct HelloAck {
  uint16_t version = kProtocolVersion;  // the newest both speak
  uint64_t features = 0;                // what both have
  std::string software;
  std::string rocksdb_version;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct End {
  EndState state = EndState::kOk;
  std::string message;
  std::string where;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct ListReply {
  std::vector<std::string> names;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

enum class Purpose : uint8_t { kPull = 0, kPlan = 1, kVerify = 2 };

struct OpenRequest {
  std::string database;               // NAME, checked against its alphabet
  Purpose purpose = Purpose::kPull;
  std::vector<std::string> families;  // empty: all
  KeyInterval interval;               // --begin, --end, in each family's order
  uint32_t lanes = 0;
  uint64_t chunk_bytes = 0;
  uint32_t format_version = 0;        // 0: the highest in the source's files
  uint64_t max_rate_bytes_per_sec = 0;  // SST bytes; 0: no limit
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct Opened {
  TransferId transfer_id{};
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  uint32_t lanes = 0;                 // granted
  uint32_t family_count = 0;          // Family frames that follow
  std::vector<NamedValue> database_options;
  std::vector<std::string> notes;     // for the operator
  uint64_t snapshot_micros = 0;
  uint64_t plan_micros = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

// One column family as the source's OPTIONS describe it.
struct FamilyDescription {
  std::string name;
  std::string comparator;
  std::string merge_operator;  // empty: none
  std::string table_factory;   // "BlockBasedTable" or "PlainTable"
  std::vector<NamedValue> options;
  std::vector<NamedValue> table_options;
};

struct Family {
  uint32_t index = 0;  // families are numbered 0, 1, ... in a transfer
  FamilyDescription description;
  uint32_t format_version = 0;  // of the chunks that will come
  uint64_t estimated_entries = 0;
  uint64_t estimated_bytes = 0;
  uint32_t source_files = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct PlanItem;
struct EntryDigest;

struct Range {
  uint32_t id = 0;      // 0, 1, ... over the whole transfer
  uint32_t family = 0;  // Family::index
  KeyInterval interval;
  uint64_t estimated_bytes = 0;
};

// Bytes the item takes inside Ranges, PlanItems or EntriesReply.
size_t EncodedBytes(const Range& item);
size_t EncodedBytes(const PlanItem& item);
size_t EncodedBytes(const EntryDigest& item);

// A list is cut into payloads of about this size.
inline constexpr size_t kBatchBytes = 256u << 10;

// The end of the batch that begins at items[begin]: at least one item, then as
// many as fit into kBatchBytes. With keys inside kMaxKeyBytes a batch always
// fits into one frame. REQUIRES: begin < items.size().
template <typename Item>
size_t BatchEnd(const std::vector<Item>& items, size_t begin) {
  size_t bytes = EncodedBytes(items[begin]);
  size_t end = begin + 1;
  while (end < items.size()) {
    bytes += EncodedBytes(items[end]);
    if (bytes > kBatchBytes) {
      break;
    }
    ++end;
  }
  return end;
}

// A plan is sent as many of these; ids ascend without holes.
struct Ranges {
  std::vector<Range> ranges;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

enum class PlanAction : uint8_t { kRebuild = 0, kCarry = 1, kSkip = 2 };

struct PlanItem {
  uint32_t family = 0;
  KeyInterval interval;
  std::string file;  // the source's file name; empty: several files
  uint64_t bytes = 0;
  PlanAction action = PlanAction::kRebuild;
  std::string reason;
};

struct PlanItems {
  std::vector<PlanItem> items;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct PlanEnd {
  uint32_t range_count = 0;
  uint64_t estimated_bytes = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

// Ping and Pong: the receiver of a Ping answers with a Pong of the same token.
struct Ping {
  uint64_t token = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

// The source's columns of the timeline and its stage clock, since the start.
// Stages are lane-microseconds summed over lanes.
struct Stats {
  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  uint64_t sst_bytes = 0;
  uint64_t wire_bytes = 0;
  uint64_t queued_bytes = 0;
  uint64_t peak_rss_bytes = 0;
  uint64_t read_build_micros = 0;
  uint64_t send_wait_micros = 0;
  uint64_t idle_micros = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

// Finish (target) and Finished (source): totals per family in index order.
struct Finish {
  std::vector<Totals> families;
  Stats stats;  // of the sender; the source's last word on its stages
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct RangeRequest {
  uint32_t range_id = 0;
  // Go on after this key instead of at the range's begin (resume).
  std::optional<std::string> after;
  uint32_t first_ordinal = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

enum class ChunkKind : uint8_t { kRebuilt = 0, kCarried = 1 };

struct ChunkBegin {
  uint32_t range_id = 0;
  uint32_t ordinal = 0;  // of the chunk in its range: 0, 1, ...
  ChunkKind kind = ChunkKind::kRebuilt;
  uint64_t file_bytes = 0;  // 0: not known yet (being built)
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct ChunkEnd {
  uint32_t range_id = 0;
  uint32_t ordinal = 0;
  uint64_t file_bytes = 0;
  uint64_t entries = 0;
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;
  std::string smallest;  // user keys, both inside the file
  std::string largest;
  Digest128 digest;      // ChunkDigest over its ChunkData frames
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct RangeEnd {
  uint32_t range_id = 0;
  Totals totals;
  // XXH3-128 over the chunks' digests in order: chains the range together.
  Digest128 chain;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct DigestRequest {
  uint32_t family = 0;
  KeyInterval interval;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct DigestReply {
  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  Digest128 content;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

// Asks for the keys of an interval with a digest of each value, one page at a
// time: `after` is the last key of the page before.
struct EntriesRequest {
  uint32_t family = 0;
  KeyInterval interval;
  std::optional<std::string> after;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

struct EntryDigest {
  std::string key;
  uint64_t value_bytes = 0;
  Digest128 value;
};

struct EntriesReply {
  std::vector<EntryDigest> entries;
  bool complete = false;  // no entry of the interval follows
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
};

}  // namespace sstferry
