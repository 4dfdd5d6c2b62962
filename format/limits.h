// Every maximum that a peer or a file could exceed, with its reason. A length
// is compared with its limit before anything is allocated for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sstferry {

// One frame: small enough that two per lane bound the memory of a receiver,
// large enough that system calls do not matter.
inline constexpr uint32_t kMaxPayloadBytes = 1u << 20;

// Levels of zstd for chunk data: those above cost memory by the hundred MiB.
inline constexpr uint32_t kMaxCompressionLevel = 19;

// A handshake's frames, before anything is known of the peer: names, versions
// and one message text fit many times.
inline constexpr uint32_t kMaxHandshakeBytes = 16u << 10;

// A key must fit twice (smallest and largest) into one frame, with room for
// the other fields. RocksDB itself recommends keys far below this.
inline constexpr uint32_t kMaxKeyBytes = 256u << 10;

// One value: RocksDB's block builder addresses a block with 32 bits.
inline constexpr uint64_t kMaxValueBytes = 1ull << 30;

// A chunk: --chunk-bytes is at most this, and one entry may overrun it.
inline constexpr uint64_t kMinChunkBytes = 64u << 10;
inline constexpr uint64_t kMaxChunkBytes = 4ull << 30;
inline constexpr uint64_t kMaxChunkFileBytes =
    kMaxChunkBytes + 2 * kMaxValueBytes;

// A name of a served database (also its alphabet: A-Z a-z 0-9 . _ -).
inline constexpr uint32_t kMaxDatabaseNameBytes = 64;
// RocksDB puts no bound on family names; longer ones are refused.
inline constexpr uint32_t kMaxFamilyNameBytes = 4096;
// The totals of every family fit into one Finish frame.
inline constexpr uint32_t kMaxFamilies = 16384;
// Comparator, merge operator and other identifiers.
inline constexpr uint32_t kMaxIdentifierBytes = 1024;
// One family's options as text; real ones take about 6 KB.
inline constexpr uint32_t kMaxOptionCount = 1024;
inline constexpr uint32_t kMaxOptionValueBytes = 16u << 10;
// Error and log texts that cross the wire.
inline constexpr uint32_t kMaxMessageTextBytes = 4096;
// Notes of an opened source: all of them fit into a quarter of a frame.
inline constexpr uint32_t kMaxNotes = 256;
inline constexpr uint32_t kMaxNoteBytes = 1024;
// Directories that a source names, and all they lie in.
inline constexpr uint32_t kMaxPlaces = 256;
// Compression types a side can list (RocksDB's type is one byte).
inline constexpr uint32_t kMaxCompressions = 256;

inline constexpr uint32_t kMaxLanes = 64;
// Ranges of one transfer: bounds the plan in memory (about 200 B each).
inline constexpr uint32_t kMaxRanges = 1u << 18;
// Bounds of its files that a target tells: each may cut a range in two.
inline constexpr uint32_t kMaxTargetBounds = kMaxRanges / 16;
// Databases one server lists.
inline constexpr uint32_t kMaxServedDatabases = 4096;

// Chunks of one range: ordinals have 32 bits.
inline constexpr uint64_t kMaxChunkOrdinal = 0xffffffff;

// Snapshots one server tells of: far above the transfers it allows.
inline constexpr uint32_t kMaxHeldSnapshots = 4096;

}  // namespace sstferry
