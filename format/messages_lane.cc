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

void PartRequest::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status PartRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("PartRequest", payload, this);
}

void ChunkBegin::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status ChunkBegin::DecodeFrom(const Slice& payload) {
  return DecodeFields("ChunkBegin", payload, this);
}

void ChunkAck::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status ChunkAck::DecodeFrom(const Slice& payload) {
  return DecodeFields("ChunkAck", payload, this);
}

void ChunkEnd::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status ChunkEnd::DecodeFrom(const Slice& payload) {
  return DecodeFields("ChunkEnd", payload, this);
}

void PartEnd::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status PartEnd::DecodeFrom(const Slice& payload) {
  return DecodeFields("PartEnd", payload, this);
}

void DigestRequest::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status DigestRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("DigestRequest", payload, this);
}

void UnitDigestRequest::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status UnitDigestRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("UnitDigestRequest", payload, this);
}

void DigestReply::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status DigestReply::DecodeFrom(const Slice& payload) {
  return DecodeFields("DigestReply", payload, this);
}

void GroupRequest::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status GroupRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("GroupRequest", payload, this);
}

void GroupReply::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status GroupReply::DecodeFrom(const Slice& payload) {
  return DecodeFields("GroupReply", payload, this);
}

void DeltaRequest::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status DeltaRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("DeltaRequest", payload, this);
}

void EntriesRequest::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status EntriesRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("EntriesRequest", payload, this);
}

void EntriesReply::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status EntriesReply::DecodeFrom(const Slice& payload) {
  return DecodeFields("EntriesReply", payload, this);
}

}  // namespace sstferry
