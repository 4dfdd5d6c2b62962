// Parts that several messages share, and the messages of any connection. See
// format/messages.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/codec.h"
#include "format/digest.h"
#include "format/end_state.h"
#include "format/types.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Protocol versions that this build supports. The first version is 1.
inline constexpr uint16_t kProtocolVersion = 1;
inline constexpr uint16_t kOldestProtocolVersion = 1;

// Feature bits of Hello. A feature is used only if both sides set its bit;
// unknown bits are ignored.
//
// kFeatureEntities: the target accepts chunks with wide-column entities.
inline constexpr uint64_t kFeatureEntities = 1u << 1;
// ChunkData frames may be compressed if the OpenRequest asks for it.
inline constexpr uint64_t kFeatureWireCompression = 1u << 3;
// The target accepts chunks with block layouts that RocksDB 11.1 and later mark
// in the block: values stored apart from keys, or uniform keys.
inline constexpr uint64_t kFeatureMarkedBlocks = 1u << 4;
inline constexpr uint64_t kSupportedFeatures =
    kFeatureEntities | kFeatureWireCompression | kFeatureMarkedBlocks;

struct NamedValue {
  std::string name;
  std::string value;
  friend bool operator==(const NamedValue&, const NamedValue&) = default;
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
  static constexpr char kName[] = "Hello";

  uint16_t oldest_version = kOldestProtocolVersion;
  uint16_t newest_version = kProtocolVersion;
  uint64_t features = kSupportedFeatures;
  ConnectionKind kind = ConnectionKind::kControl;
  TransferId transfer_id{};  // on a lane: the transfer that the lane joins
  uint32_t lane = 0;
  std::string software;         // "sstferry 0.1.0"
  std::string rocksdb_version;  // "7.8.3"
  uint32_t max_format_version = 0;   // newest format_version that it can read
  friend bool operator==(const Hello&, const Hello&) = default;
};

struct HelloAck {
  static constexpr char kName[] = "HelloAck";

  uint16_t version = kProtocolVersion;  // newest version common to both sides
  uint64_t features = 0;                // features that both sides support
  std::string software;
  std::string rocksdb_version;
  friend bool operator==(const HelloAck&, const HelloAck&) = default;
};

struct End {
  static constexpr char kName[] = "End";

  EndState state = EndState::kOk;
  std::string message;
  std::string where;
  friend bool operator==(const End&, const End&) = default;
};

// Approximate payload size of one batch of a list.
inline constexpr size_t kBatchBytes = 256u << 10;

// Returns the index after the last item of the batch that begins at
// items[begin]. A batch has one item, and further ones as long as they fit into
// kBatchBytes. Item is Part, PlanItem or EntryDigest. If all keys are within
// kMaxKeyBytes, a batch fits into one frame. REQUIRES: begin < items.size().
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

}  // namespace sstferry
