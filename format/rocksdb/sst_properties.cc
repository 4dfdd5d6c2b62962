#include "format/rocksdb/sst_properties.h"

#include <string_view>

#include "format/end_state.h"
#include "format/rocksdb/sst_block.h"
#include "format/rocksdb/sst_coding.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

struct NumberRow {
  const char* name;
  uint64_t SstProperties::*field;
};

constexpr NumberRow kNumbers[] = {
    {"rocksdb.data.size", &SstProperties::data_bytes},
    {"rocksdb.deleted.keys", &SstProperties::num_deletions},
    {"rocksdb.index.key.is.user.key", &SstProperties::index_key_is_user_key},
    {"rocksdb.index.value.is.delta.encoded",
     &SstProperties::index_value_is_delta_encoded},
    {"rocksdb.merge.operands", &SstProperties::num_merge_operands},
    {"rocksdb.num.data.blocks", &SstProperties::num_data_blocks},
    {"rocksdb.num.entries", &SstProperties::num_entries},
    {"rocksdb.num.range-deletions", &SstProperties::num_range_deletions},
    {"rocksdb.num.uniform.blocks", &SstProperties::num_uniform_blocks},
    {"rocksdb.original.file.number", &SstProperties::original_file_number},
    {"rocksdb.raw.key.size", &SstProperties::raw_key_bytes},
    {"rocksdb.separate.key.value.in.data.block",
     &SstProperties::has_separated_values},
};

struct TextRow {
  const char* name;
  std::string SstProperties::*field;
};

constexpr TextRow kTexts[] = {
    {"rocksdb.comparator", &SstProperties::comparator},
    {"rocksdb.compression", &SstProperties::compression},
    {"rocksdb.compression_options", &SstProperties::compression_options},
    {"rocksdb.creating.db.identity", &SstProperties::db_id},
    {"rocksdb.creating.session.identity", &SstProperties::db_session_id},
};

constexpr std::string_view kIndexTypeName =
    "rocksdb.block.based.table.index.type";
// As in RocksDB, a table has embedded blobs if this property exists, whatever
// its value is.
constexpr std::string_view kEmbeddedBlobsName = "rocksdb.embedded.blob.stats";
constexpr std::string_view kExternalVersionName =
    "rocksdb.external_sst_file.version";
constexpr std::string_view kExternalSeqnoName =
    "rocksdb.external_sst_file.global_seqno";

Status BadProperties(const std::string& what, uint64_t offset) {
  return MakeStatus(EndState::kCorrupt, "properties: " + what + ", offset " +
                                            std::to_string(offset));
}

// Decodes a property for which SstProperties has a member. Returns false if the
// value is not a number of the right size.
bool DecodeKnown(const std::string& name, const Slice& value,
                 SstProperties* out) {
  for (const NumberRow& row : kNumbers) {
    if (name == row.name) {
      Slice input = value;
      return sst::GetVarint64(&input, &(out->*row.field)) && input.empty();
    }
  }
  for (const TextRow& row : kTexts) {
    if (name == row.name) {
      out->*row.field = value.ToString();
      return true;
    }
  }
  if (name == kIndexTypeName) {
    if (value.size() != sizeof(uint32_t)) {
      return false;
    }
    const uint32_t type = sst::DecodeLittle32(value.data());
    out->index_type = static_cast<SstIndexType>(type);
    return type <=
           static_cast<uint32_t>(SstIndexType::kBinarySearchWithFirstKey);
  }
  if (name == kExternalVersionName) {
    if (value.size() != sizeof(uint32_t)) {
      return false;
    }
    out->external_version = sst::DecodeLittle32(value.data());
  } else if (name == kExternalSeqnoName) {
    if (value.size() != sizeof(uint64_t)) {
      return false;
    }
    out->external_global_seqno = sst::DecodeLittle64(value.data());
  }
  out->has_embedded_blobs |= name == kEmbeddedBlobsName;
  return true;
}

}  // namespace

Status DecodeSstProperties(const Slice& contents, uint64_t file_offset,
                           SstProperties* out) {
  SstProperties decoded;
  SstBlockCursor cursor;
  RETURN_IF_ERROR(cursor.Init(contents, SstBlockLayout(), file_offset));
  Status s = cursor.Next();
  std::string previous;
  uint64_t total_bytes = 0;
  for (; s.ok() && cursor.valid(); s = cursor.Next()) {
    // Limits the total size. Keys share prefixes, so a small block may expand
    // to very long names.
    total_bytes += cursor.key().size() + cursor.value().size();
    if (total_bytes > kMaxSstMetaBlockBytes) {
      return BadProperties("names and values: expected at most " +
                     std::to_string(kMaxSstMetaBlockBytes) + " bytes, found " +
                     std::to_string(total_bytes),
                 file_offset);
    }
    if (cursor.entries() > 1 && cursor.key() <= previous) {
      return BadProperties("order: expected a name above " +
                               sst::HexKey(previous) + ", found " +
                               sst::HexKey(cursor.key()),
                           file_offset);
    }
    previous = cursor.key();
    if (!DecodeKnown(cursor.key(), cursor.value(), &decoded)) {
      return BadProperties(cursor.key() + ": expected a valid number, found " +
                     sst::HexKey(cursor.value()),
                 file_offset);
    }
  }
  RETURN_IF_ERROR(s);
  decoded.digest = DigestOf(contents);
  *out = std::move(decoded);
  return Status::OK();
}

}  // namespace sstferry
