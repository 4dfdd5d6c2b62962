// Words that the wire and an application share: what format/message/ sends and
// pipeline/include/sstferry/ offers. No message, and nothing that is encoded
// here.
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

// Which files of the source travel as they are instead of being rebuilt.
enum class CarryMode : uint8_t {
  kAuto = 0,   // those for which that is exactly as good
  kNever = 1,
  kOnly = 2,   // all, or the transfer is refused
};

// How ChunkData frames are to come: never compressed; as the target's Compress
// messages say, at first not; or always where it saves bytes.
enum class WireCompression : uint8_t { kNone = 0, kAuto = 1, kZstd = 2 };

// What a refresh takes for changed.
enum class CompareMode : uint8_t {
  // What other files back than at the last refresh, and what of the rest is
  // not proved to be unchanged and differs when both sides read it.
  kFiles = 0,
  kDigest = 1,  // what differs when both sides read everything
  kFull = 2,    // everything
};

// A snapshot that a source keeps for a transfer.
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

}  // namespace sstferry
