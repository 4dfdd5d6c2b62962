// Hand-written messages with every field set to something that is not its
// default, for goldens, bit flips, fuzzing and its seed corpora.
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
FollowBytes SampleFollowBytes();
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

// Header and payload.
std::string MakeFrame(FrameType type, uint64_t sequence,
                      const std::string& payload, uint16_t flags = 0);

// A ChunkData frame of 100 times "a", its zstd frame written by hand, so that
// no version of a compressor changes it; and its payload.
std::string SampleCompressedPayload();
std::string SampleCompressedFrame();

// A hello, then a frame of each kind.
std::string SampleStream();

struct SampleFrame {
  FrameType type;
  std::string payload;
};
// One of each type; the sequence of a sample's frame is its index.
std::vector<SampleFrame> SampleFrames();

// Magic and one record of each type.
std::string SampleJournal();
// Offsets of the sample journal's records, then its size.
std::vector<uint64_t> SampleJournalOffsets();

Lease SampleLease();
ArchiveSet SampleArchiveSet();
LogHead SampleLogHead();
ArchiveMark SampleArchiveMark();
// Inputs of fuzz_archive.cc, by name.
std::vector<std::pair<std::string, std::string>> SampleArchiveObjects();
// A whole lease file around any payload.
std::string SealedLease(const std::string& payload);

// Decode() of the message that `type` carries; OK for ChunkData.
[[nodiscard]] rocksdb::Status DecodePayload(FrameType type,
                                            const rocksdb::Slice& payload);
[[nodiscard]] rocksdb::Status DecodeRecord(const JournalRecord& record);

}  // namespace sstferry
