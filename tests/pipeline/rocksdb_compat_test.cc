#include "pipeline/base/rocksdb_compat.h"

#include "pipeline/options/family_options.h"
#include "rocksdb/convenience.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/test_db.h"

namespace sstferry::rocksdb_compat_test {
namespace {

using rocksdb::ColumnFamilyOptions;
using test::DatabaseWith;
using test::FamilyWith;

std::string TextOf(const ColumnFamilyOptions& options) {
  std::string text;
  std::string table;
  REQUIRE_OK(rocksdb::GetStringFromColumnFamilyOptions(rocksdb::ConfigOptions(),
                                                       options, &text));
  REQUIRE_OK(options.table_factory->GetOptionString(rocksdb::ConfigOptions(),
                                                    &table));
  return text + table;
}

// Returns how many of `parts` the text contains.
size_t Found(const std::string& text, const std::vector<std::string>& parts) {
  size_t found = 0;
  for (const std::string& part : parts) {
    found += text.find(part) != std::string::npos;
  }
  return found;
}

TEST_CASE("The loaded library has the version of the compiled headers",
          "[pipeline]") {
  REQUIRE(RocksDbVersion() == std::to_string(ROCKSDB_MAJOR) + "." +
                                  std::to_string(ROCKSDB_MINOR) + "." +
                                  std::to_string(ROCKSDB_PATCH));
}

TEST_CASE(
    "A family that is only read or filled has no options that write or flush",
    "[pipeline][options]") {
  ColumnFamilyOptions family = FamilyWith(
      {{"max_write_buffer_number_to_maintain", "7"},
       {"disallow_memtable_writes", "true"},
       {"memtable_op_scan_flush_trigger", "7"},
       {"memtable_avg_op_scan_flush_trigger", "7"},
       {"cf_allow_ingest_behind", "true"},
       {"enable_blob_files", "true"},
       {"enable_blob_direct_write", "true"},
       {"min_tombstones_for_range_conversion", "7"},
       {"read_triggered_compaction_threshold", "7"}});
  const std::vector<std::string> loud = {
      "max_write_buffer_number_to_maintain=7", "disallow_memtable_writes=true",
      "op_scan_flush_trigger=7", "cf_allow_ingest_behind=true",
      "enable_blob_direct_write=true", "min_tombstones_for_range_conversion=7",
      "read_triggered_compaction_threshold=7"};
  const size_t known = Found(TextOf(family), loud);
  INFO(TextOf(family));
  REQUIRE(known >= (RocksDbIsAtLeast(11, 8) ? 6 : 1));
  QuietFamily(&family);
  REQUIRE(Found(TextOf(family), loud) == 0);
  REQUIRE(family.enable_blob_files);
}

TEST_CASE(
    "The copy of a source is opened so that wrong files are found at once",
    "[pipeline][options]") {
  rocksdb::DBOptions db = DatabaseWith(
      {{"open_files_async", "true"},
       {"reuse_manifest_on_open", "true"},
       {"optimize_manifest_for_recovery", "true"},
       {"verify_manifest_content_on_close", "true"},
       {"async_wal_precreate", "true"},
       {"track_and_verify_wals", "true"},
       {"skip_checking_sst_file_sizes_on_db_open", "true"}});
  const auto text = [&db] {
    std::string all;
    REQUIRE_OK(
        rocksdb::GetStringFromDBOptions(rocksdb::ConfigOptions(), db, &all));
    return all;
  };
  const std::vector<std::string> loud = {
      "open_files_async=true", "reuse_manifest_on_open=true",
      "optimize_manifest_for_recovery=true",
      "verify_manifest_content_on_close=true", "async_wal_precreate=true",
      "track_and_verify_wals=true",
      "skip_checking_sst_file_sizes_on_db_open=true"};
  INFO(text());
  REQUIRE(Found(text(), loud) >= (RocksDbIsAtLeast(11, 8) ? 6 : 1));
  QuietDatabase(&db);
  REQUIRE(Found(text(), loud) == 0);
}

TEST_CASE("Chunks have marked blocks only if the target can read them, and no "
          "custom index or compression",
          "[pipeline][options]") {
  const ColumnFamilyOptions family = FamilyWith(
      {{"compression_manager", "BuiltinV2"},
       {"block_based_table_factory",
        "{separate_key_value_in_data_block=true;uniform_cv_threshold=0.5;"
        "user_defined_index_factory=trie_index;use_udi_as_primary_index=true;"
        "fail_if_no_udi_on_open=true;}"}});
  const std::vector<std::string> marks = {
      "separate_key_value_in_data_block=true", "uniform_cv_threshold=0.5"};
  const std::vector<std::string> own = {"use_udi_as_primary_index=true",
                                        "fail_if_no_udi_on_open=true",
                                        "trie_index"};
  const size_t known = RocksDbIsAtLeast(11, 8) ? 1 : 0;
  INFO(TextOf(family));
  REQUIRE(Found(TextOf(family), marks) == 2 * known);
  REQUIRE(Found(TextOf(family), own) == 3 * known);
  for (const bool marked_blocks : {false, true}) {
    rocksdb::Options chunk;
    REQUIRE_OK(
        ChunkOptions(family, 5, RocksDbRelease(), marked_blocks, &chunk));
    const std::string text = TextOf(chunk);
    INFO(text);
    REQUIRE(Found(text, marks) == (marked_blocks ? 2 * known : 0));
    REQUIRE(Found(text, own) == 0);
    REQUIRE(!HasCompressionManager(chunk));
  }
}

TEST_CASE("Chunks are aligned only if their check supports the alignment",
          "[pipeline][options]") {
  const auto aligned = [](const std::string& bytes) {
    const ColumnFamilyOptions family = FamilyWith(
        {{"block_based_table_factory",
          "{super_block_alignment_size=" + bytes + ";}"}});  // ratio 128
    rocksdb::Options chunk;
    REQUIRE_OK(ChunkOptions(family, 5, RocksDbRelease(), false, &chunk));
    return Found(TextOf(chunk), {"super_block_alignment_size=" + bytes}) == 1;
  };
  REQUIRE(aligned("536870912") == RocksDbIsAtLeast(10, 8));
  REQUIRE(!aligned("1073741824"));
}

// Ingests a file that SstFileWriter made. Returns the log of disk calls.
std::vector<std::string> LogOfIngestion(FaultyFileSystem* watched,
                                        rocksdb::Env* env) {
  ScratchDir dir;
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(options, dir.path() + "/db", IntoDb(&db)));
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  REQUIRE_OK(writer.Open(dir.path() + "/chunk.sst"));
  REQUIRE_OK(writer.Put("key", "value"));
  REQUIRE_OK(writer.Finish());
  const size_t before = watched->log().size();
  rocksdb::IngestExternalFileOptions ingest;
  ingest.move_files = true;
  REQUIRE_OK(db->IngestExternalFile({dir.path() + "/chunk.sst"}, ingest));
  std::vector<std::string> log = watched->log();
  log.erase(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(before));
  return log;
}

TEST_CASE("A wrapped file system sees the syncs of an ingestion",
          "[pipeline]") {
  const auto watched = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> env =
      rocksdb::NewCompositeEnv(watched);
  const std::vector<std::string> log =
      LogOfIngestion(watched.get(), env.get());
  bool synced = false;
  for (const std::string& line : log) {
    UNSCOPED_INFO(line);
    synced |= line.rfind("sync ", 0) == 0 &&
              line.find(".sst") != std::string::npos;
  }
  REQUIRE(synced);
}

}  // namespace
}  // namespace sstferry::rocksdb_compat_test
