// One frame: a fixed header, then payload_bytes of payload. All integers are
// little-endian. Normative text: format/FORMAT.md, "Frame"; keep both in step.
//
//   offset  size  field          value
//   0       4     magic          53 46 59 31 ("SFY1" in file order)
//   4       1     version        1
//   5       1     type           FrameType; unknown values are an error
//   6       2     flags          bits 0-7 are ignored, written as 0; bit 8
//                                is kFrameFlagZstd, only in ChunkData; bits
//                                9-15 must be 0
//   8       8     sequence       0, 1, 2 ... per direction of a connection
//   16      4     payload_bytes  at most kMaxPayloadBytes
//   20      4     reserved       0
//   24      8     digest         XXH3-64 of the payload, seeded with the
//                                XXH3-64 of bytes [0, 24)
//
// The sequence number reveals a dropped, repeated or swapped frame. The digest
// covers the header and the payload.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr size_t kFrameHeaderBytes = 32;
inline constexpr uint8_t kFrameVersion = 1;

// Flag bits that a reader must understand.
inline constexpr uint16_t kMandatoryFrameFlags = 0xff00;
// The payload is compressed as described in format/wire_compression.h. Set only
// if both sides agreed on compression.
inline constexpr uint16_t kFrameFlagZstd = 1u << 8;

// Types of frames. The values never change. format/FORMAT.md, "Conversation",
// says which side sends each type.
enum class FrameType : uint8_t {
  // Any connection.
  kHello = 1,     // target -> source, first frame of every connection
  kHelloAck = 2,  // source -> target
  kEnd = 3,       // either: the end state; the sender's last frame
  // Control connection.
  kListRequest = 10,
  kListReply = 11,
  kOpenRequest = 12,   // target: pin a snapshot and plan it
  kOpened = 13,        // source: the pinned snapshot
  kFamily = 14,        // source: one per column family
  kParts = 15,        // source: some parts of the plan
  kPlanItems = 16,     // source: some lines of a printed plan
  kPlanEnd = 17,       // source: the plan is complete, with its totals
  kPing = 18,          // either
  kPong = 19,          // either
  kStats = 20,         // source, once a second while lanes run
  kFinish = 21,        // target: its totals
  kFinished = 22,      // source: its totals, equal to the target's
  kCompress = 23,      // target: compress chunk data from now on, or stop
  kReceived = 24,          // target: parts that earlier runs received
  kStatusRequest = 25, // target: asks for the retained snapshots
  kStatusReply = 26,   // source
  kPinEnd = 29,        // target: it no longer needs the pinned databases
  kCloneSet = 30,      // source: precedes the list of files of a clone
  kCloneFiles = 31,    // source: some files of a clone
  kFactsRequest = 32,  // target: asks how large and how old a database is
  kFactsReply = 33,    // source
  kBusy = 35,          // source: no transfer slot is free, retry later
  kOtherFileRequest = 36,  // target: asks for a part of an application's file
  kOtherFilePart = 37,     // source
  kPinRequest = 38,    // target: pin these databases at nearly one moment
  kPinReply = 39,      // source
  kFollowRequest = 60,  // target: asks for WAL bytes after this position
  kWalBytes = 61,    // source: bytes of a WAL
  kFollowEnd = 62,      // source: end of an answer
  // Lane connections.
  kPartRequest = 40,  // target: send this part
  kChunkBegin = 41,    // source
  kChunkData = 42,     // source: bytes of the SST file
  kChunkEnd = 43,      // source: bounds, totals and digest of the chunk
  kPartEnd = 44,      // source: totals of the part
  kDigestRequest = 45, // target: content digest of an interval
  kDigestReply = 46,   // source
  kEntriesRequest = 47,// target: keys and value digests of an interval
  kEntriesReply = 48,  // source
  kChunkAck = 49,      // target: acknowledges a chunk
  kUnitDigestRequest = 50,  // target: digest of a clone's unit
  kGroupRequest = 51,  // target: digests of a part's groups of entries
  kGroupReply = 52,    // source
  kDeltaRequest = 53,  // target: its entries in groups that differ
  kFileDigestRequest = 54,  // target: requests digests of a clone's file piece
  kFileDigestReply = 55,    // source
  kSiftRequest = 56,  // target: hashes of its entries in groups that differ
  kSiftReply = 57,    // source: which of these hashes it has, too
};

// Returns "Hello", "ChunkData", ..., or "unknown" for a value not in the enum.
const char* FrameTypeName(FrameType type);
bool IsKnownFrameType(uint8_t type);

struct FrameHeader {
  FrameType type = FrameType::kEnd;
  uint16_t flags = 0;
  uint64_t sequence = 0;
  uint32_t payload_bytes = 0;
  uint64_t digest = 0;
};

// Writes the header of a frame, including the digest. The payload is the
// concatenation of `parts`. Sets *digest (may be null) to the frame's digest.
// REQUIRES: `out` has room for kFrameHeaderBytes, and the parts together have
// at most kMaxPayloadBytes.
void EncodeFrameHeader(FrameType type, uint64_t sequence,
                       const rocksdb::Slice* parts, size_t part_count,
                       char* out, uint64_t* digest, uint16_t flags = 0);

// Reads a header and checks its bounds, but not its digest.
// Incomplete    fewer than kFrameHeaderBytes.
// Corruption    magic, type, reserved bits or length are wrong.
// NotSupported  intact, but has a newer frame version.
[[nodiscard]] rocksdb::Status DecodeFrameHeader(const rocksdb::Slice& input,
                                                FrameHeader* header);

// Checks the digest of a frame. Returns Corruption if it does not match the
// header and the payload. `header_bytes` are the kFrameHeaderBytes that
// `header` was decoded from.
[[nodiscard]] rocksdb::Status CheckFrameDigest(
    const char* header_bytes, const FrameHeader& header,
    const rocksdb::Slice& payload);

}  // namespace sstferry
