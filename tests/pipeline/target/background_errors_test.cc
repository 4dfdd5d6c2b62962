// Background errors of RocksDB, which no call returns.
#include "pipeline/pull/background_errors.h"

#include <memory>
#include <vector>

#include "format/end_state.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::background_errors_test {
namespace {

using rocksdb::Status;

TEST_CASE(
    "A background error names the operation, and says if the disk was full",
    "[target][nospace]") {
  ScratchDir dir;
  const bool full = GENERATE(true, false);
  auto disk = std::make_shared<FaultyFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(disk);
  std::vector<Status> heard;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.env = env.get();
  options.listeners.push_back(MakeBackgroundErrorListener(
      dir / "db", [&heard](const Status& error) { heard.push_back(error); }));
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(options, dir / "db", IntoDb(&db)));
  REQUIRE_OK(db->Put({}, "key", "value"));
  disk->FailAt(FileStep::kAppend, 1, full ? DiskFull() : DiskBroken(), ".sst",
               true);
  REQUIRE_FALSE(db->Flush({}).ok());
  disk->Heal();
  REQUIRE_FALSE(heard.empty());
  INFO(heard[0].ToString());
  REQUIRE(EndStateOf(heard[0]) ==
          (full ? EndState::kNoSpace : EndState::kInternal));
  REQUIRE(MessageOf(heard[0]).find("background error of RocksDB in " +
                                   (dir / "db") + " during a flush: ") == 0);
}

}  // namespace
}  // namespace sstferry::background_errors_test
