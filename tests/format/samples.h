// Hand-written messages with a non-default value in every field. Used for
// golden files, bit flips, and the seed corpora of fuzzing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "format/archive.h"
#include "format/archive_log.h"
#include "format/archive_set.h"
#include "format/frame.h"
#include "format/journal.h"
#include "format/lease.h"
#include "format/messages.h"

namespace sstferry {

Hello SampleHello();
HelloAck SampleHelloAck();
End SampleEnd();
ListRequest SampleListRequest();
ListReply SampleListReply();
OpenRequest SampleOpenRequest();
Opened SampleOpened();
Family SampleFamily();
Parts SampleParts();
PlanItems SamplePlanItems();
PlanEnd SamplePlanEnd();
Ping SamplePing();
Stats SampleStats();
Finish SampleFinish();
Compress SampleCompress();
Received SampleReceived();
StatusRequest SampleStatusRequest();
StatusReply SampleStatusReply();
PinRequest SamplePinRequest();
PinReply SamplePinReply();
PinEnd SamplePinEnd();
FactsRequest SampleFactsRequest();
FactsReply SampleFactsReply();
FollowRequest SampleFollowRequest();
WalBytes SampleWalBytes();
FollowEnd SampleFollowEnd();
OtherFileRequest SampleOtherFileRequest();
OtherFilePart SampleOtherFilePart();
CloneSet SampleCloneSet();
CloneFiles SampleCloneFiles();
Part KeyPart(uint32_t id, uint32_t family, const KeyInterval& interval,
             uint64_t bytes, PartNeed need = PartNeed::kSend);
PartRequest SamplePartRequest();
ChunkBegin SampleChunkBegin();
ChunkAck SampleChunkAck();
ChunkEnd SampleChunkEnd();
PartEnd SamplePartEnd();
DigestRequest SampleDigestRequest();
UnitDigestRequest SampleUnitDigestRequest();
FileDigestRequest SampleFileDigestRequest();
FileDigestReply SampleFileDigestReply();
Busy SampleBusy();
GroupRequest SampleGroupRequest();
GroupReply SampleGroupReply();
SiftRequest SampleSiftRequest();
SiftReply SampleSiftReply();
DeltaRequest SampleDeltaRequest();
DigestReply SampleDigestReply();
EntriesRequest SampleEntriesRequest();
EntriesReply SampleEntriesReply();

JournalTransfer SampleJournalTransfer();
JournalPlan SampleJournalPlan();
JournalChunk SampleJournalChunk();
JournalChunk SampleJournalUnit();
JournalIngested SampleJournalIngested();
JournalTargetFiles SampleJournalTargetFiles();
JournalPartDone SampleJournalPartDone();
JournalComplete SampleJournalComplete();

template <typename Message>
std::string Encode(const Message& message) {
  std::string payload;
  Encode(message, &payload);
  return payload;
}

// Returns a frame: header and payload.
std::string MakeFrame(FrameType type, uint64_t sequence,
                      const std::string& payload, uint16_t flags = 0);

// Return a ChunkData frame of 100 times "a", and its payload. The zstd frame is
// written by hand, so no version of the compressor changes it.
std::string SampleCompressedPayload();
std::string SampleCompressedFrame();

// Returns a stream's hello, then a frame of each kind.
std::string SampleStream();

struct SampleFrame {
  FrameType type;
  std::string payload;
};
// Returns one frame of each type. The sequence number of each is its index.
std::vector<SampleFrame> SampleFrames();

// Returns a journal with the magic and one record of each type.
std::string SampleJournal();
// Returns the offsets of the sample journal's records, then its size.
std::vector<uint64_t> SampleJournalOffsets();

Lease SampleLease();
ArchiveSet SampleArchiveSet();
LogHead SampleLogHead();
ArchiveMark SampleArchiveMark();
// Returns the inputs of fuzz_archive.cc, by name.
std::vector<std::pair<std::string, std::string>> SampleArchiveObjects();
// Returns a complete lease file around any payload.
std::string SealedLease(const std::string& payload);

// Decodes the message that frames of `type` carry. Returns OK for ChunkData.
[[nodiscard]] rocksdb::Status DecodePayload(FrameType type,
                                            const rocksdb::Slice& payload);
[[nodiscard]] rocksdb::Status DecodeRecord(const JournalRecord& record);

}  // namespace sstferry
