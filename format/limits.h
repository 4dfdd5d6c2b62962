// Maximums for data from a peer or a file, each with its reason. A reader
// compares a length with its maximum before it allocates anything for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sstferry {

// One frame: small enough that two per lane bound the memory of a receiver,
// large enough that system calls do not matter.
inline constexpr uint32_t kMaxPayloadBytes = 1u << 20;

// Level of zstd for chunk data: higher levels take hundreds of MiB of memory.
inline constexpr uint32_t kMaxCompressionLevel = 19;

// One frame of a handshake, while the peer is still unknown. Names, versions
// and one message text take a fraction of it.
inline constexpr uint32_t kMaxHandshakeBytes = 16u << 10;

// One key. Two of them (smallest and largest) must fit into one frame together
// with the other fields. RocksDB itself recommends keys far below this.
inline constexpr uint32_t kMaxKeyBytes = 256u << 10;

// One value. RocksDB's block builder addresses a block with 32 bits.
inline constexpr uint64_t kMaxValueBytes = 1ull << 30;

// Bounds of --chunk-bytes; one entry may make a chunk larger.
inline constexpr uint64_t kMinChunkBytes = 64u << 10;
inline constexpr uint64_t kMaxChunkBytes = 4ull << 30;
inline constexpr uint64_t kMaxChunkFileBytes =
    kMaxChunkBytes + 2 * kMaxValueBytes;

// Name of a served database: components of A-Z a-z 0-9 . _ - separated by
// slashes. kMaxServedDatabases names fit into one frame.
inline constexpr uint32_t kMaxDatabaseNameBytes = 240;
inline constexpr uint32_t kMaxDatabaseNameComponents = 8;
// Name of a column family. RocksDB has no maximum; longer names are refused.
inline constexpr uint32_t kMaxFamilyNameBytes = 4096;
// Column families of a transfer: the totals of all families fit into one Finish
// frame.
inline constexpr uint32_t kMaxFamilies = 16384;
// Names of comparators, merge operators and the like.
inline constexpr uint32_t kMaxIdentifierBytes = 1024;
// Options of one family as text; real ones take about 6 KB.
inline constexpr uint32_t kMaxOptionCount = 1024;
inline constexpr uint32_t kMaxOptionValueBytes = 16u << 10;
// Shell-quoted command line in a journal.
inline constexpr uint32_t kMaxCommandLineBytes = 64u << 10;
// Error and log texts in messages.
inline constexpr uint32_t kMaxMessageTextBytes = 4096;
// Notes of an opened source: all of them take a quarter of a frame.
inline constexpr uint32_t kMaxNotes = 256;
inline constexpr uint32_t kMaxNoteBytes = 1024;
// Directories that a source reports: its own, and all that contain them.
inline constexpr uint32_t kMaxPlaces = 256;
// Compression types a side can list (RocksDB's type is one byte).

inline constexpr uint32_t kMaxLanes = 64;
// Parts of one transfer: bounds the memory of the plan (about 200 B each).
inline constexpr uint32_t kMaxParts = 1u << 18;
// Channels of one stream: a control connection, the lanes of a transfer, and
// channels that both sides are still closing.
inline constexpr uint32_t kMaxStreamChannels = 2 * kMaxLanes + 16;
// Payload of one frame of a stream: large enough that system calls do not
// matter, small enough that every channel soon has its turn on a slow link.
inline constexpr uint32_t kMaxStreamDataBytes = 64u << 10;
// Credit of a channel: the most bytes that its receiver buffers for it.
inline constexpr uint32_t kMinStreamCreditBytes = 64u << 10;
inline constexpr uint32_t kMaxStreamCreditBytes = 16u << 20;
// Nanoseconds since 1970 that a file system can store: until 2262.
inline constexpr uint64_t kMaxModifiedNs = (1ull << 63) - 1;
// Groups of entries in one part of a refresh: their digests fit into a payload.
inline constexpr uint32_t kMaxGroups = 60'000;
inline constexpr uint32_t kMaxGroupEntries = 1u << 16;
// Marks of entries in one SiftRequest: with the groups they fit into a payload.
inline constexpr uint32_t kMarkBytes = 3;
inline constexpr uint32_t kMaxMarks = 200'000;
// Source record that a source stores at a target, and one message with a part
// of it.
inline constexpr uint64_t kMaxSourceRecordBytes = 16u << 20;
inline constexpr uint32_t kMaxSourceRecordPartBytes = 256u << 10;
// Databases that one server lists.
inline constexpr uint32_t kMaxServedDatabases = 4096;

// Piece of a clone's file in one request for digests: S3 accepts no more in one
// request. Units that begin in a piece: their digests fit into a payload.
inline constexpr uint64_t kMaxFilePieceBytes = 5ull << 30;
inline constexpr uint32_t kMaxFilePieceUnits = 60'000;

// Chunks of one part: ordinals have 32 bits.
inline constexpr uint64_t kMaxChunkOrdinal = 0xffffffff;

// Message with the reason why one of many databases is not pinned.
inline constexpr uint32_t kMaxPinProblemBytes = 160;

// Description of a target (machine and directory) as its source shows it.
inline constexpr uint32_t kMaxTargetTextBytes = 512;

// Retained snapshots that one server reports: far above the transfers it
// allows. All of them, with the names of databases, fit into one frame.
inline constexpr uint32_t kMaxRetainedSnapshots = 1024;
// Followers that one server reports, in the same frame.
inline constexpr uint32_t kMaxReportedFollowers = 256;

// Time after which a target that found no place retries. The minimum protects
// the source from many targets that retry often; the maximum limits the time
// that a source can make a target wait.
inline constexpr uint32_t kMinRetryAfterMillis = 100;
inline constexpr uint32_t kMaxRetryAfterMillis = 60'000;

}  // namespace sstferry
