#include <algorithm>

#include "format/message_fields_lane.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

size_t EncodedBytes(const EntryDigest& item) { return 28 + item.key.size(); }
size_t EncodedBytes(const GroupEntry& item) { return 21 + item.key.size(); }

void LeaveOutShared(const Slice& before, GroupEntry* entry) {
  const size_t shared =
      std::min<size_t>(Slice(entry->key).difference_offset(before), UINT8_MAX);
  entry->shared_bytes = static_cast<uint8_t>(shared);
  entry->key.erase(0, shared);
}

bool PutBackShared(const Slice& before, GroupEntry* entry) {
  const size_t shared = entry->shared_bytes;
  if (shared > before.size() || shared + entry->key.size() > kMaxKeyBytes) {
    return false;
  }
  entry->key.insert(0, before.data(), shared);
  entry->shared_bytes = 0;
  return true;
}

SSTFERRY_CODEC(PartRequest)
SSTFERRY_CODEC(ChunkBegin)
SSTFERRY_CODEC(ChunkAck)
SSTFERRY_CODEC(ChunkEnd)
SSTFERRY_CODEC(PartEnd)
SSTFERRY_CODEC(DigestRequest)
SSTFERRY_CODEC(UnitDigestRequest)
SSTFERRY_CODEC(FileDigestRequest)
SSTFERRY_CODEC(FileDigestReply)
SSTFERRY_CODEC(DigestReply)
SSTFERRY_CODEC(GroupRequest)
SSTFERRY_CODEC(GroupReply)
SSTFERRY_CODEC(SiftRequest)
SSTFERRY_CODEC(SiftReply)
SSTFERRY_CODEC(DeltaRequest)
SSTFERRY_CODEC(EntriesRequest)
SSTFERRY_CODEC(EntriesReply)

}  // namespace sstferry
