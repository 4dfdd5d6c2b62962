// Maximums for data from a peer or a file, with a reason for each. A reader
// compares a length with its maximum before it allocates memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sstferry {

// Maximum payload of a frame. It is small, because a receiver keeps two frames
// per lane in memory. It is large enough that the cost of system calls does not
// matter.
inline constexpr uint32_t kMaxPayloadBytes = 1u << 20;

// Maximum zstd level for chunk data. Higher levels need hundreds of MiB of
// memory.
inline constexpr uint32_t kMaxCompressionLevel = 19;

// Maximum payload of a handshake frame, which arrives while the peer is still
// unknown. Names, versions and one message text need only a fraction of it.
inline constexpr uint32_t kMaxHandshakeBytes = 16u << 10;

// Maximum size of a key. Two keys (smallest and largest) and other fields must
// fit into one frame. RocksDB itself recommends much smaller keys.
inline constexpr uint32_t kMaxKeyBytes = 256u << 10;

// Maximum size of a value. RocksDB's block builder uses 32-bit offsets in a
// block.
inline constexpr uint64_t kMaxValueBytes = 1ull << 30;

// Limits for --chunk-bytes. The last entry may make a chunk larger.
inline constexpr uint64_t kMinChunkBytes = 64u << 10;
inline constexpr uint64_t kMaxChunkBytes = 4ull << 30;
inline constexpr uint64_t kMaxChunkFileBytes =
    kMaxChunkBytes + 2 * kMaxValueBytes;

// Limits for the name of a served database, which consists of components of A-Z
// a-z 0-9 . _ - separated by slashes. kMaxServedDatabases names fit into one
// frame.
inline constexpr uint32_t kMaxDatabaseNameBytes = 240;
inline constexpr uint32_t kMaxDatabaseNameComponents = 8;
// Maximum size of a column family's name. RocksDB has no maximum, but longer
// names are refused.
inline constexpr uint32_t kMaxFamilyNameBytes = 4096;
// Maximum number of column families in a transfer. One Finish frame has room
// for the totals of all of them.
inline constexpr uint32_t kMaxFamilies = 16384;
// Maximum size of the name of a comparator, a merge operator or a similar
// object.
inline constexpr uint32_t kMaxIdentifierBytes = 1024;
// Limits for the options of one family as text. A real family has about 6 KB.
inline constexpr uint32_t kMaxOptionCount = 1024;
inline constexpr uint32_t kMaxOptionValueBytes = 16u << 10;
// Maximum size of a shell-quoted command line in a journal.
inline constexpr uint32_t kMaxCommandLineBytes = 64u << 10;
// Maximum size of an error text or a log text in a message.
inline constexpr uint32_t kMaxMessageTextBytes = 4096;
// Limits for the notes in an Opened message. All notes together use at most a
// quarter of a frame.
inline constexpr uint32_t kMaxNotes = 256;
inline constexpr uint32_t kMaxNoteBytes = 1024;
// Maximum number of directories that a source reports: its own directories, and
// all of their parents.
inline constexpr uint32_t kMaxPlaces = 256;
// Maximum number of lanes of a transfer.
inline constexpr uint32_t kMaxLanes = 64;
// Maximum number of parts of a transfer. It limits the memory of a plan, which
// has about 200 bytes per part.
inline constexpr uint32_t kMaxParts = 1u << 18;
// Maximum number of channels in one stream: a control connection, the lanes of
// a transfer, and channels that both sides are still closing.
inline constexpr uint32_t kMaxStreamChannels = 2 * kMaxLanes + 16;
// Maximum payload of a frame in a stream. It is large enough that the cost of
// system calls does not matter. It is small enough that no channel waits long
// on a slow link.
inline constexpr uint32_t kMaxStreamDataBytes = 64u << 10;
// Limits for the credit of a channel: the maximum bytes that its receiver
// buffers.
inline constexpr uint32_t kMinStreamCreditBytes = 64u << 10;
inline constexpr uint32_t kMaxStreamCreditBytes = 16u << 20;
// Maximum time of a file in nanoseconds since 1970 (in the year 2262). File
// systems cannot store a later time.
inline constexpr uint64_t kMaxModifiedNs = (1ull << 63) - 1;
// Maximum number of groups of entries in one part of a refresh. The digests of
// all groups fit into one payload.
inline constexpr uint32_t kMaxGroups = 60'000;
inline constexpr uint32_t kMaxGroupEntries = 1u << 16;
// Size of an entry's mark, and maximum number of marks in one SiftRequest. The
// marks and the group indexes fit into one payload.
inline constexpr uint32_t kMarkBytes = 3;
inline constexpr uint32_t kMaxMarks = 200'000;
// Maximum size of all family names of a replica in one OpenRequest. The names
// and the other fields fit into one payload.
inline constexpr size_t kMaxReplicaFamilyBytes = 256u << 10;
// Maximum number of databases that one server lists.
inline constexpr uint32_t kMaxServedDatabases = 4096;

// Maximum number of a database file; numbers begin at 1. RocksDB continues
// after the largest number that it finds. After a larger number, its counter
// could overflow.
inline constexpr uint64_t kMaxFileNumber = 1ull << 62;

// Maximum size of a file piece in a request for digests. S3 accepts at most
// this size in one request.
inline constexpr uint64_t kMaxFilePieceBytes = 5ull << 30;
// Maximum number of units that begin in such a piece. The digests of these
// units fit into one payload.
inline constexpr uint32_t kMaxFilePieceUnits = 60'000;

// Maximum size of a MANIFEST. RocksDB starts a new MANIFEST whenever it opens
// the database and, by default, at 1 GiB. A reader skips zeros. Without this
// limit, a huge file of zeros would keep the reader busy for a long time.
inline constexpr uint64_t kMaxManifestFileBytes = 4ull << 30;
// Maximum memory for a decoded MANIFEST: for its state, and for the edit or
// atomic group that is applied next. Without this limit, a crafted MANIFEST
// could fill the memory, because items of 3 to 22 bytes take 16 to 330 bytes
// when decoded. The limit is enough for more than a million tables of about 0.4
// KB, five times as many as a clone can have (kMaxParts), or for a million
// column families. It is also the maximum size of one record, because the first
// record of a family names all tables of the family.
inline constexpr uint64_t kMaxManifestMemoryBytes = 512u << 20;
// Maximum size of an OPTIONS file, which grows with the number of families.
// Readers read the whole file.
inline constexpr uint64_t kMaxOptionsFileBytes = 256u << 20;
// Maximum size of CURRENT and IDENTITY, which have one line each. Readers read
// the whole file.
inline constexpr uint64_t kMaxIdentityBytes = 64u << 10;

// Maximum index of a chunk in its part. The index has 32 bits.
inline constexpr uint64_t kMaxChunkOrdinal = 0xffffffff;

// Maximum size of the message that says why a database was not pinned.
inline constexpr uint32_t kMaxPinProblemBytes = 160;

// Maximum size of a target's description (machine and directory), which the
// source shows.
inline constexpr uint32_t kMaxTargetTextBytes = 512;

// Maximum number of retained snapshots that one server reports. A server allows
// far fewer transfers. All snapshots, with their database names, fit into one
// frame.
inline constexpr uint32_t kMaxRetainedSnapshots = 1024;
// Maximum number of followers that one server reports in the same frame.
inline constexpr uint32_t kMaxReportedFollowers = 256;

// Limits for the time after which a target retries after a Busy. The minimum
// protects the source from many targets that retry often. The maximum limits
// how long a source can make a target wait.
inline constexpr uint32_t kMinRetryAfterMillis = 100;
inline constexpr uint32_t kMaxRetryAfterMillis = 60'000;

}  // namespace sstferry
