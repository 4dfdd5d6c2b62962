// Tests clones of clones, and a clone that continues with another snapshot.
#include <atomic>
#include <filesystem>

#include "pipeline/disk/durable.h"
#include "rocksdb/table.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test::clone_chain_test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kEntries = 9'000;  // each of 1000 bytes

// Makes five tables of 1.8 MB and a WAL.
void MakeSource(const std::string& directory) {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  OpenDb db(directory, OneFamily(options));
  for (uint64_t i = 0; i < kEntries; ++i) {
    db.Put(NumberedKey(i), RandomBytes(1000, i));
    if ((i + 1) % (kEntries / 5) == 0) db.Flush();
  }
  db.Put("last", "in the WAL");
}

PullOptions Cloning(const HostPort& source, const std::string& target) {
  PullOptions options = PullFrom(source, target);
  options.method = PullMethod::kClone;
  options.compression = WireCompression::kNone;
  options.chunk_bytes = 1u << 20;  // a table has one unit and a tail unit
  options.lanes = 1;
  return options;
}

// Requires equal bytes of all tables, and equal entries.
void RequireSame(const std::string& source, const std::string& target) {
  for (const std::string& path : PathsWith(source, ".sst")) {
    const std::string name = fs::path(path).filename();
    CAPTURE(name);
    REQUIRE(sstferry::BytesOf(target + "/" + name) ==
            sstferry::BytesOf(path));
  }
  REQUIRE(sstferry::EntriesOf(target) == sstferry::EntriesOf(source));
}

TEST_CASE("Each clone in a chain of clones has the first source's files",
          "[transfer][clone]") {
  const ScratchDir dir;
  MakeSource(dir / "a");
  for (const auto& [from, to] :
       {std::pair("a", "b"), std::pair("b", "c"), std::pair("c", "d")}) {
    CAPTURE(from);
    TestServer server(ServeSample(dir / from));
    const Summary summary = RunPull(Cloning(server.address(), dir / to));
    INFO(summary.status.ToString());
    REQUIRE(summary.status.ok());
    RequireSame(dir / "a", dir / to);
  }
}

TEST_CASE("A clone whose snapshot is gone keeps the tables that were received",
          "[transfer][clone]") {
  const ScratchDir dir;
  MakeSource(dir / "a");
  TestServer server(ServeSample(dir / "a"));  // retains nothing
  const PullOptions options = Cloning(server.address(), dir / "target");
  const std::unique_ptr<Operation> pull = MakePull(options);
  // There are 14 units; 5 of them are the tails of tables. At most three units
  // are not recorded at the stop, so at least two tables are complete.
  std::atomic<int> left{13};
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "LaneClient:ChunkSynced" && --left == 0) pull->Cancel();
  });
  Summary cancelled;
  const rocksdb::Status status = pull->Run(&cancelled);
  TEST_SetFaultHook(nullptr);
  REQUIRE(EndStateOf(status) == EndState::kCancelled);
  REQUIRE_FALSE(fs::exists(dir / "target"));
  REQUIRE(EndStateOf(server.Report(0).status) == EndState::kCancelled);

  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(summary.status.ok());
  REQUIRE(summary.transfer_id != cancelled.transfer_id);
  REQUIRE(summary.files_reused >= 2);
  bool noted = false;
  for (const std::string& note : summary.notes) {
    noted = noted || note.find("files that the unfinished pull had received") !=
                         std::string::npos;
  }
  REQUIRE(noted);
  RequireSame(dir / "a", dir / "target");
}

}  // namespace
}  // namespace sstferry::test::clone_chain_test
