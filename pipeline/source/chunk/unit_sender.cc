#include "pipeline/source/chunk/unit_sender.h"

#include <algorithm>
#include <memory>

#include "format/end_state.h"
#include "pipeline/source/chunk/body_reader.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Fits into a second-level cache, and into a frame.
constexpr size_t kUnitBufferBytes = 512u << 10;

// Hands over the unit's bytes from `first_byte` on, a buffer at a time.
Status ReadUnit(BodyReader* reader, const CloneUnit& unit, uint64_t first_byte,
                const std::function<bool()>& cancelled,
                std::vector<char>* buffer,
                const std::function<Status(const Slice&)>& take) {
  buffer->resize(kUnitBufferBytes);
  Status status;
  for (uint64_t at = first_byte; status.ok() && at < unit.bytes;) {
    const size_t bytes = static_cast<size_t>(
        std::min<uint64_t>(buffer->size(), unit.bytes - at));
    if (cancelled()) {
      return MakeStatus(EndState::kCancelled, "clone: stopped on request");
    }
    status = reader->Read(unit.offset + at, bytes, buffer->data());
    if (status.ok()) status = take(Slice(buffer->data(), bytes));
    at += bytes;
  }
  return status;
}

}  // namespace

Status SendUnit(const std::string& path, const CloneUnit& unit,
                uint32_t range_id, uint64_t first_byte,
                const std::function<bool()>& cancelled, ChunkSink* sink,
                std::vector<char>* buffer) {
  std::unique_ptr<BodyReader> reader;
  Status status = BodyReader::Open(path, &reader);
  ChunkBegin begin;
  begin.range_id = range_id;
  begin.kind = ChunkKind::kCloned;
  begin.file_bytes = unit.bytes;
  begin.first_byte = first_byte;
  if (status.ok()) status = sink->Begin(begin);
  if (status.ok()) {
    status = ReadUnit(reader.get(), unit, first_byte, cancelled, buffer,
                      [sink](const Slice& piece) {
                        return sink->Append(piece);
                      });
  }
  ChunkEnd end;
  end.range_id = range_id;
  end.file_bytes = unit.bytes;
  return status.ok() ? sink->End(end) : status;
}

Status DigestUnit(const std::string& path, const CloneUnit& unit,
                  const std::function<bool()>& cancelled,
                  std::vector<char>* buffer, Digest128* digest) {
  std::unique_ptr<BodyReader> reader;
  Status status = BodyReader::Open(path, &reader);
  Digest128Stream stream;
  if (status.ok()) {
    status = ReadUnit(reader.get(), unit, 0, cancelled, buffer,
                      [&stream](const Slice& piece) {
                        stream.Add(piece);
                        return Status::OK();
                      });
  }
  *digest = stream.Finish();
  return status;
}

}  // namespace sstferry
