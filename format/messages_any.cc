#include "format/message_fields.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

Totals& Totals::operator+=(const Totals& other) {
  chunks += other.chunks;
  entries += other.entries;
  key_value_bytes += other.key_value_bytes;
  sst_bytes += other.sst_bytes;
  return *this;
}

void Hello::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status Hello::DecodeFrom(const Slice& payload) {
  return DecodeFields("Hello", payload, this);
}

void HelloAck::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status HelloAck::DecodeFrom(const Slice& payload) {
  return DecodeFields("HelloAck", payload, this);
}

void End::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status End::DecodeFrom(const Slice& payload) {
  return DecodeFields("End", payload, this);
}

}  // namespace sstferry
