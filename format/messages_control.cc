#include "format/message_fields.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

size_t IntervalBytes(const KeyInterval& interval) {
  size_t bytes = 2;
  for (const auto* bound : {&interval.begin, &interval.end}) {
    bytes += bound->has_value() ? 4 + (*bound)->size() : 0;
  }
  return bytes;
}

}  // namespace

size_t EncodedBytes(const Part& item) {
  return 30 + IntervalBytes(item.interval);
}
size_t EncodedBytes(const ReceivedPart&) { return kReceivedPartBytes; }
size_t EncodedBytes(const CloneFile&) { return kCloneFileBytes; }
size_t EncodedBytes(const PlanItem& item) {
  return 21 + IntervalBytes(item.interval) + item.file.size() +
         std::min<size_t>(item.reason.size(), kMaxMessageTextBytes);
}

const char* SourceProcessName(SourceProcess process) {
  switch (process) {
    case SourceProcess::kUnknown:
      return "unknown";
    case SourceProcess::kOpen:
      return "open";
    case SourceProcess::kClosed:
      return "closed";
  }
  return "?";
}

const char* CutReasonName(CutReason reason) {
  constexpr const char* kNames[] = {
      "none",         "first",      "new-life",     "barrier",
      "sequence-gap", "unlogged",   "blob-index",   "large-record",
      "not-held",     "filter",     "cut-every",    "max-replay",
      "clock",        "damage"};
  const auto index = static_cast<size_t>(reason);
  return index <= kMaxCutReason ? kNames[index] : "unknown";
}

SSTFERRY_CODEC(ListRequest)
SSTFERRY_CODEC(ListReply)
SSTFERRY_CODEC(OpenRequest)
SSTFERRY_CODEC(Opened)
SSTFERRY_CODEC(Family)
SSTFERRY_CODEC(Parts)
SSTFERRY_CODEC(PlanItems)
SSTFERRY_CODEC(CloneSet)
SSTFERRY_CODEC(CloneFiles)
SSTFERRY_CODEC(PlanEnd)
SSTFERRY_CODEC(Ping)
SSTFERRY_CODEC(Stats)
SSTFERRY_CODEC(Received)
SSTFERRY_CODEC(StatusRequest)
SSTFERRY_CODEC(StatusReply)
SSTFERRY_CODEC(FactsRequest)
SSTFERRY_CODEC(FactsReply)
SSTFERRY_CODEC(FollowRequest)
SSTFERRY_CODEC(WalBytes)
SSTFERRY_CODEC(FollowEnd)
SSTFERRY_CODEC(PinRequest)
SSTFERRY_CODEC(PinReply)
SSTFERRY_CODEC(PinEnd)
SSTFERRY_CODEC(Busy)
SSTFERRY_CODEC(Compress)
SSTFERRY_CODEC(OtherFileRequest)
SSTFERRY_CODEC(OtherFilePart)
SSTFERRY_CODEC(Finish)

}  // namespace sstferry
