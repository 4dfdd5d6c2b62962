#include "format/frame.h"

#include <cassert>
#include <string>

#include "format/coding.h"
#include "format/digest.h"
#include "format/end_state.h"
#include "format/limits.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr char kMagic[4] = {'S', 'F', 'Y', '1'};
constexpr size_t kDigestOffset = 24;

struct TypeName {
  FrameType type;
  const char* name;
};

constexpr TypeName kTypeNames[] = {
    {FrameType::kHello, "Hello"},
    {FrameType::kHelloAck, "HelloAck"},
    {FrameType::kEnd, "End"},
    {FrameType::kListRequest, "ListRequest"},
    {FrameType::kListReply, "ListReply"},
    {FrameType::kOpenRequest, "OpenRequest"},
    {FrameType::kOpened, "Opened"},
    {FrameType::kFamily, "Family"},
    {FrameType::kParts, "Parts"},
    {FrameType::kPlanItems, "PlanItems"},
    {FrameType::kPlanEnd, "PlanEnd"},
    {FrameType::kPing, "Ping"},
    {FrameType::kPong, "Pong"},
    {FrameType::kStats, "Stats"},
    {FrameType::kFinish, "Finish"},
    {FrameType::kFinished, "Finished"},
    {FrameType::kCompress, "Compress"},
    {FrameType::kReceived, "Received"},
    {FrameType::kStatusRequest, "StatusRequest"},
    {FrameType::kStatusReply, "StatusReply"},
    {FrameType::kCloneSet, "CloneSet"},
    {FrameType::kCloneFiles, "CloneFiles"},
    {FrameType::kFactsRequest, "FactsRequest"},
    {FrameType::kFactsReply, "FactsReply"},
    {FrameType::kBusy, "Busy"},
    {FrameType::kOtherFileRequest, "OtherFileRequest"},
    {FrameType::kOtherFilePart, "OtherFilePart"},
    {FrameType::kPinRequest, "PinRequest"},
    {FrameType::kPinReply, "PinReply"},
    {FrameType::kPinEnd, "PinEnd"},
    {FrameType::kFollowRequest, "FollowRequest"},
    {FrameType::kWalBytes, "WalBytes"},
    {FrameType::kFollowEnd, "FollowEnd"},
    {FrameType::kPartRequest, "PartRequest"},
    {FrameType::kChunkBegin, "ChunkBegin"},
    {FrameType::kChunkData, "ChunkData"},
    {FrameType::kChunkEnd, "ChunkEnd"},
    {FrameType::kPartEnd, "PartEnd"},
    {FrameType::kDigestRequest, "DigestRequest"},
    {FrameType::kDigestReply, "DigestReply"},
    {FrameType::kEntriesRequest, "EntriesRequest"},
    {FrameType::kEntriesReply, "EntriesReply"},
    {FrameType::kChunkAck, "ChunkAck"},
    {FrameType::kUnitDigestRequest, "UnitDigestRequest"},
    {FrameType::kGroupRequest, "GroupRequest"},
    {FrameType::kGroupReply, "GroupReply"},
    {FrameType::kDeltaRequest, "DeltaRequest"},
    {FrameType::kFileDigestRequest, "FileDigestRequest"},
    {FrameType::kFileDigestReply, "FileDigestReply"},
    {FrameType::kSiftRequest, "SiftRequest"},
    {FrameType::kSiftReply, "SiftReply"},
};

const TypeName* FindType(uint8_t type) {
  for (const TypeName& row : kTypeNames) {
    if (static_cast<uint8_t>(row.type) == type) {
      return &row;
    }
  }
  return nullptr;
}

uint64_t SeedOf(const char* header_bytes) {
  return Digest64(Slice(header_bytes, kDigestOffset));
}

Status Bad(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "frame header: " + what);
}

}  // namespace

const char* FrameTypeName(FrameType type) {
  const TypeName* row = FindType(static_cast<uint8_t>(type));
  return row == nullptr ? "unknown" : row->name;
}

bool IsKnownFrameType(uint8_t type) { return FindType(type) != nullptr; }

void EncodeFrameHeader(FrameType type, uint64_t sequence, const Slice* parts,
                       size_t part_count, char* out, uint64_t* digest,
                       uint16_t flags) {
  size_t payload_bytes = 0;
  for (size_t i = 0; i < part_count; ++i) {
    payload_bytes += parts[i].size();
  }
  assert(payload_bytes <= kMaxPayloadBytes);
  memcpy(out, kMagic, sizeof(kMagic));
  out[4] = static_cast<char>(kFrameVersion);
  out[5] = static_cast<char>(type);
  EncodeFixed16(out + 6, flags);
  EncodeFixed64(out + 8, sequence);
  EncodeFixed32(out + 16, static_cast<uint32_t>(payload_bytes));
  EncodeFixed32(out + 20, 0);

  uint64_t hash;
  if (part_count <= 1) {
    hash = Digest64(part_count == 0 ? Slice() : parts[0], SeedOf(out));
  } else {
    Digest64Stream stream(SeedOf(out));
    for (size_t i = 0; i < part_count; ++i) {
      stream.Add(parts[i]);
    }
    hash = stream.Finish();
  }
  EncodeFixed64(out + kDigestOffset, hash);
  if (digest != nullptr) {
    *digest = hash;
  }
}

Status DecodeFrameHeader(const Slice& input, FrameHeader* header) {
  if (input.size() < kFrameHeaderBytes) {
    return Status::Incomplete(
        "frame header", "expected 32 bytes, found " +
                            std::to_string(input.size()));
  }
  const char* in = input.data();
  if (memcmp(in, kMagic, sizeof(kMagic)) != 0) {
    return Bad("magic: expected 53465931, found " + ToHex(Slice(in, 4)) +
               ", offset 0");
  }
  const uint8_t version = static_cast<uint8_t>(in[4]);
  if (version != kFrameVersion) {
    const std::string problem =
        "version: expected 1, found " + std::to_string(version) + ", offset 4";
    return version > kFrameVersion
               ? Status::NotSupported(EndStateName(EndState::kIncompatible),
                                      "frame header: " + problem)
               : Bad(problem);
  }
  const uint8_t type = static_cast<uint8_t>(in[5]);
  if (!IsKnownFrameType(type)) {
    return Bad("type: expected a known type, found " + std::to_string(type) +
               ", offset 5");
  }
  const uint16_t flags = DecodeFixed16(in + 6);
  const bool is_chunk_data =
      type == static_cast<uint8_t>(FrameType::kChunkData);
  const uint16_t known = is_chunk_data ? kFrameFlagZstd : 0;
  if ((flags & kMandatoryFrameFlags & ~known) != 0) {
    return Bad(std::string("flags: expected bits ") +
               (is_chunk_data ? "9-15" : "8-15") + " to be 0, found " +
               ToHex(Slice(in + 6, 2)) + ", offset 6");
  }
  const uint32_t payload_bytes = DecodeFixed32(in + 16);
  if (payload_bytes > kMaxPayloadBytes) {
    return Bad("payload_bytes: expected at most " +
               std::to_string(kMaxPayloadBytes) + ", found " +
               std::to_string(payload_bytes) + ", offset 16");
  }
  if (DecodeFixed32(in + 20) != 0) {
    return Bad("reserved: expected 00000000, found " +
               ToHex(Slice(in + 20, 4)) + ", offset 20");
  }
  header->type = static_cast<FrameType>(type);
  header->flags = flags;
  header->sequence = DecodeFixed64(in + 8);
  header->payload_bytes = payload_bytes;
  header->digest = DecodeFixed64(in + kDigestOffset);
  return Status::OK();
}

Status CheckFrameDigest(const char* header_bytes, const FrameHeader& header,
                        const Slice& payload) {
  std::string problem;
  if (payload.size() != header.payload_bytes) {
    problem = "payload: expected " + std::to_string(header.payload_bytes) +
              " bytes, found " + std::to_string(payload.size());
  } else {
    char found[8];
    EncodeFixed64(found, Digest64(payload, SeedOf(header_bytes)));
    if (DecodeFixed64(found) == header.digest) {
      return Status::OK();
    }
    problem = "digest: expected " +
              ToHex(Slice(header_bytes + kDigestOffset, 8)) + ", found " +
              ToHex(Slice(found, 8));
  }
  return MakeStatus(EndState::kCorrupt,
                    std::string(FrameTypeName(header.type)) + " frame: " +
                        problem + ", sequence " +
                        std::to_string(header.sequence));
}

}  // namespace sstferry
