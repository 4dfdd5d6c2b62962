#include "tests/support/sst_files.h"

#include <map>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/comparator.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"

namespace sstferry::test {

using rocksdb::BlockBasedTableOptions;
using rocksdb::Slice;

namespace {

// Templates, so that this compiles with RocksDB versions that do not have these
// members.
template <typename TableOptions>
constexpr bool HasMarks() {
  return requires(TableOptions table) {
    table.separate_key_value_in_data_block;
    table.uniform_cv_threshold;
    table.super_block_alignment_size;
  };
}

template <typename TableOptions>
void SetMarks(const SstShape& shape, TableOptions* table) {
  if constexpr (HasMarks<TableOptions>()) {
    table->separate_key_value_in_data_block = shape.separate_values;
    table->uniform_cv_threshold = shape.mark_uniform ? 1e9 : -1;
    table->super_block_alignment_size = shape.super_block_bytes;
    table->super_block_alignment_space_overhead_ratio = 4;
  }
}

}  // namespace

bool CanMarkBlocks() { return HasMarks<BlockBasedTableOptions>(); }

std::string SstShape::Name() const {
  return "compression " + std::to_string(compression) + " dict " +
         std::to_string(dict_bytes) + " checksum " + std::to_string(checksum) +
         " index " + std::to_string(index) + " version " +
         std::to_string(format_version) + " hash " +
         std::to_string(hash_in_blocks) + " filter " + std::to_string(filter) +
         " align " + std::to_string(align) + " index restarts " +
         std::to_string(index_restart_interval) + " separate " +
         std::to_string(separate_values) + " uniform " +
         std::to_string(mark_uniform) + " super block " +
         std::to_string(super_block_bytes);
}

rocksdb::Options SstShape::ToOptions(rocksdb::Env* env) const {
  BlockBasedTableOptions table;
  table.checksum = checksum;
  table.index_type = index;
  table.format_version = format_version;
  table.block_size = block_bytes;
  table.block_restart_interval = restart_interval;
  table.index_block_restart_interval = index_restart_interval;
  table.metadata_block_size = 256;
  table.block_align = align;
  SetMarks(*this, &table);
  if (hash_in_blocks) {
    table.data_block_index_type =
        BlockBasedTableOptions::kDataBlockBinaryAndHash;
  }
  if (filter != 0) {
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.partition_filters = filter == 2;
  }
  rocksdb::Options options;
  options.env = env;
  options.compression = compression;
  options.compression_opts.max_dict_bytes = dict_bytes;
  options.compression_opts.zstd_max_train_bytes = 0;
  if (index == BlockBasedTableOptions::kHashSearch) {
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(4));
  }
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

std::unique_ptr<rocksdb::Env> NewMemoryEnv() {
  return std::unique_ptr<rocksdb::Env>(
      rocksdb::NewMemEnv(rocksdb::Env::Default()));
}

std::string ReadWhole(rocksdb::Env* env, const std::string& path) {
  std::string bytes;
  REQUIRE_OK(rocksdb::ReadFileToString(env, path, &bytes));
  return bytes;
}

KeyValues SampleEntries(size_t count, size_t value_bytes) {
  KeyValues entries;
  for (size_t i = 0; i < count; ++i) {
    const std::string digits = std::to_string(1000000 + i * 7);
    std::string value = "value of " + digits;
    value.resize(value_bytes + i % 13, static_cast<char>('a' + i % 26));
    entries.emplace_back("key" + digits, value);
  }
  return entries;
}

std::string WriteSst(rocksdb::Env* env, const SstShape& shape,
                     const KeyValues& entries) {
  return WriteSst(shape.ToOptions(env), entries);
}

std::string WriteSst(const rocksdb::Options& options,
                     const KeyValues& entries) {
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  REQUIRE_OK(writer.Open("/f.sst"));
  for (const auto& [key, value] : entries) {
    REQUIRE_OK(writer.Put(key, value));
  }
  REQUIRE_OK(writer.Finish());
  return ReadWhole(options.env, "/f.sst");
}

std::vector<uint32_t> WritableVersions() {
  std::vector<uint32_t> versions;
  const auto env = NewMemoryEnv();
  for (uint32_t version = 2; version <= kMaxSstFormatVersion; ++version) {
    SstShape shape;
    shape.format_version = version;
    rocksdb::ColumnFamilyOptions options(shape.ToOptions(env.get()));
    if (options.table_factory
            ->ValidateOptions(rocksdb::DBOptions(), options)
            .ok()) {
      versions.push_back(version);
    }
  }
  REQUIRE(versions.back() == kMaxTableFormatVersion);
  return versions;
}

ChunkExpectation Expect(const SstShape& shape, const KeyValues& entries) {
  ChunkExpectation expected;
  expected.smallest = entries.front().first;
  expected.largest = entries.back().first;
  expected.num_entries = entries.size();
  uint64_t key_bytes = 0;
  for (const auto& [key, value] : entries) {
    key_bytes += key.size();
  }
  expected.key_bytes = key_bytes;
  expected.comparator = "leveldb.BytewiseComparator";
  expected.format_version = shape.format_version;
  expected.allow_marked_blocks = true;
  expected.order = [](const Slice& a, const Slice& b) { return a.compare(b); };
  return expected;
}

std::string InternalKey(const std::string& user_key, uint8_t type,
                        uint64_t sequence) {
  std::string key = user_key;
  PutFixed(&key, sequence << 8 | type, 8);
  return key;
}

void PutVarint(std::string* dst, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    dst->push_back(static_cast<char>(value | 0x80));
  }
  dst->push_back(static_cast<char>(value));
}

void PutFixed(std::string* dst, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    dst->push_back(static_cast<char>(value >> (8 * i)));
  }
}

std::string EncodeHandle(const SstBlockHandle& handle) {
  std::string encoded;
  PutVarint(&encoded, handle.offset);
  PutVarint(&encoded, handle.size);
  return encoded;
}

std::string PlainBlock(const KeyValues& entries) {
  std::string block;
  std::string restarts;
  for (const auto& [key, value] : entries) {
    PutFixed(&restarts, block.size(), 4);
    PutVarint(&block, 0);
    PutVarint(&block, key.size());
    PutVarint(&block, value.size());
    block += key + value;
  }
  if (entries.empty()) {
    PutFixed(&restarts, 0, 4);
  }
  block += restarts;
  PutFixed(&block, restarts.size() / 4, 4);
  return block;
}

RawSst::RawSst(uint32_t format_version, SstChecksum checksum) {
  footer_.format_version = format_version;
  footer_.checksum = checksum;
  footer_.base_context_checksum = format_version >= 6 ? 0x12345678u : 0;
}

SstBlockHandle RawSst::Add(const std::string& payload, char compression) {
  const SstBlockHandle handle = {file_.size(), payload.size()};
  const std::string sealed = payload + compression;
  file_ += sealed;
  PutFixed(&file_,
           ComputeSstChecksum(footer_.checksum, sealed) +
               footer_.ContextModifier(handle.offset),
           4);
  return handle;
}

std::string RawSst::Finish(const KeyValues& metaindex,
                           const SstBlockHandle& index) {
  return FinishWith(PlainBlock(metaindex), index);
}

std::string RawSst::FinishWith(const std::string& metaindex,
                               const SstBlockHandle& index) {
  const SstBlockHandle meta = Add(metaindex);
  std::string footer(1, static_cast<char>(footer_.checksum));
  if (footer_.format_version < 6) {
    footer += EncodeHandle(meta) + EncodeHandle(index);
  } else {
    footer += std::string("\x3e\x00\x7a\x00\x00\x00\x00\x00", 8);
    PutFixed(&footer, footer_.base_context_checksum, 4);
    PutFixed(&footer, meta.size, 4);
  }
  footer.resize(41, '\0');
  PutFixed(&footer, footer_.format_version, 4);
  PutFixed(&footer, 0x88e241b785f4cff7ull, 8);
  if (footer_.format_version >= 6) {
    std::string sum;
    PutFixed(&sum,
             ComputeSstChecksum(footer_.checksum, footer) +
                 footer_.ContextModifier(file_.size()),
             4);
    footer.replace(5, 4, sum);
  }
  return file_ + footer;
}

std::string RawProperties(uint64_t entries, uint64_t blocks,
                          uint64_t data_bytes, const KeyValues& changed) {
  const auto number = [](uint64_t value) {
    std::string encoded;
    PutVarint(&encoded, value);
    return encoded;
  };
  std::map<std::string, std::string> properties = {
      {"rocksdb.block.based.table.index.type", std::string(4, '\0')},
      {"rocksdb.data.size", number(data_bytes)},
      {"rocksdb.external_sst_file.global_seqno", std::string(8, '\0')},
      {"rocksdb.external_sst_file.version", std::string("\x02\0\0\0", 4)},
      {"rocksdb.index.key.is.user.key", number(1)},
      {"rocksdb.num.data.blocks", number(blocks)},
      {"rocksdb.num.entries", number(entries)},
  };
  for (const auto& [name, value] : changed) {
    properties[name] = value;
  }
  return PlainBlock(KeyValues(properties.begin(), properties.end()));
}

std::string RawTable(const std::vector<KeyValues>& blocks,
                     const std::vector<std::string>& separators,
                     uint32_t format_version, const KeyValues& changed,
                     const KeyValues& range_deletions) {
  RawSst file(format_version);
  KeyValues index_entries;
  uint64_t entries = 0;
  uint64_t data_bytes = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const SstBlockHandle handle = file.Add(PlainBlock(blocks[i]));
    index_entries.emplace_back(separators[i], EncodeHandle(handle));
    entries += blocks[i].size();
    data_bytes = handle.end();
  }
  const SstBlockHandle index = file.Add(PlainBlock(index_entries));
  KeyValues properties;
  std::string count;
  PutVarint(&count, range_deletions.size());
  if (!range_deletions.empty()) {
    properties = {{"rocksdb.deleted.keys", count},
                  {"rocksdb.num.range-deletions", count}};
  }
  properties.insert(properties.end(), changed.begin(), changed.end());
  const SstBlockHandle props =
      file.Add(RawProperties(entries + range_deletions.size(), blocks.size(),
                             data_bytes, properties));
  KeyValues metaindex = {{"rocksdb.properties", EncodeHandle(props)}};
  if (!range_deletions.empty()) {
    metaindex.emplace_back("rocksdb.range_del",
                           EncodeHandle(file.Add(PlainBlock(range_deletions))));
  }
  if (format_version >= 6) {
    metaindex.insert(metaindex.begin(),
                     {"rocksdb.index", EncodeHandle(index)});
  }
  return file.Finish(metaindex, index);
}

void Reseal(std::string* file, const SstBlockHandle& handle) {
  SstFooter footer;
  REQUIRE_OK(ReadSstFooter(SliceSource(*file), &footer));
  std::string sum;
  PutFixed(&sum,
           ComputeSstChecksum(footer.checksum,
                              Slice(file->data() + handle.offset,
                                    handle.size + 1)) +
               footer.ContextModifier(handle.offset),
           4);
  file->replace(handle.offset + handle.size + 1, 4, sum);
}

}  // namespace sstferry::test
