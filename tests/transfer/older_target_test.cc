// Tests the chunks for a target that reads fewer formats than the linked
// RocksDB writes.
#include "format/byte_source.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/pull/source_session.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/compacted.h"
#include "tests/support/fake_peer.h"

namespace sstferry::test::older_target_test {
namespace {

using rocksdb::BlockBasedTableOptions;

struct Taken {
  uint64_t entries = 0;
  std::set<uint32_t> versions;
  bool separated = false;
  bool uniform = false;
};

// Returns what a target with the Hello `as` receives of the directory.
Taken TakeAs(const Hello& as, const std::string& directory) {
  TestServer server(ServeSample(directory));
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t parts = 0;
  REQUIRE_OK(OpenSample(server.address(), &opened, &control, &parts, &as));
  REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
  Finish totals;
  std::vector<std::string> chunks;
  REQUIRE_OK(TakeParts(lane.get(), parts, &totals, &chunks));
  Taken taken;
  taken.entries = totals.families[0].entries;
  for (const std::string& chunk : chunks) {
    const SliceSource source(chunk);
    SstReader reader;
    REQUIRE_OK(reader.Open(&source));
    taken.versions.insert(reader.footer().format_version);
    taken.separated |= reader.properties().has_separated_values != 0;
    taken.uniform |= reader.properties().num_uniform_blocks != 0;
  }
  return taken;
}

TEST_CASE("Tables of a version that the target cannot read are rebuilt in one "
          "that it can",
          "[transfer][versions]") {
  for (uint32_t version = kMinTableFormatVersion + 1;
       version <= kMaxTableFormatVersion; ++version) {
    INFO("format version " << version);
    const ScratchDir dir;
    BlockBasedTableOptions table;
    table.format_version = version;
    {
      OpenDb db(dir / "source", OneFamily(WithTable(table)));
      FillCompacted(&db, 0, 2000);
    }
    Hello hello = MakeHello();
    const Taken same = TakeAs(hello, dir / "source");
    REQUIRE(same.versions == std::set<uint32_t>{version});
    hello.max_format_version = version - 1;
    const Taken older = TakeAs(hello, dir / "source");
    REQUIRE(older.versions == std::set<uint32_t>{version - 1});
    REQUIRE(older.entries == 2000);
  }
}

TEST_CASE("Blocks are marked only for targets that read the marks",
          "[transfer][versions]") {
  for (const char* mark :
       {"separate_key_value_in_data_block=true", "uniform_cv_threshold=1000"}) {
    INFO(mark);
    const ScratchDir dir;
    const Families families = OneFamily(FamilyWith(
        {{"block_based_table_factory",
          std::string("{block_size=1024;format_version=5;") + mark + ";}"}},
        SmallFiles()));
    {
      OpenDb db(dir / "source", families);
      FillCompacted(&db, 0, 2000);
    }
    Hello hello = MakeHello();
    const bool marks = RocksDbIsAtLeast(11, 1);
    REQUIRE(((hello.features & kFeatureMarkedBlocks) != 0) == marks);
    const Taken same = TakeAs(hello, dir / "source");
    REQUIRE((same.separated || same.uniform) == marks);
    hello.features &= ~kFeatureMarkedBlocks;
    const Taken older = TakeAs(hello, dir / "source");
    REQUIRE_FALSE(older.separated);
    REQUIRE_FALSE(older.uniform);
    REQUIRE(older.entries == 2000);
  }
}

}  // namespace
}  // namespace sstferry::test::older_target_test
