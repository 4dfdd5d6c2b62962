// Input: a byte with the frame type, then a payload. A decoded message must
// encode to the same bytes, because each message has exactly one encoding.
#include <cstdlib>

#include "tests/format/samples.h"

namespace {

template <typename Message>
void Check(const rocksdb::Slice& payload) {
  Message message;
  if (Decode(payload, &message).ok() &&
      sstferry::Encode(message) != payload.ToString()) {
    abort();
  }
}

template <typename... Messages>
void CheckAll(size_t which, const rocksdb::Slice& payload) {
  size_t index = 0;
  ((index++ == which ? Check<Messages>(payload) : void()), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  if (size == 0) {
    return 0;
  }
  const rocksdb::Slice payload(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  DecodePayload(static_cast<FrameType>(data[0]), payload)
      .PermitUncheckedError();
  CheckAll<Hello, HelloAck, End, ListRequest, ListReply, OpenRequest, Opened,
           Family, Parts, PlanItems, PlanEnd, Ping, Stats, Finish, Compress,
           Received, StatusRequest, StatusReply, FactsRequest, FactsReply,
           PinRequest, PinReply, PinEnd, FollowRequest, WalBytes, FollowEnd,
           OtherFileRequest, OtherFilePart, CloneSet, CloneFiles, ChunkAck,
           UnitDigestRequest, Busy, GroupRequest, GroupReply, DeltaRequest,
           FileDigestRequest, FileDigestReply, SiftRequest, SiftReply,
           PartRequest, ChunkBegin, ChunkEnd, PartEnd, DigestRequest,
           DigestReply, EntriesRequest, EntriesReply, JournalTransfer,
           JournalPlan, JournalChunk, JournalIngested, JournalTargetFiles,
           JournalPartDone, JournalComplete>(data[0], payload);
  return 0;
}
