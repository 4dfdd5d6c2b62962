// Tests column families of all kinds.
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "rocksdb/wide_columns.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test::exact_families_test {
namespace {

using rocksdb::BlockBasedTableOptions;

rocksdb::ColumnFamilyOptions WithTable(const BlockBasedTableOptions& table) {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// Returns a family for each table option that changes the layout of files.
Families ManyShapes() {
  Families families;
  const auto add = [&families](const std::string& name,
                               const BlockBasedTableOptions& table)
      -> rocksdb::ColumnFamilyOptions& {
    families.push_back({name, WithTable(table)});
    return families.back().options;
  };
  add("default", {});
  add("snappy", {}).compression = rocksdb::kSnappyCompression;
  add("lz4", {}).compression = rocksdb::kLZ4Compression;
  add("zlib", {}).compression = rocksdb::kZlibCompression;
  rocksdb::ColumnFamilyOptions& zstd = add("zstd at the bottom", {});
  zstd.compression = rocksdb::kNoCompression;
  zstd.bottommost_compression = rocksdb::kZSTD;
  BlockBasedTableOptions bloom;
  bloom.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  bloom.whole_key_filtering = true;
  add("bloom", bloom).optimize_filters_for_hits = false;
  BlockBasedTableOptions ribbon;
  ribbon.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(8));
  add("ribbon", ribbon);
  BlockBasedTableOptions partitioned = bloom;
  partitioned.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
  partitioned.partition_filters = true;
  partitioned.metadata_block_size = 512;
  add("partitioned", partitioned);
  BlockBasedTableOptions small;
  small.block_size = 512;
  small.block_restart_interval = 3;
  small.checksum = rocksdb::kxxHash64;
  small.data_block_index_type =
      BlockBasedTableOptions::kDataBlockBinaryAndHash;
  add("small blocks", small);
  BlockBasedTableOptions unchecked;
  unchecked.checksum = rocksdb::kNoChecksum;
  add("no checksum", unchecked);
  rocksdb::ColumnFamilyOptions& backwards = add("backwards", bloom);
  backwards.comparator = rocksdb::ReverseBytewiseComparator();
  backwards.compression = rocksdb::kLZ4Compression;
  add("never written", {}).compression = rocksdb::kZSTD;
  add(std::string("n\xc3\xa4me with: #odd \\ bytes"), {});
  return families;
}

void Fill(OpenDb* db, const Families& families) {
  for (int round = 0; round < 3; ++round) {
    for (const auto& family : families) {
      if (family.name == "never written") continue;
      for (int i = round; i < 900; i += 2) {
        db->Put(NumberedKey(i),
                family.name + RandomBytes(i % 40, i) + std::string(60, 'v'),
                family.name);
      }
      db->Delete(NumberedKey(round * 10), family.name);
    }
    if (round < 2) db->Flush();
  }
}

}  // namespace

TEST_CASE("Families of every table shape, empty ones too, arrive",
          "[transfer][exact]") {
  const ScratchDir dir;
  const Families families = ManyShapes();
  {
    OpenDb db(dir / "source", families);
    Fill(&db, families);
  }
  Expectation expected;
  expected.families = families;
  PullOptions options;
  options.chunk_bytes = 64 << 10;
  options.verify = true;
  RequireMoves(dir, expected, options);
}

TEST_CASE("An empty database arrives", "[transfer][exact]") {
  const ScratchDir dir;
  { OpenDb db(dir / "source", OneFamily(Quiet())); }
  RequireMoves(dir);
  REQUIRE(EntriesOf(dir / "tcp", OneFamily()).empty());
}

TEST_CASE("Named families arrive without the default one",
          "[transfer][exact]") {
  const ScratchDir dir;
  const Families families = ManyShapes();
  {
    OpenDb db(dir / "source", families);
    Fill(&db, families);
  }
  PullOptions options;
  options.selection.families = {"backwards", "zlib", "never written"};
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  REQUIRE_OK(moved.status);
  Families wanted;
  for (const auto& family : families) {
    if (family.name == "backwards" || family.name == "zlib" ||
        family.name == "never written") {
      wanted.push_back(family);
    }
  }
  REQUIRE(EntriesOf(dir / "target", OneFamily(), "default").empty());
  // The comparison opens only these families, which a read-only open allows.
  Expectation expected;
  expected.families = wanted;
  ExpectEqual(dir / "source", dir / "target", expected);
}

TEST_CASE("A family that does not exist is refused by name",
          "[transfer][refused]") {
  const ScratchDir dir;
  { OpenDb db(dir / "source", OneFamily(Quiet())); }
  PullOptions options;
  options.selection.families = {"default", "missing"};
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(moved.message().find("'missing'") != std::string::npos);
}

TEST_CASE("Begin and end select in each family's own order",
          "[transfer][exact]") {
  const ScratchDir dir;
  Families families = {{"default", Quiet()}, {"backwards", Quiet()}};
  families[1].options.comparator = rocksdb::ReverseBytewiseComparator();
  {
    OpenDb db(dir / "source", families);
    for (int i = 0; i < 3000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(200, i));
      db.Put(NumberedKey(i), RandomBytes(200, i), "backwards");
    }
    db.Put("", "empty");
    db.Put(std::string("\0\x01", 2), "binary");
    db.Flush();
  }
  const std::string low = NumberedKey(500);
  const std::string high = NumberedKey(2500);
  struct Case {
    const char* family;
    KeyInterval interval;
    uint64_t entries;
  };
  const Case cases[] = {
      {"default", {low, high}, 2000},
      {"backwards", {high, low}, 2000},  // the interval is (500, 2500]
      {"default", {std::nullopt, low}, 502},
      {"default", {high, std::nullopt}, 500},
      {"default", {"", std::string("\0", 1)}, 1},
      {"default", {std::string("\0", 1), "k"}, 1},
      {"default", {std::nullopt, ""}, 0},
      {"default", {"x", "y"}, 0},
      {"backwards", {std::nullopt, low}, 2499},
  };
  int number = 0;
  for (const Case& one : cases) {
    const std::string target = dir / NumberedKey(number++);
    PullOptions options;
    options.selection.families = {one.family};
    options.selection.interval = one.interval;
    options.chunk_bytes = 64 << 10;
    const Ferried moved = Ferry(dir / "source", target, options);
    INFO("case " << number);
    REQUIRE_OK(moved.status);
    REQUIRE(moved.summary.entries == one.entries);
    Expectation expected;
    expected.interval = one.interval;
    expected.families = {one.family == families[0].name ? families[0]
                                                        : families[1]};
    ExpectEqual(dir / "source", target, expected);
  }
  PullOptions options;
  options.selection.families = {"backwards"};
  options.selection.interval = {low, high};
  const Ferried moved = Ferry(dir / "source", dir / "wrong", options);
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(moved.message().find("'backwards'") != std::string::npos);
}

TEST_CASE("Blob values arrive", "[transfer][exact]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.enable_blob_files = true;
  options.min_blob_size = 100;
  options.blob_compression_type = rocksdb::kLZ4Compression;
  Families families = {{"default", options}, {"small blobs", options}};
  families[1].options.min_blob_size = 0;
  families[1].options.merge_operator =
      MergeOperatorNamed("id=stringappend;delimiter=,");
  {
    OpenDb db(dir / "source", families);
    for (int round = 0; round < 3; ++round) {
      for (int i = round; i < 800; i += 2) {
        db.Put(NumberedKey(i), RandomBytes(i * 3, round * 1000 + i));
        db.Put(NumberedKey(i), RandomBytes(i % 20, i), "small blobs");
        if (i % 5 == 0) db.Merge(NumberedKey(i), "tail", "small blobs");
      }
      db.Flush();
    }
    db.Compact();
  }
  REQUIRE(FileCount(dir / "source", ".blob") > 0);
  Expectation expected;
  expected.families = families;
  PullOptions pull;
  pull.chunk_bytes = 64 << 10;
  RequireMoves(dir, expected, pull);
  REQUIRE(FileCount(dir / "local", ".blob") == 0);
}

TEST_CASE("Wide-column entities arrive with all their columns, or are cloned",
          "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    const auto put = [&db](int i, const rocksdb::WideColumns& columns) {
      REQUIRE_OK(db->PutEntity({}, db.cf(), NumberedKey(i), columns));
    };
    for (int i = 0; i < 1500; ++i) {
      const std::string text = std::to_string(i);
      db.Put(NumberedKey(i), "plain " + text);
      if (i % 3 == 0) put(i, {{"", "unnamed"}, {"a", text}, {"b", ""}});
      if (i % 3 == 1) put(i, {{"only", text}});
      if (i % 30 == 2) put(i, {});
      if (i % 30 == 5) put(i, {{"", text}});
    }
    db.Flush();
  }
  PullOptions options;
  options.verify = true;
  options.chunk_bytes = 64 << 10;
  if (RocksDbIsAtLeast(8, 6)) {
    RequireMoves(dir, {}, options);
    return;
  }
  options.method = PullMethod::kIngest;
  const Ferried refused = Ferry(dir / "source", dir / "refused", options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("'default'") != std::string::npos);
  REQUIRE(refused.message().find("wide-column") != std::string::npos);
  options.method = PullMethod::kAuto;
  const Ferried moved = FerryByRule(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.method == "clone");
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("Entities without columns arrive as entities, not as plain values",
          "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    REQUIRE_OK(db->PutEntity({}, db.cf(), "k", rocksdb::WideColumns()));
  }
  if (RocksDbIsAtLeast(8, 6)) {
    RequireMoves(dir);
  } else {
    const Ferried moved = FerryByRule(dir / "source", dir / "target");
    REQUIRE_OK(moved.status);
    REQUIRE(moved.summary.method == "clone");
    ExpectSameEntries(dir / "source", dir / "target");
  }
}

TEST_CASE("Plain tables arrive as block-based tables, and OPTIONS say so",
          "[transfer][exact]") {
  const bool total_order = GENERATE(false, true);
  CAPTURE(total_order);
  const ScratchDir dir;
  rocksdb::PlainTableOptions plain;
  rocksdb::ColumnFamilyOptions options = Quiet();
  if (total_order) {
    plain.hash_table_ratio = 0;
    plain.index_sparseness = 0;
  } else {
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(4));
  }
  options.table_factory.reset(rocksdb::NewPlainTableFactory(plain));
  options.compression = rocksdb::kNoCompression;
  rocksdb::DBOptions db_options;
  db_options.allow_mmap_reads = true;
  const Families families = {{"default", Quiet()}, {"plain", options}};
  {
    OpenDb db(dir / "source", families, db_options);
    for (int round = 0; round < 3; ++round) {
      for (int i = round; i < 3000; i += 2) {
        db.Put(NumberedKey(i), RandomBytes(80, i + round), "plain");
        db.Put(NumberedKey(i), "block-based");
      }
      db.Delete(NumberedKey(round), "plain");
      db.Flush();
    }
  }
  PullOptions pull;
  pull.chunk_bytes = 64 << 10;
  const Ferried moved = Ferry(dir / "source", dir / "target", pull, Via::kTcp);
  REQUIRE_OK(moved.status);
  REQUIRE(moved.notes_mention("plain tables become block-based"));
  // RocksDB cannot scan such a family in total order in prefix mode, so the
  // test compares with a model of its own puts.
  std::map<std::string, std::string> model;
  for (int round = 0; round < 3; ++round) {
    for (int i = round; i < 3000; i += 2) {
      model[NumberedKey(i)] = RandomBytes(80, i + round);
    }
    model.erase(NumberedKey(round));
  }
  Families arrived = families;
  arrived[1].options.table_factory.reset(rocksdb::NewBlockBasedTableFactory());
  const auto found = EntriesOf(dir / "target", arrived, "plain");
  REQUIRE(found == decltype(found)(model.begin(), model.end()));
  REQUIRE(EntriesOf(dir / "target", arrived).size() == 3000);
}

TEST_CASE("A prefix-Bloom family over several L0 files arrives whole",
          "[transfer][exact]") {
  const ScratchDir dir;
  BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = false;
  rocksdb::ColumnFamilyOptions options = WithTable(table);
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(5));
  {
    OpenDb db(dir / "source", OneFamily(options));
    for (int file = 0; file < 4; ++file) {
      for (int i = 0; i < 500; ++i) {
        // Neighbouring prefixes are in different files.
        char key[32];
        snprintf(key, sizeof(key), "%05d-%d", i * 4 + file, i);
        db.Put(key, RandomBytes(500, i));
      }
      db.Flush();
    }
  }
  Expectation expected;
  expected.families = OneFamily(options);
  PullOptions pull;
  pull.chunk_bytes = 64 << 10;
  pull.verify = true;
  RequireMoves(dir, expected, pull);
  REQUIRE(EntriesOf(dir / "local", OneFamily(options)).size() == 2000);
}

TEST_CASE("Files that the source ingested arrive", "[transfer][exact]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (int i = 0; i < 2000; ++i) db.Put(NumberedKey(i), "put");
    db.Flush();
    for (int file = 0; file < 4; ++file) {
      const std::string path = dir / NumberedKey(file);
      rocksdb::SstFileWriter writer(rocksdb::EnvOptions(),
                                    db->GetOptions(db.cf()));
      REQUIRE_OK(writer.Open(path));
      for (int i = file * 300; i < file * 300 + 500; ++i) {
        REQUIRE_OK(i % 9 == 0 ? writer.Delete(NumberedKey(i))
                              : writer.Put(NumberedKey(i),
                                           "ingested " + std::to_string(file)));
      }
      REQUIRE_OK(
          writer.DeleteRange(NumberedKey(5000), NumberedKey(6000 + file)));
      REQUIRE_OK(writer.Finish());
      rocksdb::IngestExternalFileOptions ingest;
      ingest.move_files = file % 2 == 0;
      REQUIRE_OK(db->IngestExternalFile({path}, ingest));
    }
    for (int i = 0; i < 2000; i += 7) db.Put(NumberedKey(i), "after");
  }
  RequireMoves(dir);
}

TEST_CASE("Families with zstd dictionaries arrive", "[transfer][exact]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kZSTD;
  options.compression_opts.max_dict_bytes = 16 << 10;
  options.compression_opts.zstd_max_train_bytes = 256 << 10;
  {
    OpenDb db(dir / "source", OneFamily(options));
    for (int i = 0; i < 20'000; ++i) {
      db.Put(NumberedKey(i), "{\"name\":\"" + std::to_string(i * 31) +
                                 "\",\"state\":\"ready\",\"size\":" +
                                 std::to_string(i % 97) + "}");
    }
    db.Flush();
  }
  Expectation expected;
  expected.families = OneFamily(options);
  PullOptions pull;
  pull.chunk_bytes = 64 << 10;
  RequireMoves(dir, expected, pull);
}

TEST_CASE("Universal families end in the last level", "[transfer][exact]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  options.num_levels = 5;
  {
    OpenDb db(dir / "source", OneFamily(options));
    for (int round = 0; round < 3; ++round) {
      for (int i = round; i < 4000; i += 2) {
        db.Put(NumberedKey(i), RandomBytes(90, round * 5000 + i));
      }
      db.Flush();
    }
  }
  Expectation expected;
  expected.families = OneFamily(options);
  PullOptions pull;
  pull.chunk_bytes = 64 << 10;
  RequireMoves(dir, expected, pull);
}

TEST_CASE("A family of one level arrives in it", "[transfer][exact]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.num_levels = 1;
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  {
    OpenDb db(dir / "source", OneFamily(options));
    for (int i = 0; i < 4000; ++i) db.Put(NumberedKey(i), RandomBytes(90, i));
  }
  Expectation expected;
  expected.families = OneFamily(options);
  expected.keeps_level0 = true;
  PullOptions pull;
  pull.chunk_bytes = 64 << 10;
  RequireMoves(dir, expected, pull);
}

TEST_CASE("FIFO families arrive in level 0, or are refused",
          "[transfer][exact]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compaction_style = rocksdb::kCompactionStyleFIFO;
  options.compaction_options_fifo.max_table_files_size = 1ull << 40;
  {
    OpenDb db(dir / "source", OneFamily(options));
    for (int round = 0; round < 3; ++round) {
      for (int i = round; i < 4000; i += 2) {
        db.Put(NumberedKey(i), RandomBytes(90, round * 5000 + i));
      }
      db.Flush();
    }
  }
  Expectation expected;
  expected.families = OneFamily(options);
  expected.keeps_level0 = true;
  PullOptions pull;
  pull.chunk_bytes = 64 << 10;
  if (kFifoIngestsToLevel0) {
    RequireMoves(dir, expected, pull);
    return;
  }
  pull.method = PullMethod::kIngest;
  const Ferried moved = Ferry(dir / "source", dir / "target", pull);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(moved.message().find("'default'") != std::string::npos);
  REQUIRE(moved.message().find("FIFO") != std::string::npos);
}

}  // namespace sstferry::test::exact_families_test
