// Input: a table file. Read as it is, and once more after its checksums were
// made right, so that what lies behind them is reached.
#include <cstdlib>

#include "format/coding.h"
#include "format/sst/sst_check.h"
#include "format/sst/sst_tail.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

void Require(bool holds) {
  if (!holds) {
    abort();
  }
}

// Nothing visited may lie outside of the body, or out of order.
void WalkBody(const SstReader& reader, const SstTail& tail,
              const std::string& file) {
  uint64_t end = 0;
  ForEachBodyBlock(reader, tail, [&](const SstBlockHandle& handle) {
    Require(handle.offset >= end && handle.offset - end <= kMaxSstPaddingBytes);
    Require(handle.end() <= tail.body_bytes);
    end = handle.end();
    VerifySstBlockBytes(reader.footer(), handle,
                        Slice(file.data() + handle.offset,
                              handle.size + kSstBlockTrailerBytes))
        .PermitUncheckedError();
    return Status::OK();
  }).PermitUncheckedError();
}

void Carry(const std::string& file) {
  const SliceSource source(file);
  ChunkExpectation expected;
  expected.all_blocks = true;
  expected.order = [](const Slice& a, const Slice& b) { return a.compare(b); };
  CheckChunk(source, expected, nullptr).PermitUncheckedError();

  SstReader reader;
  if (!reader.Open(&source).ok()) {
    return;
  }
  SstTail tail;
  const Status s = RewriteSstTail(reader, &tail);
  if (!s.ok()) {
    // What is written must always be readable again.
    Require(s.IsCorruption() || s.IsNotSupported());
    return;
  }
  WalkBody(reader, tail, file);
  const std::string carried = file.substr(0, tail.body_bytes) + tail.bytes;
  const SliceSource carried_source(carried);
  SstReader again;
  SstTail same;
  Require(again.Open(&carried_source).ok());
  Require(RewriteSstTail(again, &same).ok());
  Require(same.bytes == tail.bytes && same.body_bytes == tail.body_bytes);
}

void Reseal(const SstFooter& footer, const SstBlockHandle& handle,
            std::string* file) {
  if (HandleFits(handle, footer.footer_offset)) {
    EncodeFixed32(
        &(*file)[handle.offset + handle.size + 1],
        ComputeSstChecksum(footer.checksum,
                           Slice(file->data() + handle.offset,
                                 handle.size + 1)) +
            footer.ContextModifier(handle.offset));
  }
}

// Makes the checksums of the footer (versions 6 and 7) and of all blocks right
// that can be found without believing any.
void ResealAll(std::string* file) {
  constexpr size_t kChecksumOffset = 5;
  SstFooter footer;
  if (file->size() < kSstFooterBytes) {
    return;
  }
  footer.footer_offset = file->size() - kSstFooterBytes;
  char* const bytes = &(*file)[footer.footer_offset];
  const auto type = static_cast<unsigned char>(bytes[0]);
  if (DecodeFixed32(bytes + 41) >= 6 &&
      type <= static_cast<unsigned char>(SstChecksum::kXxh3)) {
    footer.base_context_checksum = DecodeFixed32(bytes + 9);
    EncodeFixed32(bytes + kChecksumOffset, 0);
    EncodeFixed32(
        bytes + kChecksumOffset,
        ComputeSstChecksum(static_cast<SstChecksum>(type),
                           Slice(bytes, kSstFooterBytes)) +
            footer.ContextModifier(footer.footer_offset));
  }
  const SliceSource source(*file);
  if (!ReadSstFooter(source, &footer).ok()) {
    return;
  }
  Reseal(footer, footer.metaindex, file);
  if (footer.has_index_handle) {
    Reseal(footer, footer.index, file);
  }
  SstBlock block;
  SstBlockLayout layout;
  layout.values_are_handles = true;
  SstBlockCursor cursor;
  Status s = ReadSstBlock(SliceSource(*file), footer, footer.metaindex,
                          kMaxSstMetaBlockBytes, Slice(), &block);
  const std::string metaindex = block.contents().ToString();
  if (s.ok()) {
    s = cursor.Init(metaindex, layout, 0);
  }
  while (s.ok() && (s = cursor.Next()).ok() && cursor.valid()) {
    Reseal(footer, cursor.handle(), file);
  }
  s.PermitUncheckedError();
}

}  // namespace
}  // namespace sstferry

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  sstferry::Carry(file);
  sstferry::ResealAll(&file);
  sstferry::Carry(file);
  return 0;
}
