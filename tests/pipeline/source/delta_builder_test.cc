// How a delta deletes keys: a range deletion must not cover keys that both
// sides have.
#include "pipeline/refresh/delta_builder.h"

#include <fstream>

#include "rocksdb/sst_file_reader.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::test::delta_builder_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

class Collecting : public ChunkSink {
 public:
  Status Begin(const ChunkBegin&) override { return Status::OK(); }
  Status Append(const Slice& data) override {
    contents.append(data.data(), data.size());
    return Status::OK();
  }
  Status End(const ChunkEnd&) override { return Status::OK(); }
  std::string contents;
};

rocksdb::Options Options() {
  return rocksdb::Options(rocksdb::DBOptions(), Quiet());
}

std::vector<GroupEntry> KeysFrom(uint64_t first, uint64_t count) {
  std::vector<GroupEntry> entries(count);
  for (uint64_t i = 0; i < count; ++i) {
    entries[i].key = NumberedKey(first + i);
  }
  return entries;
}

TEST_CASE(
    "A key between two deleted keys of the target splits a range deletion",
    "[delta][range_deletion]") {
  // The key is in a group that is equal on both sides. The source does not read
  // the group, and knows the key only from `between`.
  const bool is_between = GENERATE(false, true);
  ScratchDir dir;
  const Families families = OneFamily(Quiet());
  OpenDb db(dir / "source", families);
  db.Put(NumberedKey(90), "value");
  PieceDifference piece;
  piece.basis = DeltaBasis::kGroups;
  piece.most_point_deletions = 100;
  piece.entries = KeysFrom(0, 90);
  const std::vector<GroupEntry> behind = KeysFrom(91, 90);
  piece.entries.insert(piece.entries.end(), behind.begin(), behind.end());
  if (is_between) {
    piece.between.push_back(NumberedKey(90));
  }
  EntryDigester digester{TransferId()};
  Collecting sink;
  DeltaBuilder builder(db.get(), db->DefaultColumnFamily(), Options(),
                       ChunkBuilderOptions(), &sink);
  REQUIRE_OK(builder.BuildDifferences(Part(), piece, &digester));
  std::ofstream(dir / "delta.sst", std::ios::binary) << sink.contents;
  rocksdb::SstFileReader delta(Options());
  REQUIRE_OK(delta.Open(dir / "delta.sst"));
  const auto properties = delta.GetTableProperties();
  REQUIRE(properties->num_range_deletions == (is_between ? 0 : 1));
  REQUIRE(properties->num_deletions - properties->num_range_deletions ==
          (is_between ? 180 : 2));
}

}  // namespace
}  // namespace sstferry::test::delta_builder_test
