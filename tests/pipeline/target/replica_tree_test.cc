// Replicas of a mirror are moved away only while no process uses them.
#include "pipeline/disk/replica_tree.h"

#include <filesystem>
#include <memory>
#include <string>

#include "format/end_state.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/workspace.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::replica_tree_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

Status OpenDatabase(const std::string& dir, std::unique_ptr<rocksdb::DB>* db) {
  rocksdb::Options options;
  options.create_if_missing = true;
  return rocksdb::DB::Open(options, dir, IntoDb(db));
}

TEST_CASE("A replica that is opened, or pulled into, is not moved away",
          "[target][workspace]") {
  ScratchDir dir;
  const std::string replica = dir / "mirror/a";
  fs::create_directory(dir / "mirror");
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(OpenDatabase(replica, &db));
  db.reset();
  {
    std::unique_ptr<Workspace> workspace;
    REQUIRE_OK(Workspace::OpenBeside(replica, /*open_here=*/false,
                                     rocksdb::FileSystem::Default(), nullptr,
                                     &workspace));
    REQUIRE_OK(workspace->Clear());
    WriteBytes(workspace->journal_path(), "unfinished");
  }
  std::unique_ptr<ReplicaTree> tree;
  REQUIRE_OK(ReplicaTree::Open(dir / "mirror", &tree));
  const bool opens = GENERATE(false, true);
  bool was_free = false;  // another pull could have begun
  Status opened;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Workspace:LeftoverRemoved" && opens && db == nullptr) {
      opened = OpenDatabase(replica, &db);
    }
    was_free |= name == "Workspace:PartRemoved" && fs::exists(replica);
  });
  bool moved = false;
  const Status status = tree->MoveAway("a", ".gone", nullptr, &moved);
  TEST_SetFaultHook(nullptr);
  INFO(status.ToString());
  REQUIRE_OK(opened);
  REQUIRE_FALSE(was_free);
  REQUIRE(moved != opens);
  REQUIRE(EndStateOf(status) == (opens ? EndState::kBusy : EndState::kOk));
  REQUIRE(fs::exists(replica + "/CURRENT") == opens);
  REQUIRE(fs::exists(replica + ".gone/CURRENT") != opens);
}

}  // namespace
}  // namespace sstferry::replica_tree_test
