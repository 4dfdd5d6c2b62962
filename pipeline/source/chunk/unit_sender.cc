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
  buffer->resize(kUnitBufferBytes);
  for (uint64_t at = first_byte; status.ok() && at < unit.bytes;) {
    const size_t bytes = static_cast<size_t>(
        std::min<uint64_t>(buffer->size(), unit.bytes - at));
    if (cancelled()) {
      return MakeStatus(EndState::kCancelled, "clone: stopped on request");
    }
    status = reader->Read(unit.offset + at, bytes, buffer->data());
    if (status.ok()) status = sink->Append(Slice(buffer->data(), bytes));
    at += bytes;
  }
  ChunkEnd end;
  end.range_id = range_id;
  end.file_bytes = unit.bytes;
  return status.ok() ? sink->End(end) : status;
}

}  // namespace sstferry
