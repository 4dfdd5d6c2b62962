// Tests source files that become unreadable during a transfer: the reports of
// both sides have the reason and the file's name.
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::read_error_test {
namespace {

namespace fs = std::filesystem;

// A planned transfer whose files are damaged before the first part is sent.
struct Bench {
  explicit Bench(size_t files) {
    SampleShape shape;
    shape.entries = 1600;
    shape.files = files;
    MakeSampleDatabase(dir / "source", shape);
    server = std::make_unique<TestServer>(ServeSample(dir / "source"));
    REQUIRE_OK(
        OpenSample(server->address(), &opened, &control, &parts));
    REQUIRE_OK(DialLane(server->address(), opened.transfer_id, 0, &lane));
  }
  // Calls `damage` for every table of the source's snapshot.
  template <typename Damage>
  void ForEachPinnedTable(Damage damage) {
    std::vector<fs::path> tables;
    for (const std::string& name : NamesOf(dir.path())) {
      if (name.rfind("source.sstferry-snapshot-", 0) != 0) {
        continue;
      }
      for (const auto& entry :
           fs::recursive_directory_iterator(dir / name)) {
        if (entry.path().extension() == ".sst") {
          tables.push_back(entry.path());
        }
      }
    }
    REQUIRE_FALSE(tables.empty());
    for (const fs::path& table : tables) {
      damage(table);
    }
  }
  void RequireEnd(EndState state, const std::string& sentence) {
    Finish totals;
    REQUIRE_FALSE(TakeParts(lane.get(), parts, &totals).ok());
    const rocksdb::Status told = ReceiveEnd(control.get());
    const TransferReport report = server->Report(0);
    INFO(told.ToString() << " / " << report.status.ToString());
    REQUIRE(EndStateOf(told) == state);
    REQUIRE(EndStateOf(report.status) == state);
    for (const rocksdb::Status& status : {told, report.status}) {
      REQUIRE(status.ToString().find(sentence) != std::string::npos);
      // For a missing table, RocksDB's message has the old file extension.
      const bool names = status.ToString().find(".sst") != std::string::npos ||
                         status.ToString().find(".ldb") != std::string::npos;
      REQUIRE(names);
    }
  }
  ScratchDir dir;
  std::unique_ptr<TestServer> server;
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t parts = 0;
};

TEST_CASE("A source file that cannot be read is a SOURCE_ERROR on both sides",
          "[bad_input][source][end_state]") {
  // There are more files than RocksDB keeps open, so some are opened during the
  // transfer.
  Bench bench(160);
  bench.ForEachPinnedTable([](const fs::path& table) { fs::remove(table); });
  bench.RequireEnd(EndState::kSourceError, "No such file or directory");
  REQUIRE(ExitCodeOf(EndState::kSourceError) == 1);
}

TEST_CASE("A source file that becomes shorter is a SOURCE_ERROR on both sides",
          "[bad_input][source][end_state]") {
  Bench bench(4);
  bench.ForEachPinnedTable([](const fs::path& table) {
    fs::resize_file(table, fs::file_size(table) / 2);
  });
  bench.RequireEnd(EndState::kSourceError, "truncated while it was read");
}

}  // namespace
}  // namespace sstferry::read_error_test
