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
size_t EncodedBytes(const TargetFamily& item) {
  return 5 + item.name.size();
}
size_t EncodedBytes(const IntervalRecord& item) {
  return 46 + IntervalBytes(item.interval);
}
size_t EncodedBytes(const ReceivedPart&) { return kReceivedPartBytes; }
size_t EncodedBytes(const CloneFile&) { return kCloneFileBytes; }
size_t EncodedBytes(const PlanItem& item) {
  return 21 + IntervalBytes(item.interval) + item.file.size() +
         std::min<size_t>(item.reason.size(), kMaxMessageTextBytes);
}

void ListRequest::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status ListRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("ListRequest", payload, this);
}

void ListReply::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status ListReply::DecodeFrom(const Slice& payload) {
  return DecodeFields("ListReply", payload, this);
}

void OpenRequest::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status OpenRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("OpenRequest", payload, this);
}

void Opened::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status Opened::DecodeFrom(const Slice& payload) {
  return DecodeFields("Opened", payload, this);
}

void Family::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status Family::DecodeFrom(const Slice& payload) {
  return DecodeFields("Family", payload, this);
}

void Parts::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status Parts::DecodeFrom(const Slice& payload) {
  return DecodeFields("Parts", payload, this);
}

void PlanItems::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status PlanItems::DecodeFrom(const Slice& payload) {
  return DecodeFields("PlanItems", payload, this);
}

void CloneSet::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status CloneSet::DecodeFrom(const Slice& payload) {
  return DecodeFields("CloneSet", payload, this);
}

void CloneFiles::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status CloneFiles::DecodeFrom(const Slice& payload) {
  return DecodeFields("CloneFiles", payload, this);
}

void PlanEnd::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status PlanEnd::DecodeFrom(const Slice& payload) {
  return DecodeFields("PlanEnd", payload, this);
}

void Ping::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status Ping::DecodeFrom(const Slice& payload) {
  return DecodeFields("Ping", payload, this);
}

void Stats::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status Stats::DecodeFrom(const Slice& payload) {
  return DecodeFields("Stats", payload, this);
}

void Received::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status Received::DecodeFrom(const Slice& payload) {
  return DecodeFields("Received", payload, this);
}

void StatusRequest::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status StatusRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("StatusRequest", payload, this);
}

void StatusReply::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status StatusReply::DecodeFrom(const Slice& payload) {
  return DecodeFields("StatusReply", payload, this);
}

void FactsRequest::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status FactsRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("FactsRequest", payload, this);
}

void FactsReply::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status FactsReply::DecodeFrom(const Slice& payload) {
  return DecodeFields("FactsReply", payload, this);
}

void TargetFamilies::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status TargetFamilies::DecodeFrom(const Slice& payload) {
  return DecodeFields("TargetFamilies", payload, this);
}

void Busy::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status Busy::DecodeFrom(const Slice& payload) {
  return DecodeFields("Busy", payload, this);
}

void SourceRecordPart::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status SourceRecordPart::DecodeFrom(const Slice& payload) {
  return DecodeFields("SourceRecordPart", payload, this);
}

void IntervalRecords::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status IntervalRecords::DecodeFrom(const Slice& payload) {
  return DecodeFields("IntervalRecords", payload, this);
}

void Compress::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status Compress::DecodeFrom(const Slice& payload) {
  return DecodeFields("Compress", payload, this);
}

void OtherFileRequest::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status OtherFileRequest::DecodeFrom(const Slice& payload) {
  return DecodeFields("OtherFileRequest", payload, this);
}

void OtherFilePart::EncodeTo(std::string* out) const {
  EncodeFields(*this, out);
}
Status OtherFilePart::DecodeFrom(const Slice& payload) {
  return DecodeFields("OtherFilePart", payload, this);
}

void Finish::EncodeTo(std::string* out) const { EncodeFields(*this, out); }
Status Finish::DecodeFrom(const Slice& payload) {
  return DecodeFields("Finish", payload, this);
}

}  // namespace sstferry
