// Types that the wire and an application share: format/ sends them and
// pipeline/include/sstferry/ offers them. No messages and no encoding.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace sstferry {

using TransferId = std::array<uint8_t, 16>;
std::string ToHex(const TransferId& id);

// A half-open key interval; an absent bound is unbounded, "" is a key.
struct KeyInterval {
  std::optional<std::string> begin;
  std::optional<std::string> end;
  friend bool operator==(const KeyInterval&, const KeyInterval&) = default;
};

// Compression of ChunkData frames. kNone: never. kAuto: off at first, then as
// the target's Compress messages say. kZstd: always if it saves bytes.
enum class WireCompression : uint8_t { kNone = 0, kAuto = 1, kZstd = 2 };

// How a refresh decides which intervals have changed.
enum class CompareMode : uint8_t {
  // Intervals that other files back than at the last refresh, and, of the rest,
  // those that are not proved unchanged and differ when both sides read them.
  kFiles = 0,
  kDigest = 1,  // intervals that differ when both sides read everything
};

// A snapshot that a source retains for a transfer.
struct RetainedSnapshot {
  TransferId transfer_id{};  // cut, then zeros, for all but its own target
  std::string database;             // NAME of the served database
  uint64_t snapshot_sequence = 0;
  uint64_t age_seconds = 0;
  uint64_t ttl_left_seconds = 0;    // runs while readers is 0
  uint32_t readers = 0;             // connected control sessions
  uint64_t pinned_bytes = 0;        // table and blob files
  // Its target, as that told of itself, with the subject of its certificate.
  std::string target;
  friend bool operator==(const RetainedSnapshot&,
                         const RetainedSnapshot&) = default;
};

}  // namespace sstferry
