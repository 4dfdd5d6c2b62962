#include "pipeline/source/plan/carry_rules.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "format/hex.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"

namespace sstferry {
namespace {

using rocksdb::BlockBasedTableOptions;

constexpr char kFullFilter[] = "fullfilter.";
constexpr char kPartitionedFilter[] = "partitionedfilter.";
constexpr char kBlockFilter[] = "filter.";
constexpr char kNoPrefixExtractor[] = "nullptr";
constexpr char kWholeKeyProperty[] =
    "rocksdb.block.based.table.whole.key.filtering";
// Name of both kinds of RocksDB's filters in tables before 7.0.
constexpr char kOldFilterName[] = "rocksdb.BuiltinBloomFilter";
constexpr char kBloomName[] = "bloomfilter";

// Values of rocksdb.compression up to format version 6.
constexpr struct {
  const char* name;
  uint8_t type;
} kCompressionNames[] = {
    {"NoCompression", 0}, {"Snappy", 1}, {"Zlib", 2},
    {"BZip2", 3},         {"LZ4", 4},    {"LZ4HC", 5},
    {"Xpress", 6},        {"ZSTD", 7},   {"ZSTDNotFinal", 0x40},
};

const char* CompressionName(uint8_t type) {
  for (const auto& known : kCompressionNames) {
    if (known.type == type) {
      return known.name;
    }
  }
  return "unknown";
}

// Returns the compression types that blocks of a table may have; nullopt if the
// name is unknown. From format version 7 the property is "MANAGER;", two hex
// digits for each type used, ";". No manager means no compression.
std::optional<std::set<uint8_t>> CompressionsOf(const std::string& property) {
  for (const auto& known : kCompressionNames) {
    if (property == known.name) {
      return std::set<uint8_t>{known.type};
    }
  }
  const size_t first = property.find(';');
  const size_t second =
      first == std::string::npos ? first : property.find(';', first + 1);
  const std::string manager = property.substr(0, first);
  if (second == std::string::npos || (second - first) % 2 != 1 ||
      (!manager.empty() && manager != "BuiltinV2")) {
    return std::nullopt;
  }
  std::set<uint8_t> types;
  for (size_t at = first + 1; at < second; at += 2) {
    const auto type = HexByte(property[at], property[at + 1]);
    if (!type.has_value()) {
      return std::nullopt;
    }
    types.insert(*type);
  }
  return types;
}

// Returns the number of `name` in "level=3; max_dict_bytes=0; ...".
std::optional<int64_t> OptionIn(const std::string& text,
                                const std::string& name) {
  const std::string key = name + "=";
  for (size_t at = text.find(key); at != std::string::npos;
       at = text.find(key, at + 1)) {
    if (at == 0 || text[at - 1] == ' ') {
      return std::strtoll(text.c_str() + at + key.size(), nullptr, 10);
    }
  }
  return std::nullopt;
}

bool IsFilterBlock(const std::string& name) {
  const rocksdb::Slice block(name);
  return block.starts_with(kFullFilter) ||
         block.starts_with(kPartitionedFilter) ||
         block.starts_with(kBlockFilter);
}

std::string FilterDifference(const TableShape& shape,
                             const TableFacts& table) {
  std::string found;
  for (const SstMetaBlock& block : *table.meta_blocks) {
    if (IsFilterBlock(block.name)) {
      found = block.name;
    }
  }
  if (found != shape.filter_block) {
    return "filter: " + (found.empty() ? "none" : found) + ", not " +
           (shape.filter_block.empty() ? "none" : shape.filter_block);
  }
  if (found.empty()) {
    return "";
  }
  const SstProperties& properties = *table.properties;
  const bool same_policy =
      properties.filter_policy == shape.filter_policy ||
      (properties.filter_policy == kOldFilterName &&
       shape.filter_policy == kBloomName);
  if (!same_policy) {
    return "filter: " + properties.filter_policy + ", not " +
           shape.filter_policy;
  }
  const auto whole = properties.all.find(kWholeKeyProperty);
  if (whole != properties.all.end() &&
      (whole->second == "1") != shape.whole_key_filter) {
    return shape.whole_key_filter ? "filter: not of whole keys"
                                  : "filter: of whole keys";
  }
  return "";
}

std::string CompressionDifference(const TableShape& shape,
                                  const SstProperties& properties) {
  const auto types = CompressionsOf(properties.compression);
  const bool by_manager =
      properties.compression.find(';') != std::string::npos;
  bool same = types.has_value();
  if (same && by_manager) {
    // Blocks that do not shrink are stored uncompressed.
    same = properties.compression[0] == ';'
               ? shape.compression == 0
               : shape.compression != 0 &&
                     std::all_of(types->begin(), types->end(),
                                 [&shape](uint8_t type) {
                                   return type == 0 ||
                                          type == shape.compression;
                                 });
  } else if (same) {
    same = types->count(shape.compression) != 0;
  }
  if (!same) {
    return "compression: " + properties.compression + ", not " +
           CompressionName(shape.compression);
  }
  const std::string& options = properties.compression_options;
  if (shape.compression == 0 || options.empty()) {
    return "";
  }
  if (OptionIn(options, "level").value_or(shape.compression_level) !=
          shape.compression_level ||
      OptionIn(options, "max_dict_bytes").value_or(shape.dictionary_bytes) !=
          shape.dictionary_bytes) {
    return "compression: another level or dictionary size";
  }
  return "";
}

std::string Count(uint64_t number, const char* what) {
  return "holds " + std::to_string(number) + " " + what +
         (number == 1 ? "" : "s");
}

}  // namespace

TableShape ShapeOf(const rocksdb::Options& chunk_options) {
  TableShape shape;
  const auto* table =
      chunk_options.table_factory->GetOptions<BlockBasedTableOptions>();
  if (table != nullptr) {
    shape.index_type = static_cast<SstIndexType>(table->index_type);
    shape.whole_key_filter = table->whole_key_filtering;
    if (table->filter_policy != nullptr) {
      const bool partitioned =
          table->partition_filters &&
          table->index_type ==
              BlockBasedTableOptions::IndexType::kTwoLevelIndexSearch;
      shape.filter_policy = table->filter_policy->Name();
      shape.filter_block =
          std::string(partitioned ? kPartitionedFilter : kFullFilter) +
          table->filter_policy->CompatibilityName();
    }
  }
  // Same choice as SstFileWriter's.
  rocksdb::CompressionOptions options = chunk_options.compression_opts;
  rocksdb::CompressionType type = chunk_options.compression;
  if (chunk_options.bottommost_compression !=
      rocksdb::kDisableCompressionOption) {
    type = chunk_options.bottommost_compression;
    if (chunk_options.bottommost_compression_opts.enabled) {
      options = chunk_options.bottommost_compression_opts;
    }
  } else if (!chunk_options.compression_per_level.empty()) {
    type = chunk_options.compression_per_level.back();
  }
  shape.compression = static_cast<uint8_t>(type);
  shape.compression_level = options.level;
  shape.dictionary_bytes = options.max_dict_bytes;
  shape.prefix_extractor = chunk_options.prefix_extractor != nullptr
                               ? chunk_options.prefix_extractor->AsString()
                               : kNoPrefixExtractor;
  return shape;
}

std::string ObstacleInMetadata(const CarryRules& rules, const FilePlan& file) {
  if (rules.mode == CarryMode::kNever) {
    return "carrying is disabled";
  }
  if (!rules.target_takes_carried) {
    return "the target does not accept carried files";
  }
  if (rules.comparator->timestamp_size() > 0) {
    return "keys carry timestamps";
  }
  if (rules.plain_tables) {
    return "in a family of plain tables";
  }
  if (rules.wal_not_flushed) {
    return "wal not flushed";
  }
  if (rules.replaces && rules.comparator != rocksdb::BytewiseComparator()) {
    return "a refresh of keys in an order other than bytewise";
  }
  if (rules.replaces && file.smallest.empty()) {
    return "a refresh of the empty key";
  }
  if (file.largest_sequence != 0 || file.smallest_sequence != 0) {
    return "sequence numbers up to " + std::to_string(file.largest_sequence);
  }
  if (!file.overlaps.empty()) {
    return "overlaps " + file.overlaps;
  }
  if (!file.inside) {
    return "cut by the requested bounds";
  }
  if (file.has_blobs) {
    return "refers to blob files";
  }
  // The range deletion of a refresh ends at a key behind the last one.
  const size_t longest = kMaxKeyBytes - (rules.replaces ? 1 : 0);
  if (file.smallest.size() > kMaxKeyBytes || file.largest.size() > longest) {
    return "a key is longer than " + std::to_string(kMaxKeyBytes) + " bytes";
  }
  return ObstacleInSize(rules, file.bytes);
}

std::string ObstacleInSize(const CarryRules& rules, uint64_t bytes) {
  return bytes > rules.max_bytes
             ? "larger than a chunk of " + std::to_string(rules.max_bytes) +
                   " bytes"
             : "";
}

std::string ObstacleInTable(const CarryRules& rules, const TableFacts& table) {
  if (rules.replaces && (table.properties->db_id.empty() ||
                         table.properties->db_session_id.empty() ||
                         table.properties->original_file_number == 0)) {
    return "a refresh of a file that has no identity";
  }
  const SstProperties& properties = *table.properties;
  if (properties.num_range_deletions != 0) {
    return Count(properties.num_range_deletions, "range deletion");
  }
  if (properties.num_deletions != 0) {
    return Count(properties.num_deletions, "deletion");
  }
  if (properties.num_merge_operands != 0) {
    return Count(properties.num_merge_operands, "merge operand");
  }
  if (properties.num_entries == 0) {
    return "holds no entries";
  }
  if (properties.raw_key_bytes < properties.key_trailer_bytes()) {
    return "its properties do not add up";
  }
  if (properties.comparator != rules.comparator->Name()) {
    return "comparator " + properties.comparator;
  }
  const uint32_t version = table.footer.format_version;
  if (version > rules.max_format_version) {
    return "format version " + std::to_string(version) +
           ", the target reads up to " +
           std::to_string(rules.max_format_version);
  }
  if (rules.asked_format_version != 0 &&
      version != rules.asked_format_version) {
    return "format version " + std::to_string(version) + ", not " +
           std::to_string(rules.asked_format_version);
  }
  if (!rules.reads_marked_blocks && properties.has_separated_values != 0) {
    return "values apart from keys, which the target does not read";
  }
  if (!rules.reads_marked_blocks && properties.num_uniform_blocks != 0) {
    return "blocks of uniform keys, which the target does not read";
  }
  const auto types = CompressionsOf(properties.compression);
  if (!types.has_value()) {
    return "compression " + properties.compression + " is not understood";
  }
  for (const uint8_t type : *types) {
    if (type != 0 && rules.compressions.count(type) == 0) {
      return std::string("the target lacks compression ") +
             CompressionName(type);
    }
  }
  return "";
}

std::string DifferenceInTable(const CarryRules& rules,
                              const TableFacts& table) {
  if (table.footer.checksum == SstChecksum::kNone) {
    return "no block checksums";
  }
  const SstProperties& properties = *table.properties;
  const TableShape& shape = rules.shape;
  std::string difference = FilterDifference(shape, table);
  if (difference.empty() && properties.index_type != shape.index_type) {
    difference = std::string("index: ") +
                 SstIndexTypeName(properties.index_type) + ", not " +
                 SstIndexTypeName(shape.index_type);
  }
  if (difference.empty()) {
    difference = CompressionDifference(shape, properties);
  }
  const std::string extractor = properties.prefix_extractor.empty()
                                    ? kNoPrefixExtractor
                                    : properties.prefix_extractor;
  if (difference.empty() && extractor != shape.prefix_extractor) {
    difference = "prefix extractor: " + extractor + ", not " +
                 shape.prefix_extractor;
  }
  return difference;
}

}  // namespace sstferry
