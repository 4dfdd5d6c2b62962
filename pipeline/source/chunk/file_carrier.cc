#include "pipeline/source/chunk/file_carrier.h"

#include <algorithm>
#include <cstring>

#include "format/end_state.h"
#include "format/message/key_for_message.h"
#include "format/sst/sst_block_verifier.h"
#include "format/sst/sst_plain_values.h"
#include "format/sst/sst_tail.h"
#include "pipeline/base/file_source.h"
#include "pipeline/source/chunk/body_reader.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Streams the body of a file through a buffer: sent, verified and unverified
// bytes.
//
//   begin_ <= verified_ <= end_ <= body_bytes_, all offsets in the file
//
// [begin_, end_) is in the buffer; all bytes before begin_ were sent, or are
// before first_byte_ and not to be sent.
class BodyStream : public ByteSource {
 public:
  BodyStream(const FileSource& file, BodyReader* reader, uint64_t first_byte,
             ChunkSink* sink, std::vector<char>* buffer)
      : file_(file),
        reader_(reader),
        first_byte_(first_byte),
        sink_(sink),
        buffer_(buffer) {}

  // Reads the file for its parsers; bytes in the buffer are not read again.
  Status Read(uint64_t offset, size_t n, std::string* scratch,
              Slice* out) const override {
    if (offset >= begin_ && n <= end_ - begin_ &&
        offset - begin_ <= end_ - begin_ - n) {
      *out = Slice(At(offset), n);
      return Status::OK();
    }
    return file_.Read(offset, n, scratch, out);
  }
  uint64_t size() const override { return file_.size(); }

  // Sets the end of the body. REQUIRED before all calls below.
  void SetBodyBytes(uint64_t body_bytes) { body_bytes_ = body_bytes; }
  // Verifies that the bytes up to `offset` are zeros.
  [[nodiscard]] Status Padding(uint64_t offset);
  // Verifies the block that begins at the end of the last one.
  [[nodiscard]] Status Block(const SstFooter& footer,
                             const SstBlockHandle& handle);
  // Skips a block that need not be sent. Returns false if it must be sent.
  bool PassOver(const SstBlockHandle& handle) {
    const bool before = handle.end() <= first_byte_;
    if (before) {
      begin_ = verified_ = end_ = handle.end();
    }
    return before;
  }
  // Sends the verified bytes.
  [[nodiscard]] Status Flush();
  // True if the block verified last is in memory, uncompressed, and holds only
  // plain values.
  bool IsPlain(const SstBlockHandle& handle) const {
    return handle.offset >= begin_ && handle.end() <= end_ &&
           *At(handle.offset + handle.size) == 0 &&
           HoldsOnlyPlainValues(
               Slice(At(handle.offset), static_cast<size_t>(handle.size)));
  }
  uint64_t sent() const { return begin_; }
  // True if the sink failed, not the file.
  bool sink_failed() const { return sink_failed_; }

 private:
  const char* At(uint64_t offset) const {
    return buffer_->data() + (offset - begin_);
  }
  // Loads [verified_, end) into the buffer. REQUIRES: it fits.
  [[nodiscard]] Status Load(uint64_t end);
  [[nodiscard]] Status LargeBlock(const SstFooter& footer,
                                  const SstBlockHandle& handle);

  const FileSource& file_;
  BodyReader* const reader_;
  const uint64_t first_byte_;
  ChunkSink* const sink_;
  std::vector<char>* const buffer_;
  uint64_t body_bytes_ = 0;
  uint64_t begin_ = 0;
  uint64_t verified_ = 0;
  uint64_t end_ = 0;
  bool sink_failed_ = false;
};

Status BodyStream::Flush() {
  if (verified_ == begin_) {
    return Status::OK();
  }
  const uint64_t from = std::clamp(first_byte_, begin_, verified_);
  const Status status =
      from == verified_
          ? Status::OK()
          : sink_->Append(
                Slice(At(from), static_cast<size_t>(verified_ - from)));
  std::memmove(buffer_->data(), At(verified_),
               static_cast<size_t>(end_ - verified_));
  begin_ = verified_;
  sink_failed_ = !status.ok();
  return status;
}

Status BodyStream::Load(uint64_t end) {
  if (end <= end_) {
    return Status::OK();
  }
  Status status = Flush();
  if (!status.ok()) {
    return status;
  }
  const uint64_t until = std::min<uint64_t>(body_bytes_,
                                            begin_ + buffer_->size());
  status = reader_->Read(end_, static_cast<size_t>(until - end_),
                         buffer_->data() + (end_ - begin_));
  end_ = until;
  return status;
}

Status BodyStream::Padding(uint64_t offset) {
  while (verified_ < offset) {
    const Status status = Load(verified_ + 1);
    if (!status.ok()) {
      return status;
    }
    const uint64_t until = std::min(offset, end_);
    for (; verified_ < until; ++verified_) {
      if (*At(verified_) != 0) {
        return MakeStatus(EndState::kCorrupt,
                          "padding: expected zeros, found others at offset " +
                              std::to_string(verified_));
      }
    }
  }
  return Status::OK();
}

Status BodyStream::Block(const SstFooter& footer,
                         const SstBlockHandle& handle) {
  if (handle.end() - verified_ > buffer_->size()) {
    return LargeBlock(footer, handle);
  }
  Status status = Load(handle.end());
  if (status.ok()) {
    status = VerifySstBlockBytes(
        footer, handle,
        Slice(At(handle.offset),
              static_cast<size_t>(handle.size) + kSstBlockTrailerBytes));
  }
  verified_ = handle.end();
  return status;
}

// Sends a large block before its checksum is known: the target drops a chunk
// without an end.
Status BodyStream::LargeBlock(const SstFooter& footer,
                              const SstBlockHandle& handle) {
  SstBlockVerifier verifier(footer, handle);
  while (verified_ < handle.end()) {
    Status status = Load(verified_ + 1);
    if (!status.ok()) {
      return status;
    }
    const uint64_t until = std::min(handle.end(), end_);
    verifier.Add(
        Slice(At(verified_), static_cast<size_t>(until - verified_)));
    verified_ = until;
    status = Flush();
    if (!status.ok()) {
      return status;
    }
  }
  return verifier.Finish();
}

// Carries one file; exists for one call of Carry().
class Carriage {
 public:
  Carriage(const FileCarrierOptions& options, ChunkSink* sink,
           std::vector<char>* buffer, const CarriedFile& file,
           uint64_t first_byte)
      : options_(options),
        sink_(sink),
        buffer_(buffer),
        file_(file),
        first_byte_(first_byte) {}

  [[nodiscard]] Status Open();
  [[nodiscard]] Status Describe(ChunkEnd* chunk) const;
  [[nodiscard]] Status SendBody();
  [[nodiscard]] Status SendTail();
  uint64_t file_bytes() const {
    return tail_.body_bytes + tail_.bytes.size();
  }
  // Adds the file's name to failures of the file.
  [[nodiscard]] Status Named(const Status& status) const {
    return stream_ != nullptr && stream_->sink_failed()
               ? status
               : WithContext(status, EndState::kSourceError, file_.path);
  }

 private:
  [[nodiscard]] Status OnBlock(const SstBlockHandle& handle);
  [[nodiscard]] Status CheckTypes(const SstBlockHandle& handle) const;
  void Report();

  const FileCarrierOptions& options_;
  ChunkSink* const sink_;
  std::vector<char>* const buffer_;
  const CarriedFile& file_;
  const uint64_t first_byte_;
  std::unique_ptr<FileSource> source_;
  std::unique_ptr<BodyReader> body_;
  std::unique_ptr<BodyStream> stream_;
  SstReader reader_;
  SstTail tail_;
  uint64_t reported_sent_ = 0;
  uint64_t reported_entries_ = 0;
  uint64_t reported_bytes_ = 0;
};

Status Carriage::Open() {
  Status status = FileSource::Open(rocksdb::FileSystem::Default().get(),
                                   file_.path, &source_,
                                   EndState::kSourceError);
  if (status.ok()) {
    status = BodyReader::Open(file_.path, &body_);
  }
  if (!status.ok()) {
    return status;
  }
  // The stream also serves the parsers, so that each block is read once.
  buffer_->resize(kCarryBufferBytes);
  stream_ = std::make_unique<BodyStream>(*source_, body_.get(),
                                         first_byte_, sink_, buffer_);
  status = reader_.Open(stream_.get());
  if (status.ok()) {
    status = RewriteSstTail(reader_, &tail_);
  }
  if (!status.ok()) {
    return status;
  }
  if (tail_.body_bytes + tail_.bytes.size() != file_.bytes) {
    return MakeStatus(EndState::kCorrupt,
                      "expected " + std::to_string(file_.bytes) +
                          " bytes as when it was planned, found " +
                          std::to_string(tail_.body_bytes +
                                         tail_.bytes.size()));
  }
  stream_->SetBodyBytes(tail_.body_bytes);
  return file_.stamp.has_value()
             ? RewriteSstTail(reader_, &*file_.stamp, &tail_)
             : Status::OK();
}

Status Carriage::Describe(ChunkEnd* chunk) const {
  const SstProperties& properties = tail_.properties;
  chunk->file_bytes = file_bytes();
  chunk->entries = properties.num_entries;
  chunk->key_bytes = properties.user_key_bytes();
  chunk->value_bytes = properties.raw_value_bytes;
  std::string first;
  std::string last;
  const Status status = reader_.ReadBoundKeys(&first, &last);
  if (status.ok()) {
    chunk->smallest = first.substr(0, first.size() - kSstKeyTrailerBytes);
    chunk->largest = last.substr(0, last.size() - kSstKeyTrailerBytes);
  }
  if (file_.stamp.has_value()) {
    chunk->smallest = file_.stamp->begin;
    chunk->largest = file_.stamp->end;
    chunk->clears = true;
  }
  return status;
}

Status Carriage::SendBody() {
  Status status = ForEachBodyBlock(
      reader_, tail_,
      [this](const SstBlockHandle& handle) { return OnBlock(handle); });
  if (status.ok()) {
    status = stream_->Padding(tail_.body_bytes);
  }
  return status.ok() ? stream_->Flush() : status;
}

Status Carriage::OnBlock(const SstBlockHandle& handle) {
  if (stream_->PassOver(handle)) {
    return Status::OK();
  }
  Status status = stream_->Padding(handle.offset);
  if (status.ok()) {
    status = stream_->Block(reader_.footer(), handle);
  }
  if (status.ok() && !options_.target_takes_entities &&
      handle.offset < tail_.properties.data_bytes &&
      !stream_->IsPlain(handle)) {
    status = CheckTypes(handle);
  }
  if (status.ok() && stream_->sent() != reported_sent_) {
    reported_sent_ = stream_->sent();
    Report();
    if (options_.cancelled && options_.cancelled()) {
      return MakeStatus(EndState::kCancelled, "carry: stopped on request");
    }
  }
  return status;
}

Status Carriage::CheckTypes(const SstBlockHandle& handle) const {
  return reader_.ForEachEntry(
      handle, [](const Slice& key, const Slice& /*value*/) {
        const size_t user_bytes = key.size() - kSstKeyTrailerBytes;
        if (static_cast<uint8_t>(key[user_bytes]) !=
            kSstTypeWideColumnEntity) {
          return Status::OK();
        }
        return RefuseEntity("key " +
                            KeyForMessage(Slice(key.data(), user_bytes)));
      });
}

// Reports entries in proportion to the bytes sent, because carrying does not
// count entries.
void Carriage::Report() {
  if (!options_.on_progress) {
    return;
  }
  const SstProperties& properties = tail_.properties;
  const double share = static_cast<double>(stream_->sent()) /
                       static_cast<double>(tail_.body_bytes);
  const auto entries =
      static_cast<uint64_t>(static_cast<double>(properties.num_entries) *
                            share);
  const uint64_t all_bytes =
      properties.user_key_bytes() + properties.raw_value_bytes;
  const auto bytes =
      static_cast<uint64_t>(static_cast<double>(all_bytes) * share);
  options_.on_progress(entries - reported_entries_, bytes - reported_bytes_);
  reported_entries_ = entries;
  reported_bytes_ = bytes;
}

Status Carriage::SendTail() {
  const uint64_t passed_over =
      first_byte_ - std::min(first_byte_, tail_.body_bytes);
  Slice rest(tail_.bytes);
  rest.remove_prefix(static_cast<size_t>(passed_over));
  const Status status = sink_->Append(rest);
  Report();
  return status;
}

}  // namespace

FileCarrier::FileCarrier(const FileCarrierOptions& options, ChunkSink* sink,
                         std::vector<char>* buffer)
    : options_(options), sink_(sink), buffer_(buffer) {}

Status FileCarrier::Carry(const Range& range, const CarriedFile& file,
                          uint64_t first_byte) {
  ChunkBegin begin;
  begin.range_id = range.id;
  begin.kind = ChunkKind::kCarried;
  begin.first_byte = first_byte;
  ChunkEnd chunk;
  chunk.range_id = range.id;
  Carriage carriage(options_, sink_, buffer_, file, first_byte);
  Status status = carriage.Open();
  if (status.ok()) {
    status = carriage.Describe(&chunk);
  }
  if (!status.ok()) {
    return carriage.Named(status);
  }
  begin.file_bytes = carriage.file_bytes();
  status = sink_->Begin(begin);
  if (status.ok()) {
    status = carriage.Named(carriage.SendBody());
  }
  if (status.ok()) {
    status = carriage.SendTail();
  }
  if (status.ok()) {
    status = sink_->End(chunk);
  }
  return status;
}

}  // namespace sstferry
