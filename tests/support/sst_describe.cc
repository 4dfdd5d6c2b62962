#include "tests/support/sst_describe.h"

#include <algorithm>
#include <iterator>

#include "format/rocksdb/sst_coding.h"
#include "format/rocksdb/sst_reader.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr const char* kNumbers[] = {
    "rocksdb.column.family.id",
    "rocksdb.creation.time",
    "rocksdb.data.block.restart.interval",
    "rocksdb.data.size",
    "rocksdb.deleted.keys",
    "rocksdb.file.creation.time",
    "rocksdb.filter.size",
    "rocksdb.fixed.key.length",
    "rocksdb.format.version",
    "rocksdb.index.block.restart.interval",
    "rocksdb.index.key.is.user.key",
    "rocksdb.index.partitions",
    "rocksdb.index.size",
    "rocksdb.index.value.is.delta.encoded",
    "rocksdb.key.largest.seqno",
    "rocksdb.key.smallest.seqno",
    "rocksdb.merge.operands",
    "rocksdb.newest.key.time",
    "rocksdb.num.data.blocks",
    "rocksdb.num.data.blocks.compression.bypassed",
    "rocksdb.num.data.blocks.compression.rejected",
    "rocksdb.num.entries",
    "rocksdb.num.filter_entries",
    "rocksdb.num.range-deletions",
    "rocksdb.num.uniform.blocks",
    "rocksdb.oldest.key.time",
    "rocksdb.original.file.number",
    "rocksdb.raw.key.size",
    "rocksdb.raw.value.size",
    "rocksdb.sample_for_compression.fast.data.size",
    "rocksdb.sample_for_compression.slow.data.size",
    "rocksdb.separate.key.value.in.data.block",
    "rocksdb.tail.start.offset",
    "rocksdb.top-level.index.size",
    "rocksdb.udi.is.primary.index",
    "rocksdb.user.defined.timestamps.persisted",
};

const char* NameOf(SstIndexType type) {
  switch (type) {
    case SstIndexType::kBinarySearch:
      return "binary search";
    case SstIndexType::kHashSearch:
      return "hash search";
    case SstIndexType::kTwoLevel:
      return "two-level";
    case SstIndexType::kBinarySearchWithFirstKey:
      return "binary search with first key";
  }
  return "unknown";
}

// Formats a property's value: its number, its text, or hex.
std::string ValueText(const std::string& name, const std::string& value) {
  Slice input(value);
  uint64_t number = 0;
  if (std::find(std::begin(kNumbers), std::end(kNumbers), name) !=
          std::end(kNumbers) &&
      sst::GetVarint64(&input, &number) && input.empty()) {
    return std::to_string(number);
  }
  if (name == "rocksdb.block.based.table.index.type" &&
      value.size() == sizeof(uint32_t)) {
    return NameOf(
        static_cast<SstIndexType>(sst::DecodeLittle32(value.data())));
  }
  if (name == "rocksdb.external_sst_file.version" &&
      value.size() == sizeof(uint32_t)) {
    return std::to_string(sst::DecodeLittle32(value.data()));
  }
  if (name == "rocksdb.external_sst_file.global_seqno" &&
      value.size() == sizeof(uint64_t)) {
    return std::to_string(sst::DecodeLittle64(value.data()));
  }
  return sst::TextOrHex(value);
}

// Appends a line for each property of the file.
Status DescribeProperties(
    const SstReader& reader,
    std::vector<std::pair<std::string, std::string>>* out) {
  const SstMetaBlock* const meta = reader.FindMetaBlock(kSstPropertiesName);
  if (meta == nullptr) {
    return Status::OK();  // old tables have them under another name
  }
  SstBlock block;
  SstBlockCursor cursor;
  Status s = ReadSstBlock(reader.source(), reader.footer(), meta->handle,
                          kMaxSstMetaBlockBytes, Slice(), &block);
  if (s.ok()) {
    s = cursor.Init(block.contents(), SstBlockLayout(), meta->handle.offset);
  }
  if (s.ok()) {
    s = cursor.Next();
  }
  for (; s.ok() && cursor.valid(); s = cursor.Next()) {
    out->emplace_back(sst::TextOrHex(cursor.key()),
                      ValueText(cursor.key(), cursor.value().ToString()));
  }
  return s;
}

std::string Place(const SstBlockHandle& handle) {
  return "offset " + std::to_string(handle.offset) + ", " +
         std::to_string(handle.size) + " bytes";
}

std::string InternalKeyText(const std::string& key) {
  const size_t user_bytes = key.size() - kSstKeyTrailerBytes;
  const uint64_t trailer = sst::DecodeLittle64(key.data() + user_bytes);
  return sst::HexKey(Slice(key.data(), user_bytes)) + " sequence " +
         std::to_string(trailer >> 8) + " type " +
         std::to_string(trailer & 0xff);
}

}  // namespace

Status ReadBoundKeys(const SstReader& reader, std::string* first,
                     std::string* last) {
  first->clear();
  last->clear();
  return reader.ForEachIndexEntry([&](const SstIndexEntry& block) {
    return reader.ForEachEntry(
        block.handle, [&](const Slice& key, const Slice&) {
          if (first->empty()) {
            first->assign(key.data(), key.size());
          }
          last->assign(key.data(), key.size());
          return Status::OK();
        });
  });
}

Status DescribeSst(const ByteSource& source,
                   std::vector<std::pair<std::string, std::string>>* out) {
  out->emplace_back("file bytes", std::to_string(source.size()));
  SstFooter footer;
  Status s = ReadSstFooter(source, &footer);
  if (!s.ok()) {
    return s;
  }
  out->emplace_back("footer offset", std::to_string(footer.footer_offset));
  out->emplace_back("format version", std::to_string(footer.format_version));
  out->emplace_back("checksum", SstChecksumName(footer.checksum));
  if (footer.base_context_checksum != 0) {
    out->emplace_back("base context checksum",
                      std::to_string(footer.base_context_checksum));
  }
  out->emplace_back("metaindex", Place(footer.metaindex));
  SstReader reader;
  s = reader.Open(&source);
  if (!s.ok()) {
    return s;
  }
  out->emplace_back("index", Place(reader.index_handle()));
  out->emplace_back("index type",
                    NameOf(reader.properties().index_type));
  for (const SstMetaBlock& meta : reader.meta_blocks()) {
    out->emplace_back("meta block " + sst::TextOrHex(meta.name),
                      Place(meta.handle));
  }
  s = DescribeProperties(reader, out);
  if (!s.ok() || reader.properties().data_bytes == 0) {
    return s;
  }
  std::string first;
  std::string last;
  s = ReadBoundKeys(reader, &first, &last);
  if (s.ok() && !first.empty()) {
    out->emplace_back("first key", InternalKeyText(first));
    out->emplace_back("last key", InternalKeyText(last));
  }
  return s;
}

}  // namespace sstferry
