#include "tests/support/annotate.h"

#include <algorithm>
#include <cstdio>

#include "format/frame.h"
#include "format/journal.h"
#include "format/journal_fields.h"
#include "format/stream_frame.h"
#include "format/wire_compression.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kShownValueBytes = 64;

void Line(uint64_t offset, const Slice& bytes, const std::string& meaning,
          std::string* out) {
  const size_t shown = std::min(bytes.size(), kAnnotatedBytes);
  std::string hex = ToHex(Slice(bytes.data(), shown));
  if (shown < bytes.size()) {
    hex += "..";
  }
  hex.resize(std::max<size_t>(hex.size(), 2 * kAnnotatedBytes + 2), ' ');
  char position[24];
  snprintf(position, sizeof(position), "%08llx",
           static_cast<unsigned long long>(offset));
  *out += std::string(position) + "  " + hex + "  " + meaning + "\n";
}

// Formats a key or a text for display.
std::string Readable(const Slice& value) {
  const Slice shown(value.data(), std::min(value.size(), kShownValueBytes));
  bool printable = true;
  for (size_t i = 0; i < value.size(); ++i) {
    printable &= value[i] >= ' ' && value[i] <= '~' && value[i] != '"';
  }
  std::string text =
      printable ? "\"" + shown.ToString() + "\"" : "0x" + ToHex(shown);
  if (shown.size() < value.size()) {
    text += ".. (" + std::to_string(value.size()) + " bytes)";
  }
  return text;
}

// Archive that reads fields as FieldDecoder does and writes a line for each.
class FieldAnnotator {
 public:
  FieldAnnotator(Decoder* in, std::string* out)
      : in_(in), fields_(in), out_(out) {}

  template <typename T>
  void Integer(const char* name, T& value, uint64_t min, uint64_t max) {
    const uint64_t begin = in_->offset();
    fields_.Integer(name, value, min, max);
    Write(begin, name, std::to_string(value));
  }
  void Bool(const char* name, bool& value) {
    const uint64_t begin = in_->offset();
    fields_.Bool(name, value);
    Write(begin, name, value ? "true" : "false");
  }
  template <typename E>
  void Enum(const char* name, E& value, uint8_t max,
            const char* (*name_of)(E)) {
    const uint64_t begin = in_->offset();
    fields_.Enum(name, value, max, name_of);
    Write(begin, name, name_of(value));
  }
  void Bytes(const char* name, std::string& value, uint32_t max_bytes) {
    const uint64_t begin = in_->offset();
    fields_.Bytes(name, value, max_bytes);
    Write(begin, name, Readable(value));
  }
  void Text(const char* name, std::string& value, uint32_t max_bytes) {
    Bytes(name, value, max_bytes);
  }
  void OptionalBytes(const char* name, std::optional<std::string>& value,
                     uint32_t max_bytes) {
    const uint64_t begin = in_->offset();
    fields_.OptionalBytes(name, value, max_bytes);
    Write(begin, name, value.has_value() ? Readable(*value) : "absent");
  }
  template <size_t kBytes>
  void Id(const char* name, std::array<uint8_t, kBytes>& value) {
    const uint64_t begin = in_->offset();
    fields_.Id(name, value);
    Write(begin, name,
          ToHex(std::string(value.begin(), value.end())));
  }
  void Digest(const char* name, Digest128& value) {
    const uint64_t begin = in_->offset();
    fields_.Digest(name, value);
    Write(begin, name, ToHex(value));
  }
  template <typename T, typename Each>
  void List(const char* name, std::vector<T>& items, uint32_t max_count,
            size_t min_item_bytes, Each each) {
    Decoder peek = *in_;
    const uint64_t begin = in_->offset();
    const uint32_t count = peek.Count(name, max_count, min_item_bytes);
    if (peek.ok()) {
      Line(begin, peek.Since(begin),
           std::string(name) + " " + std::to_string(count) + " items", out_);
    }
    fields_.ListWith(*this, name, items, max_count, min_item_bytes,
                     [each](FieldAnnotator& archive, auto& item) {
                       each(archive, item);
                     });
  }
  void Check(const char* name, bool holds, const char* problem) {
    fields_.Check(name, holds, problem);
  }
  bool HasMore(bool wanted) const { return fields_.HasMore(wanted); }

 private:
  void Write(uint64_t begin, const char* name, const std::string& value) {
    if (in_->ok()) {
      Line(begin, in_->Since(begin), in_->Path(name) + " " + value, out_);
    }
  }

  Decoder* in_;
  FieldDecoder fields_;
  std::string* out_;
};

template <typename Message>
Status AnnotateMessage(const char* what, const Slice& payload,
                       uint64_t offset, std::string* out) {
  Message message;
  Decoder in(what, payload, offset);
  FieldAnnotator annotator(&in, out);
  Fields(annotator, message);
  return in.Finish();
}

Status AnnotateRecord(const JournalRecord& record, std::string* out) {
  const Slice& payload = record.payload;
  const uint64_t offset = record.offset + kJournalHeaderBytes;
  const char* name = JournalRecordTypeName(record.type);
  switch (record.type) {
    case JournalRecordType::kTransfer:
      return AnnotateMessage<JournalTransfer>(name, payload, offset, out);
    case JournalRecordType::kPlan:
      return AnnotateMessage<JournalPlan>(name, payload, offset, out);
    case JournalRecordType::kChunk:
      return AnnotateMessage<JournalChunk>(name, payload, offset, out);
    case JournalRecordType::kPartDone:
      return AnnotateMessage<JournalPartDone>(name, payload, offset, out);
    case JournalRecordType::kComplete:
      return AnnotateMessage<JournalComplete>(name, payload, offset, out);
    case JournalRecordType::kIngested:
      return AnnotateMessage<JournalIngested>(name, payload, offset, out);
    case JournalRecordType::kTargetFiles:
      return AnnotateMessage<JournalTargetFiles>(name, payload, offset,
                                                    out);
  }
  return Status::OK();
}

Status AnnotateCompressed(const Slice& payload, std::string* out) {
  constexpr uint64_t kAt = kFrameHeaderBytes;
  CompressedPayload compressed;
  const Status status = ParseCompressedPayload(payload, &compressed);
  if (status.ok()) {
    Line(kAt, Slice(payload.data(), 4),
         "raw_bytes " + std::to_string(compressed.raw_bytes), out);
    Line(kAt + 4, Slice(payload.data() + 4, 8), "digest of the raw bytes",
         out);
    Line(kAt + kCompressedHeaderBytes, compressed.zstd,
         std::to_string(compressed.zstd.size()) + " bytes of zstd", out);
  }
  return status;
}

Status AnnotateLanePayload(FrameType type, const Slice& payload,
                           std::string* out) {
  constexpr uint64_t kAt = kFrameHeaderBytes;
  const char* name = FrameTypeName(type);
  switch (type) {
    case FrameType::kPartRequest:
      return AnnotateMessage<PartRequest>(name, payload, kAt, out);
    case FrameType::kChunkBegin:
      return AnnotateMessage<ChunkBegin>(name, payload, kAt, out);
    case FrameType::kChunkAck:
      return AnnotateMessage<ChunkAck>(name, payload, kAt, out);
    case FrameType::kChunkEnd:
      return AnnotateMessage<ChunkEnd>(name, payload, kAt, out);
    case FrameType::kPartEnd:
      return AnnotateMessage<PartEnd>(name, payload, kAt, out);
    case FrameType::kDigestRequest:
      return AnnotateMessage<DigestRequest>(name, payload, kAt, out);
    case FrameType::kUnitDigestRequest:
      return AnnotateMessage<UnitDigestRequest>(name, payload, kAt, out);
    case FrameType::kFileDigestRequest:
      return AnnotateMessage<FileDigestRequest>(name, payload, kAt, out);
    case FrameType::kFileDigestReply:
      return AnnotateMessage<FileDigestReply>(name, payload, kAt, out);
    case FrameType::kGroupRequest:
      return AnnotateMessage<GroupRequest>(name, payload, kAt, out);
    case FrameType::kGroupReply:
      return AnnotateMessage<GroupReply>(name, payload, kAt, out);
    case FrameType::kSiftRequest:
      return AnnotateMessage<SiftRequest>(name, payload, kAt, out);
    case FrameType::kSiftReply:
      return AnnotateMessage<SiftReply>(name, payload, kAt, out);
    case FrameType::kDeltaRequest:
      return AnnotateMessage<DeltaRequest>(name, payload, kAt, out);
    case FrameType::kDigestReply:
      return AnnotateMessage<DigestReply>(name, payload, kAt, out);
    case FrameType::kEntriesRequest:
      return AnnotateMessage<EntriesRequest>(name, payload, kAt, out);
    case FrameType::kEntriesReply:
      return AnnotateMessage<EntriesReply>(name, payload, kAt, out);
    default:  // ChunkData
      Line(kAt, payload, std::to_string(payload.size()) + " raw bytes", out);
      return Status::OK();
  }
}

Status AnnotatePayload(FrameType type, const Slice& payload,
                       std::string* out) {
  constexpr uint64_t kAt = kFrameHeaderBytes;
  const char* name = FrameTypeName(type);
  switch (type) {
    case FrameType::kHello:
      return AnnotateMessage<Hello>(name, payload, kAt, out);
    case FrameType::kHelloAck:
      return AnnotateMessage<HelloAck>(name, payload, kAt, out);
    case FrameType::kEnd:
      return AnnotateMessage<End>(name, payload, kAt, out);
    case FrameType::kListRequest:
      return AnnotateMessage<ListRequest>(name, payload, kAt, out);
    case FrameType::kListReply:
      return AnnotateMessage<ListReply>(name, payload, kAt, out);
    case FrameType::kOpenRequest:
      return AnnotateMessage<OpenRequest>(name, payload, kAt, out);
    case FrameType::kOpened:
      return AnnotateMessage<Opened>(name, payload, kAt, out);
    case FrameType::kFamily:
      return AnnotateMessage<Family>(name, payload, kAt, out);
    case FrameType::kParts:
      return AnnotateMessage<Parts>(name, payload, kAt, out);
    case FrameType::kPlanItems:
      return AnnotateMessage<PlanItems>(name, payload, kAt, out);
    case FrameType::kPlanEnd:
      return AnnotateMessage<PlanEnd>(name, payload, kAt, out);
    case FrameType::kPing:
    case FrameType::kPong:
      return AnnotateMessage<Ping>(name, payload, kAt, out);
    case FrameType::kStats:
      return AnnotateMessage<Stats>(name, payload, kAt, out);
    case FrameType::kFinish:
    case FrameType::kFinished:
      return AnnotateMessage<Finish>(name, payload, kAt, out);
    case FrameType::kCompress:
      return AnnotateMessage<Compress>(name, payload, kAt, out);
    case FrameType::kReceived:
      return AnnotateMessage<Received>(name, payload, kAt, out);
    case FrameType::kStatusRequest:
      return AnnotateMessage<StatusRequest>(name, payload, kAt, out);
    case FrameType::kStatusReply:
      return AnnotateMessage<StatusReply>(name, payload, kAt, out);
    case FrameType::kFollowRequest:
      return AnnotateMessage<FollowRequest>(name, payload, kAt, out);
    case FrameType::kWalBytes:
      return AnnotateMessage<WalBytes>(name, payload, kAt, out);
    case FrameType::kFollowEnd:
      return AnnotateMessage<FollowEnd>(name, payload, kAt, out);
    case FrameType::kPinRequest:
      return AnnotateMessage<PinRequest>(name, payload, kAt, out);
    case FrameType::kPinReply:
      return AnnotateMessage<PinReply>(name, payload, kAt, out);
    case FrameType::kPinEnd:
      return AnnotateMessage<PinEnd>(name, payload, kAt, out);
    case FrameType::kFactsRequest:
      return AnnotateMessage<FactsRequest>(name, payload, kAt, out);
    case FrameType::kFactsReply:
      return AnnotateMessage<FactsReply>(name, payload, kAt, out);
    case FrameType::kOtherFileRequest:
      return AnnotateMessage<OtherFileRequest>(name, payload, kAt, out);
    case FrameType::kOtherFilePart:
      return AnnotateMessage<OtherFilePart>(name, payload, kAt, out);
    case FrameType::kBusy:
      return AnnotateMessage<Busy>(name, payload, kAt, out);
    case FrameType::kCloneSet:
      return AnnotateMessage<CloneSet>(name, payload, kAt, out);
    case FrameType::kCloneFiles:
      return AnnotateMessage<CloneFiles>(name, payload, kAt, out);
    default:
      return AnnotateLanePayload(type, payload, out);
  }
}

void AnnotateFrameHeader(const FrameHeader& header, const Slice& frame,
                         std::string* out) {
  const auto line = [&](size_t offset, size_t bytes,
                        const std::string& meaning) {
    Line(offset, Slice(frame.data() + offset, bytes), meaning, out);
  };
  line(0, 4, "magic SFY1");
  line(4, 1, "version 1");
  line(5, 1, std::string("type ") + FrameTypeName(header.type));
  line(6, 2, "flags " + std::to_string(header.flags));
  line(8, 8, "sequence " + std::to_string(header.sequence));
  line(16, 4, "payload_bytes " + std::to_string(header.payload_bytes));
  line(20, 4, "reserved");
  line(24, 8, "digest");
}

void AnnotateRecordHeader(const JournalRecord& record, const Slice& journal,
                          std::string* out) {
  const auto line = [&](uint64_t at, size_t bytes,
                        const std::string& meaning) {
    Line(record.offset + at,
         Slice(journal.data() + record.offset + at, bytes), meaning, out);
  };
  line(0, 4, "payload_bytes " + std::to_string(record.payload.size()));
  line(4, 1, std::string("type ") + JournalRecordTypeName(record.type));
  line(5, 3, "reserved");
  line(8, 8, "digest");
}

}  // namespace

Status AnnotateJournal(const Slice& journal, std::string* out) {
  Status status = CheckJournalMagic(journal);
  uint64_t offset = 0;
  if (status.ok()) {
    Line(0, Slice(journal.data(), kJournalMagicBytes), "magic SFJOURN1", out);
    offset = kJournalMagicBytes;
  }
  while (status.ok()) {
    JournalRecord record;
    status = ReadJournalRecord(journal, offset, &record);
    if (status.ok()) {
      AnnotateRecordHeader(record, journal, out);
      status = AnnotateRecord(record, out);
    }
    if (status.ok()) {
      offset += record.total_bytes;
    }
  }
  if (status.IsNotFound()) {
    return Status::OK();
  }
  const Slice rest(journal.data() + offset, journal.size() - offset);
  if (status.IsIncomplete()) {
    Line(offset, rest, std::string("torn tail: ") + status.getState(), out);
    return Status::OK();
  }
  Line(offset, rest, "bad: " + MessageOf(status), out);
  return status;
}

Status AnnotateFrame(const Slice& frame, std::string* out) {
  FrameHeader header;
  Status status = DecodeFrameHeader(frame, &header);
  if (status.ok()) {
    AnnotateFrameHeader(header, frame, out);
    const Slice payload(frame.data() + kFrameHeaderBytes,
                        frame.size() - kFrameHeaderBytes);
    status = CheckFrameDigest(frame.data(), header, payload);
    if (status.ok()) {
      status = (header.flags & kFrameFlagZstd) != 0
                   ? AnnotateCompressed(payload, out)
                   : AnnotatePayload(header.type, payload, out);
    }
  }
  if (!status.ok()) {
    *out += "bad: " + MessageOf(status) + "\n";
  }
  return status;
}

Status AnnotateStream(const Slice& stream, std::string* out) {
  size_t at = 0;
  const auto line = [&](size_t bytes, const std::string& meaning) {
    const size_t shown = std::min(bytes, stream.size() - at);
    Line(at, Slice(stream.data() + at, shown), meaning, out);
    at += shown;
  };
  StreamHello hello;
  Status status = DecodeStreamHello(stream, &hello);
  if (status.ok()) {
    line(8, "magic SFYSTRM1");
    line(4, "credit_bytes " + std::to_string(hello.credit_bytes));
    line(4, "reserved");
  }
  while (status.ok() && at < stream.size()) {
    StreamFrame frame;
    status = DecodeStreamFrame(Slice(stream.data() + at, stream.size() - at),
                               &frame);
    if (status.ok()) {
      line(1, "kind " + std::to_string(static_cast<int>(frame.kind)));
      line(3, "reserved");
      line(4, "channel " + std::to_string(frame.channel));
      line(4, "value " + std::to_string(frame.value));
    }
    if (status.ok() && frame.kind == StreamFrameKind::kData) {
      line(frame.value, "payload");
    }
  }
  if (!status.ok()) {
    *out += "bad: " + MessageOf(status) + "\n";
  }
  return status;
}

}  // namespace sstferry
