#include "format/rocksdb/sst_reader.h"

#include <algorithm>
#include <utility>

#include "format/end_state.h"
#include "format/rocksdb/sst_coding.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr char kRangeDeletionsName[] = "rocksdb.range_del";
constexpr char kOldPropertiesName[] = "rocksdb.stats";
// End of the name "rocksdb.external_sst_file.global_seqno". A block may omit
// the prefix that this key shares with the previous key, but never omits this
// end.
constexpr std::string_view kStampName = "_sst_file.global_seqno";
constexpr size_t kStampBytes = 8;

// Reads a file as it was before an ingestion wrote a sequence number into it.
class UnstampedSource : public ByteSource {
 public:
  UnstampedSource(const ByteSource* file, uint64_t stamp_offset)
      : file_(file), stamp_offset_(stamp_offset) {}

  Status Read(uint64_t offset, size_t n, std::string* scratch,
              Slice* out) const override {
    std::string stored;
    Slice bytes;
    RETURN_IF_ERROR(file_->Read(offset, n, &stored, &bytes));
    scratch->assign(bytes.data(), bytes.size());
    for (uint64_t at = stamp_offset_; at < stamp_offset_ + kStampBytes; ++at) {
      if (at >= offset && at - offset < scratch->size()) {
        (*scratch)[at - offset] = '\0';
      }
    }
    *out = *scratch;
    return Status::OK();
  }
  uint64_t size() const override { return file_->size(); }

 private:
  const ByteSource* const file_;
  const uint64_t stamp_offset_;
};
constexpr char kIndexBlockName[] = "rocksdb.index";
constexpr char kDictionaryName[] = "rocksdb.compression_dict";
// Prefixes of the compression property. The name of the compression manager
// ends at the first semicolon. The name is empty if no block is compressed.
constexpr char kBuiltinCompressions[] = "BuiltinV2;";
constexpr char kNoCompressions[] = ";";

Status BadTable(const std::string& what, uint64_t offset) {
  return MakeStatus(EndState::kCorrupt,
                    what + ", offset " + std::to_string(offset));
}

// Removes every second anchor, beginning with the first one. Returns the size
// of the remaining keys.
uint64_t KeepEverySecond(std::vector<SstAnchor>* anchors) {
  uint64_t key_bytes = 0;
  size_t kept = 0;
  for (size_t i = 1; i < anchors->size(); i += 2) {
    key_bytes += (*anchors)[i].user_key.size();
    (*anchors)[kept++] = std::move((*anchors)[i]);
  }
  anchors->resize(kept);
  return key_bytes;
}

std::string Describe(const SstBlockHandle& handle) {
  return "offset " + std::to_string(handle.offset) + " size " +
         std::to_string(handle.size);
}

}  // namespace

struct SstReader::IndexWalk {
  const IndexVisitor* visitor = nullptr;
  uint64_t data_end = 0;       // end of the previous data block
  uint64_t partition_end = 0;  // end of the previous index partition
  std::string partition_last;  // last key of the previous index partition
};

Status SstReader::Open(const ByteSource* source) {
  source_ = source;
  meta_blocks_.clear();
  properties_ = SstProperties();
  dictionary_.clear();
  RETURN_IF_ERROR(ReadSstFooter(*source, &footer_));
  RETURN_IF_ERROR(ReadMetaindex());
  RETURN_IF_ERROR(ReadProperties());
  RETURN_IF_ERROR(FindIndex());
  return ReadDictionary();
}

const SstMetaBlock* SstReader::FindMetaBlock(const std::string& name) const {
  for (const SstMetaBlock& block : meta_blocks_) {
    if (block.name == name) {
      return &block;
    }
  }
  return nullptr;
}

Status SstReader::ReadMetaindex() {
  SstBlock block;
  Status s = ReadSstBlock(*source_, footer_, footer_.metaindex,
                          kMaxSstMetaBlockBytes, Slice(), &block);
  if (!s.ok()) {
    return WithContext(s, EndState::kCorrupt, "metaindex");
  }
  const uint64_t at = footer_.metaindex.offset;
  SstBlockLayout layout;
  layout.values_are_handles = true;
  SstBlockCursor cursor;
  s = cursor.Init(block.contents(), layout, at);
  if (s.ok()) {
    s = cursor.Next();
  }
  uint64_t name_bytes = 0;
  for (; s.ok() && cursor.valid(); s = cursor.Next()) {
    // Limits the total size. Keys share prefixes, so a small block may expand
    // to very long names.
    name_bytes += cursor.key().size();
    if (name_bytes > kMaxSstMetaBlockBytes) {
      return BadTable("metaindex names: expected at most " +
                     std::to_string(kMaxSstMetaBlockBytes) + " bytes, found " +
                     std::to_string(name_bytes),
                 at);
    }
    if (!meta_blocks_.empty() && cursor.key() <= meta_blocks_.back().name) {
      return BadTable("metaindex order: expected a name above " +
                     sst::HexKey(meta_blocks_.back().name) + ", found " +
                     sst::HexKey(cursor.key()),
                 at);
    }
    if (!HandleFits(cursor.handle(), footer_.footer_offset)) {
      return BadTable("meta block " + sst::HexKey(cursor.key()) +
                     ": expected it before the footer, found " +
                     Describe(cursor.handle()),
                 at);
    }
    meta_blocks_.push_back({cursor.key(), cursor.handle()});
  }
  return s.ok() ? s : WithContext(s, EndState::kCorrupt, "metaindex");
}

Status SstReader::ReadProperties() {
  const SstMetaBlock* meta = FindMetaBlock(kSstPropertiesName);
  if (meta == nullptr) {
    meta = FindMetaBlock(kOldPropertiesName);
  }
  if (meta == nullptr) {
    return BadTable("metaindex: expected a properties block, found none",
               footer_.metaindex.offset);
  }
  SstBlock block;
  Status s = ReadSstBlock(*source_, footer_, meta->handle,
                          kMaxSstMetaBlockBytes, Slice(), &block);
  if (s.ok()) {
    s = DecodeSstProperties(block.contents(), meta->handle.offset,
                            &properties_);
  } else if (s.IsCorruption() && ReadStampedProperties(meta->handle)) {
    return Status::OK();
  }
  return s.ok() ? s : WithContext(s, EndState::kCorrupt, "properties");
}

// Reads a properties block that an ingestion has changed. The ingestion
// replaced the zero in the block by the file's sequence number, but did not
// update the block's checksum.
bool SstReader::ReadStampedProperties(const SstBlockHandle& handle) {
  std::string scratch;
  Slice raw;
  if (!source_->Read(handle.offset, handle.size, &scratch, &raw).ok()) {
    return false;
  }
  const size_t name = std::string_view(raw.data(), raw.size()).find(kStampName);
  const size_t value = name + kStampName.size();
  if (name == std::string_view::npos || raw.size() < value + kStampBytes) {
    return false;
  }
  const std::string stamp(raw.data() + value, kStampBytes);
  const UnstampedSource unstamped(source_, handle.offset + value);
  SstBlock block;
  if (!ReadSstBlock(unstamped, footer_, handle, kMaxSstMetaBlockBytes, Slice(),
                    &block)
           .ok() ||
      !DecodeSstProperties(block.contents(), handle.offset, &properties_)
           .ok() ||
      properties_.external_global_seqno != uint64_t{0}) {
    return false;
  }
  properties_.external_global_seqno = sst::DecodeLittle64(stamp.data());
  return true;
}

bool SstReader::has_range_deletions() const {
  return FindMetaBlock(kRangeDeletionsName) != nullptr ||
         properties_.num_range_deletions != 0;
}

Status SstReader::FindIndex() {
  index_handle_ = footer_.index;
  if (!footer_.has_index_handle) {
    const SstMetaBlock* meta = FindMetaBlock(kIndexBlockName);
    if (meta == nullptr) {
      return BadTable("metaindex: expected an index block, found none",
                 footer_.metaindex.offset);
    }
    index_handle_ = meta->handle;
  }
  if (footer_.format_version >= 7 && !properties_.compression.empty() &&
      !Slice(properties_.compression).starts_with(kBuiltinCompressions) &&
      !Slice(properties_.compression).starts_with(kNoCompressions)) {
    return MakeStatus(EndState::kRefused,
                      "compression: expected built-in types, found " +
                          sst::TextOrHex(properties_.compression));
  }
  return Status::OK();
}

Status SstReader::ReadDictionary() {
  const SstMetaBlock* meta = FindMetaBlock(kDictionaryName);
  if (meta == nullptr) {
    return Status::OK();
  }
  SstBlock block;
  const Status s = ReadSstBlock(*source_, footer_, meta->handle,
                                kMaxSstMetaBlockBytes, Slice(), &block);
  if (!s.ok()) {
    return WithContext(s, EndState::kCorrupt, "compression dictionary");
  }
  dictionary_ = block.contents().ToString();
  return s;
}

SstBlockLayout SstReader::IndexLayout(bool top_level) const {
  SstBlockLayout layout;
  layout.values_are_handles = true;
  layout.uniform = !top_level && properties_.num_uniform_blocks != 0;
  layout.delta_handles = properties_.index_value_is_delta_encoded != 0;
  layout.has_first_key =
      !top_level &&
      properties_.index_type == SstIndexType::kBinarySearchWithFirstKey;
  return layout;
}

Status SstReader::VisitDataHandle(const SstBlockCursor& cursor,
                                  IndexWalk* walk) const {
  SstIndexEntry entry;
  entry.handle = cursor.handle();
  if (!HandleFits(entry.handle, footer_.footer_offset) ||
      entry.handle.offset < walk->data_end) {
    return BadTable("index: expected a data block from " +
                   std::to_string(walk->data_end) + " to " +
                   std::to_string(footer_.footer_offset) + ", found " +
                   Describe(entry.handle),
               index_handle_.offset);
  }
  walk->data_end = entry.handle.end();
  entry.separator = cursor.key();
  if (properties_.index_key_is_user_key == 0) {
    if (entry.separator.size() < kSstKeyTrailerBytes) {
      return BadTable("index key: expected at least 8 bytes, found " +
                     std::to_string(entry.separator.size()),
                 index_handle_.offset);
    }
    entry.separator.remove_suffix(kSstKeyTrailerBytes);
  }
  entry.first_key = cursor.first_key();
  return (*walk->visitor)(entry);
}

// Reads the partitions of a two-level index one at a time.
Status SstReader::WalkIndexBlock(const SstBlockHandle& handle, bool top_level,
                                 IndexWalk* walk) const {
  SstBlock block;
  RETURN_IF_ERROR(ReadSstBlock(*source_, footer_, handle, kMaxSstBlockBytes,
                               Slice(), &block));
  SstBlockCursor cursor;
  RETURN_IF_ERROR(
      cursor.Init(block.contents(), IndexLayout(top_level), handle.offset));
  Status s = cursor.Next();
  for (; s.ok() && cursor.valid(); s = cursor.Next()) {
    RETURN_IF_ERROR(top_level ? VisitPartition(cursor, walk)
                              : VisitDataHandle(cursor, walk));
  }
  RETURN_IF_ERROR(s);
  if (cursor.entries() == 0 && !(handle == index_handle_)) {
    return BadTable("index partition: expected entries, found none",
                    handle.offset);
  }
  walk->partition_last = cursor.key();
  return Status::OK();
}

Status SstReader::VisitPartition(const SstBlockCursor& cursor,
                                 IndexWalk* walk) const {
  const SstBlockHandle handle = cursor.handle();
  if (handle.offset < walk->partition_end ||
      !HandleFits(handle, footer_.footer_offset)) {
    return BadTable("index partition: expected it from " +
                   std::to_string(walk->partition_end) + " to " +
                   std::to_string(footer_.footer_offset) + ", found " +
                   Describe(handle),
               index_handle_.offset);
  }
  walk->partition_end = handle.end();
  const Status s = WalkIndexBlock(handle, /*top_level=*/false, walk);
  if (s.ok() && walk->partition_last != cursor.key()) {
    return BadTable("top-level index key: expected the partition's last key " +
                   sst::HexKey(walk->partition_last) + ", found " +
                   sst::HexKey(cursor.key()),
               index_handle_.offset);
  }
  return s;
}

Status SstReader::ForEachIndexEntry(const IndexVisitor& visitor) const {
  IndexWalk walk;
  walk.visitor = &visitor;
  return WalkIndexBlock(index_handle_,
                        properties_.index_type == SstIndexType::kTwoLevel,
                        &walk);
}

// Visits the entries of a top-level block of an index or a filter. Both have
// the format of an index block.
Status SstReader::ForEachPartition(const SstBlockHandle& top,
                                   const BlockVisitor& visitor) const {
  SstBlockLayout layout;
  layout.values_are_handles = true;
  layout.delta_handles = properties_.index_value_is_delta_encoded != 0;
  SstBlock block;
  SstBlockCursor cursor;
  RETURN_IF_ERROR(ReadSstBlock(*source_, footer_, top, kMaxSstBlockBytes,
                               Slice(), &block));
  RETURN_IF_ERROR(cursor.Init(block.contents(), layout, top.offset));
  RETURN_IF_ERROR(cursor.Next());
  while (cursor.valid()) {
    RETURN_IF_ERROR(visitor(cursor.handle()));
    RETURN_IF_ERROR(cursor.Next());
  }
  return Status::OK();
}

Status SstReader::OpenDataBlock(const SstBlockHandle& handle, SstBlock* block,
                                SstBlockCursor* cursor) const {
  const Status s = ReadSstBlock(*source_, footer_, handle, kMaxSstBlockBytes,
                                dictionary_, block);
  SstBlockLayout layout;
  layout.is_data = true;
  layout.separated = properties_.has_separated_values != 0;
  return s.ok() ? cursor->Init(block->contents(), layout, handle.offset) : s;
}

Status SstReader::ForEachEntry(const SstBlockHandle& handle,
                               const EntryVisitor& visitor) const {
  SstBlock block;
  SstBlockCursor cursor;
  const Status s = OpenDataBlock(handle, &block, &cursor);
  return s.ok() ? VisitEntries(handle, visitor, &cursor) : s;
}

Status SstReader::ForEachRangeDeletion(const EntryVisitor& visitor) const {
  const SstMetaBlock* const meta = FindMetaBlock(kRangeDeletionsName);
  if (meta == nullptr) {
    return Status::OK();
  }
  SstBlock block;
  SstBlockCursor cursor;
  Status s = ReadSstBlock(*source_, footer_, meta->handle,
                          kMaxSstMetaBlockBytes, Slice(), &block);
  if (s.ok()) {
    s = cursor.Init(block.contents(), SstBlockLayout(), meta->handle.offset);
  }
  return s.ok() ? VisitEntries(meta->handle, visitor, &cursor) : s;
}

Status SstReader::VisitEntries(const SstBlockHandle& handle,
                               const EntryVisitor& visitor,
                               SstBlockCursor* cursor) const {
  Status s = cursor->Next();
  for (; s.ok() && cursor->valid(); s = cursor->Next()) {
    if (cursor->key().size() < kSstKeyTrailerBytes) {
      return BadTable("internal key " + std::to_string(cursor->entries() - 1) +
                     " of a block: expected at least 8 bytes, found " +
                     std::to_string(cursor->key().size()),
                 handle.offset);
    }
    RETURN_IF_ERROR(visitor(cursor->key(), cursor->value()));
  }
  return s;
}

Status SstReader::Anchors(size_t max_count,
                          std::vector<SstAnchor>* anchors) const {
  anchors->clear();
  // If the property is wrong, the anchors are only spread unevenly.
  const uint64_t total =
      std::min(properties_.data_bytes, footer_.footer_offset);
  SstAnchor last;
  uint64_t key_bytes = 0;
  Status s = ForEachIndexEntry([&](const SstIndexEntry& entry) {
    last.user_key.assign(entry.separator.data(), entry.separator.size());
    last.file_bytes = entry.handle.end();
    // Keeps one anchor for the last block.
    if (anchors->size() + 1 < max_count &&
        entry.separator.size() <= kMaxKeyBytes &&
        static_cast<double>(last.file_bytes) * max_count >=
            static_cast<double>(total) * (anchors->size() + 1)) {
      anchors->push_back(last);
      key_bytes += last.user_key.size();
    }
    if (key_bytes > kMaxAnchorKeyBytes) {
      // Continues with the new distance between anchors.
      key_bytes = KeepEverySecond(anchors);
      max_count = static_cast<size_t>(std::min(
          static_cast<double>(max_count),
          static_cast<double>(total) * anchors->size() / last.file_bytes));
    }
    return Status::OK();
  });
  if (!s.ok()) {
    anchors->clear();
    return s;
  }
  if (last.file_bytes != 0 &&
      (anchors->empty() || anchors->back().file_bytes < last.file_bytes)) {
    anchors->push_back(std::move(last));
  }
  return s;
}

void AddTableNeeds(const SstReader& reader, Needs* needs) {
  if (reader.footer().is_block_based) {
    needs->AddFormatVersion(reader.footer().format_version);
  }
  if (reader.footer().checksum == SstChecksum::kXxh3) {
    needs->Add(kReadsXxh3Checksums, "XXH3 checksums");
  }
  const SstProperties& properties = reader.properties();
  if (properties.has_separated_values != 0) {
    needs->Add(kReadsMarkedBlocks, "blocks with values apart from keys");
  } else if (properties.num_uniform_blocks != 0) {
    needs->Add(kReadsMarkedBlocks, "uniform index blocks");
  }
  if (properties.has_embedded_blobs) {
    needs->Add(kReadsEmbeddedBlobs, "tables with embedded blobs");
  }
}

}  // namespace sstferry
