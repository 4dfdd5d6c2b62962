// Tests a source that changes a byte of a chunk after its own check. All of its
// digests match the changed bytes.
#include <filesystem>

#include "pipeline/base/rocksdb_compat.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::hostile_block_test {
namespace {

// Pulls into a new target, or refreshes an empty database.
Summary PullInto(const std::string& target, bool refresh,
                 const SourceLies& lies) {
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  PullOptions options = PullFrom(source->address(), target);
  options.timeouts.connect = std::chrono::minutes(1);
  options.timeouts.peer = std::chrono::minutes(1);
  if (refresh) {
    rocksdb::Options empty;
    empty.create_if_missing = true;
    std::unique_ptr<rocksdb::DB> db;
    REQUIRE_OK(rocksdb::DB::Open(empty, target, IntoDb(&db)));
    REQUIRE_OK(db->Close());
    options.mode = PullMode::kRefresh;
    options.adopt = true;
  }
  return RunPull(options);
}

TEST_CASE("A pull finds a changed byte in any block of a chunk",
          "[bad_input][peer][corruption]") {
  const bool refresh = GENERATE(false, true);
  size_t size = 0;
  SourceLies lies;
  lies.chunk_file = [&size](std::string* file) { size = file->size(); };
  {
    ScratchDir dir;
    REQUIRE_OK(PullInto(dir / "target", refresh, lies).status);
    REQUIRE(EntriesOf(dir / "target").size() == 800);
  }
  REQUIRE(size > 80'000);  // about 20 blocks
  for (const size_t share : {1, 20, 40, 50, 60, 80}) {
    const size_t at = size / 100 * share;
    lies.chunk_file = [at](std::string* file) { (*file)[at] ^= 0x10; };
    ScratchDir dir;
    const Summary summary = PullInto(dir / "target", refresh, lies);
    INFO("refresh " << refresh << ", byte " << at << ": "
                    << summary.status.ToString());
    REQUIRE(EndStateOf(summary.status) == EndState::kCorrupt);
    REQUIRE(summary.status.ToString().find("checksum") != std::string::npos);
    if (refresh) {
      REQUIRE(EntriesOf(dir / "target").empty());
    } else {
      REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
    }
  }
}

}  // namespace
}  // namespace sstferry::hostile_block_test
