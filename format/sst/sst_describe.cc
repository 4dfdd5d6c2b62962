#include "format/sst/sst_describe.h"

#include "format/sst/sst_coding.h"
#include "format/sst/sst_reader.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

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
                    SstIndexTypeName(reader.properties().index_type));
  for (const SstMetaBlock& meta : reader.meta_blocks()) {
    out->emplace_back("meta block " + DescribeSstProperty("", meta.name),
                      Place(meta.handle));
  }
  for (const auto& [name, value] : reader.properties().all) {
    out->emplace_back(DescribeSstProperty("", name),
                      DescribeSstProperty(name, value));
  }
  if (reader.properties().data_bytes == 0) {
    return s;
  }
  std::string first;
  std::string last;
  s = reader.ReadBoundKeys(&first, &last);
  if (s.ok()) {
    out->emplace_back("first key", InternalKeyText(first));
    out->emplace_back("last key", InternalKeyText(last));
  }
  return s;
}

}  // namespace sstferry
