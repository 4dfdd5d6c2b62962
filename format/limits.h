// Maximums for data from a peer or a file, each with its reason. A reader
// compares a length with its maximum before it allocates memory for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sstferry {

// One frame: small enough that two frames per lane limit a receiver's memory,
// large enough that the cost of system calls does not matter.
inline constexpr uint32_t kMaxPayloadBytes = 1u << 20;

// zstd level for chunk data. Higher levels need hundreds of MiB of memory.
inline constexpr uint32_t kMaxCompressionLevel = 19;

// One frame of a handshake, while the peer is still unknown. Names, versions
// and one message text need only a fraction of it.
inline constexpr uint32_t kMaxHandshakeBytes = 16u << 10;

// One key. Two keys (smallest and largest) must fit into one frame together
// with the other fields. RocksDB itself recommends much smaller keys.
inline constexpr uint32_t kMaxKeyBytes = 256u << 10;

// One value. RocksDB's block builder uses 32-bit offsets in a block.
inline constexpr uint64_t kMaxValueBytes = 1ull << 30;

// Limits for --chunk-bytes; one entry may make a chunk larger.
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
// Names of comparators, merge operators and similar objects.
inline constexpr uint32_t kMaxIdentifierBytes = 1024;
// Options of one family as text; real families have about 6 KB.
inline constexpr uint32_t kMaxOptionCount = 1024;
inline constexpr uint32_t kMaxOptionValueBytes = 16u << 10;
// Shell-quoted command line in a journal.
inline constexpr uint32_t kMaxCommandLineBytes = 64u << 10;
// Error and log texts in messages.
inline constexpr uint32_t kMaxMessageTextBytes = 4096;
// Notes of an opened source: together they use a quarter of a frame.
inline constexpr uint32_t kMaxNotes = 256;
inline constexpr uint32_t kMaxNoteBytes = 1024;
// Directories that a source reports: its own, and all their parents.
inline constexpr uint32_t kMaxPlaces = 256;
// Lanes of one transfer.
inline constexpr uint32_t kMaxLanes = 64;
// Parts of one transfer: limits the plan's memory (about 200 B per part).
inline constexpr uint32_t kMaxParts = 1u << 18;
// Channels of one stream: a control connection, the lanes of a transfer, and
// channels that both sides are still closing.
inline constexpr uint32_t kMaxStreamChannels = 2 * kMaxLanes + 16;
// Payload of one frame of a stream: large enough that the cost of system calls
// does not matter, small enough that no channel waits long on a slow link.
inline constexpr uint32_t kMaxStreamDataBytes = 64u << 10;
// Credit of a channel: the maximum bytes that its receiver buffers for it.
inline constexpr uint32_t kMinStreamCreditBytes = 64u << 10;
inline constexpr uint32_t kMaxStreamCreditBytes = 16u << 20;
// Nanoseconds since 1970 that a file system can store (until 2262).
inline constexpr uint64_t kMaxModifiedNs = (1ull << 63) - 1;
// Groups of entries in one part of a refresh: their digests fit into one
// payload.
inline constexpr uint32_t kMaxGroups = 60'000;
inline constexpr uint32_t kMaxGroupEntries = 1u << 16;
// Marks of entries in one SiftRequest: with the groups they fit into one
// payload.
inline constexpr uint32_t kMarkBytes = 3;
inline constexpr uint32_t kMaxMarks = 200'000;
// Names of a replica's families in one OpenRequest: with the other fields they
// fit into a payload.
inline constexpr size_t kMaxReplicaFamilyBytes = 256u << 10;
// Databases that one server lists.
inline constexpr uint32_t kMaxServedDatabases = 4096;

// Number of a database's file, from 1 on. RocksDB continues after the largest
// number that it finds, so a larger one could make its counter wrap.
inline constexpr uint64_t kMaxFileNumber = 1ull << 62;

// Piece of a clone's file in one request for digests: the maximum that S3
// accepts in one request.
inline constexpr uint64_t kMaxFilePieceBytes = 5ull << 30;
// Units that begin in such a piece: their digests fit into one payload.
inline constexpr uint32_t kMaxFilePieceUnits = 60'000;

// MANIFEST of a database. By default RocksDB begins a new one at 1 GiB, and
// whenever it opens the database. Without this limit, a huge file of zeros,
// which a reader skips, would keep the reader busy for a long time.
inline constexpr uint64_t kMaxManifestFileBytes = 4ull << 30;
// Memory for a decoded MANIFEST: its state, and the edit or atomic group that
// is applied next. Also the size of one record: the first record of a family
// names all of its tables, in fewer bytes than they take when decoded. The
// limit allows more than a million tables of about 0.4 KB, five times as many
// as a clone can have (kMaxParts), or a million column families. Without it, a
// crafted MANIFEST could fill the memory: its items of 3 to 22 bytes take 16 to
// 330 bytes when decoded.
inline constexpr uint64_t kMaxManifestMemoryBytes = 512u << 20;
// OPTIONS file, which grows with the number of families. It is read whole.
inline constexpr uint64_t kMaxOptionsFileBytes = 256u << 20;
// CURRENT and IDENTITY, which have one line each and are read whole.
inline constexpr uint64_t kMaxIdentityBytes = 64u << 10;

// Chunks of one part: chunk ordinals have 32 bits.
inline constexpr uint64_t kMaxChunkOrdinal = 0xffffffff;

// Message that says why one of many databases was not pinned.
inline constexpr uint32_t kMaxPinProblemBytes = 160;

// Description of a target (machine and directory) that its source shows.
inline constexpr uint32_t kMaxTargetTextBytes = 512;

// Retained snapshots that one server reports: many more than the transfers it
// allows. All of them, with their database names, fit into one frame.
inline constexpr uint32_t kMaxRetainedSnapshots = 1024;
// Followers that one server reports, in the same frame.
inline constexpr uint32_t kMaxReportedFollowers = 256;

// Time after which a target that got Busy retries. The minimum protects the
// source from many targets that retry often; the maximum limits how long a
// source can make a target wait.
inline constexpr uint32_t kMinRetryAfterMillis = 100;
inline constexpr uint32_t kMaxRetryAfterMillis = 60'000;

}  // namespace sstferry
