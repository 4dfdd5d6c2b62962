// Tests sources with options of RocksDB 10 and 11. If the linked RocksDB does
// not know an option, the option is left out and everything else is
// transferred.
#include <fstream>
#include <iterator>

#include "format/byte_source.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/rocksdb_compat.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::newer_options_test {
namespace {

// Makes overwrites, runs of deletions, large values, files, and a rest in the
// WAL.
void Fill(const std::string& path, const Families& families,
          const rocksdb::DBOptions& options) {
  OpenDb db(path, families, options);
  for (int i = 0; i < 3000; ++i) {
    db.Put(NumberedKey(i), RandomBytes(20 + i % 200, i));
  }
  db.Put("large", RandomBytes(20'000, 1));
  db.Flush();
  for (int i = 500; i < 900; ++i) {
    db.Delete(NumberedKey(i));
  }
  for (int i = 2500; i < 3500; ++i) {
    db.Put(NumberedKey(i), std::to_string(i));
  }
}

SstProperties PropertiesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes = BytesIn(in);
  const SliceSource source(bytes);
  SstReader reader;
  REQUIRE_OK(reader.Open(&source));
  return reader.properties();
}

TEST_CASE("A source with every writing option of RocksDB 11 arrives",
          "[transfer][exact]") {
  const ScratchDir dir;
  const rocksdb::DBOptions database =
      DatabaseWith({{"track_and_verify_wals", "true"},
                    {"async_wal_precreate", "true"},
                    {"open_files_async", "true"},
                    {"skip_stats_update_on_db_open", "true"},
                    {"reuse_manifest_on_open", "true"},
                    {"optimize_manifest_for_recovery", "true"},
                    {"verify_manifest_content_on_close", "true"},
                    {"fast_sst_open", "true"},
                    {"max_manifest_space_amp_pct", "100"},
                    {"max_compaction_trigger_wakeup_seconds", "77"},
                    {"use_direct_io_for_compaction_reads", "true"}});
  Expectation expected;
  expected.families = OneFamily(
      FamilyWith({{"min_tombstones_for_range_conversion", "3"},
                  {"memtable_op_scan_flush_trigger", "10"},
                  {"read_triggered_compaction_threshold", "0.01"},
                  {"target_file_size_is_upper_bound", "true"},
                  {"verify_output_flags", "1027"},
                  {"memtable_verify_per_key_checksum_on_seek", "true"},
                  {"memtable_batch_lookup_optimization", "true"},
                  {"blob_compression_opts", "{level=3;}"}}));
  Fill(dir / "source", expected.families, database);
  RequireMoves(dir, expected);
}

TEST_CASE("Chunks have the block marks of the source's tables if source and "
          "target read them",
          "[transfer][exact]") {
  const ScratchDir dir;
  Expectation expected;
  expected.families = OneFamily(FamilyWith(
      {{"block_based_table_factory",
        "{separate_key_value_in_data_block=true;uniform_cv_threshold=1000;"
        "index_block_search_type=kAuto;format_version=7;block_size=1024;"
        "super_block_alignment_size=65536;}"}}));
  Fill(dir / "source", expected.families, {});
  RequireMoves(dir, expected);
  const bool marked = RocksDbIsAtLeast(11, 1);
  for (const std::string& path : PathsWith(dir / "tcp", ".sst")) {
    INFO(path);
    const SstProperties properties = PropertiesOf(path);
    REQUIRE((properties.has_separated_values != 0) == marked);
    REQUIRE((properties.num_uniform_blocks != 0) == marked);
  }
}

Families OwnIndex(const std::string& demand) {
  return OneFamily(FamilyWith(
      {{"block_based_table_factory",
        "{user_defined_index_factory=trie_index;" + demand + "}"}}));
}

TEST_CASE("A source whose tables have a user-defined index arrives without the "
          "index",
          "[transfer][exact]") {
  const ScratchDir dir;
  Fill(dir / "source", OwnIndex(""), {});
  const Ferried moved = Ferry(dir / "source", dir / "moved");
  REQUIRE_OK(moved.status);
  REQUIRE(moved.notes_mention("user_defined_index_factory") ==
          RocksDbIsAtLeast(11, 8));
  ExpectSameEntries(dir / "source", dir / "moved");
  OpenDb(dir / "moved", OwnIndex("")).Put("opens", "with its own index");
}

TEST_CASE("An application that opens only tables with its own index is sent no "
          "chunks",
          "[transfer][exact]") {
  const std::string demand = GENERATE(
      as<std::string>(), "use_udi_as_primary_index", "fail_if_no_udi_on_open");
  const ScratchDir dir;
  const Families families = OwnIndex(demand + "=true;");
  Fill(dir / "source", families, {});
  PullOptions chunks;
  chunks.method = PullMethod::kIngest;
  const Ferried refused = Ferry(dir / "source", dir / "chunks", chunks);
  INFO(refused.message());
  if (!RocksDbIsAtLeast(11, 8)) {
    REQUIRE_OK(refused.status);  // this RocksDB drops the unknown names
    return;
  }
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find(demand) != std::string::npos);
  const Ferried cloned = FerryByRule(dir / "source", dir / "clone");
  REQUIRE_OK(cloned.status);
  REQUIRE(cloned.summary.method == "clone");
  ExpectSameEntries(dir / "source", dir / "clone");
  OpenDb(dir / "clone", families).Put("opens", "with its own index");
  // An application that does not know the option can open chunks.
  chunks.for_rocksdb = "10.4";
  REQUIRE_OK(Ferry(dir / "source", dir / "older", chunks).status);
}

TEST_CASE("Families without writes, and families with direct writes of blobs, "
          "arrive",
          "[transfer][exact]") {
  const ScratchDir dir;
  const Families open = {{"default", Quiet()}, {"readers", Quiet()}};
  {
    OpenDb db(dir / "source", open);
    db.Put("key", "value", "readers");
    db.Put("key", "value");
    db.Flush();
  }
  Expectation expected;
  expected.families = {
      {"default", FamilyWith({{"enable_blob_files", "true"},
                              {"min_blob_size", "100"},
                              {"enable_blob_direct_write", "true"}})},
      {"readers", FamilyWith({{"disallow_memtable_writes", "true"}})}};
  rocksdb::DBOptions one_writer;
  one_writer.allow_concurrent_memtable_write = false;
  {
    OpenDb db(dir / "source", expected.families, one_writer);
    db.Put("large", RandomBytes(5000, 1));
    REQUIRE_OK(db->Flush({}, db.cf()));
  }
  RequireMoves(dir, expected);
}

// Since 11.0, the columns of entities are in blob files, too.
TEST_CASE("Entities of families with blob files arrive", "[transfer][exact]") {
  if (!kIngestsEntities) {
    SUCCEED("since RocksDB 8.6");
    return;
  }
  const ScratchDir dir;
  Expectation expected;
  expected.families = OneFamily(FamilyWith(
      {{"enable_blob_files", "true"}, {"min_blob_size", "100"}}));
  {
    OpenDb db(dir / "source", expected.families);
    for (int i = 0; i < 300; ++i) {
      const std::string large = RandomBytes(50 + i * 10, i);
      REQUIRE_OK(db->PutEntity({}, db.cf(), NumberedKey(i),
                               {{"", "default"}, {"large", large}}));
    }
    db.Flush();
    REQUIRE((FileCount(dir / "source", ".blob") != 0) ==
            RocksDbIsAtLeast(11, 0));
  }
  RequireMoves(dir, expected);
}

}  // namespace
}  // namespace sstferry::test::newer_options_test
