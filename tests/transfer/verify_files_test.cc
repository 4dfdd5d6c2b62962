// Tests a verify of two sides that have the same files.
#include <filesystem>
#include <fstream>

#include "rocksdb/table.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/named_comparator.h"
#include "tests/support/test_db.h"
#include "tools/sstferry/operation_runner.h"

namespace sstferry::test::verify_files_test {
namespace {

namespace fs = std::filesystem;

const NamedComparator kUnknownOrder("an order that sstferry does not have");

Families OddFamilies() {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.comparator = &kUnknownOrder;
  return OneFamily(options);
}

// Makes two tables, and records that are only in a WAL.
void Make(const std::string& path, const Families& families) {
  OpenDb db(path, families);
  for (int i = 0; i < 1000; ++i) db.Put(NumberedKey(i), RandomBytes(100, i));
  db.Flush();
  for (int i = 0; i < 1000; i += 3) db.Put(NumberedKey(i), "overwritten");
  db.Flush();
  db.Put("late", "in the WAL");
}

void CloneTo(const std::string& source, const std::string& target) {
  PullOptions options;
  options.method = PullMethod::kClone;
  const Ferried moved = Ferry(source, target, options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
}

Summary VerifyOf(const std::string& left, const std::string& right,
                 const VerifyOptions& options = {}) {
  VerifyOptions asked = options;
  REQUIRE_OK(ParseSourceAddress(left, &asked.left));
  REQUIRE_OK(ParseSourceAddress(right, &asked.right));
  Summary summary;
  MakeVerify(asked)->Run(&summary).PermitUncheckedError();
  return summary;
}

// Flips a bit in the first file with that suffix. *name: the file's name.
void Flip(const std::string& directory, const std::string& suffix,
          std::string* name) {
  const std::string path = PathsWith(directory, suffix).front();
  *name = fs::path(path).filename().string();
  const auto at = static_cast<std::streamoff>(fs::file_size(path) / 3);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 0x10));
  REQUIRE(file.good());
}

bool Says(const Summary& summary, const std::string& text) {
  return summary.status.ToString().find(text) != std::string::npos;
}

TEST_CASE("A clone is equal by its files, whatever comparator it has",
          "[transfer][verify]") {
  const ScratchDir dir;
  const Families families =
      GENERATE(true, false) ? OddFamilies() : OneFamily(Quiet());
  Make(dir / "source", families);
  CloneTo(dir / "source", dir / "target");
  const Summary same = VerifyOf(dir / "source", dir / "target");
  INFO(same.status.ToString());
  REQUIRE_OK(same.status);
  REQUIRE(same.compared == "files");
  REQUIRE(same.files_compared == 2);
  uint64_t bytes = 0;
  for (const std::string& path : PathsWith(dir / "source", ".sst")) {
    bytes += fs::file_size(path);
  }
  REQUIRE(same.bytes_compared == bytes);
  REQUIRE(same.left.snapshot_sequence == same.right.snapshot_sequence);
  REQUIRE(VerifyReport(same).find("equal: 2 files with ") == 0);
}

TEST_CASE("A clone is compared by its files over TCP", "[transfer][verify]") {
  const ScratchDir dir;
  Make(dir / "source", OddFamilies());
  CloneTo(dir / "source", dir / "target");
  TestServer server(ServeSample(dir / "source"));
  const Summary same = VerifyOf(server.url("db"), dir / "target");
  INFO(same.status.ToString());
  REQUIRE_OK(same.status);
  REQUIRE(same.compared == "files");
}

TEST_CASE("A file that differs is found even if its identity is the same",
          "[transfer][verify][corruption]") {
  const ScratchDir dir;
  Make(dir / "source", OddFamilies());
  CloneTo(dir / "source", dir / "target");
  const bool left = GENERATE(true, false);
  const std::string damaged = left ? dir / "source" : dir / "target";
  std::string name;
  Flip(damaged, ".sst", &name);
  const Summary summary = VerifyOf(dir / "source", dir / "target");
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kCorrupt);
  REQUIRE(Says(summary, name));
  // Either connection may report it first.
  const std::string side = left ? "left" : "right";
  REQUIRE((Says(summary, side + ": ") ||
           summary.error_where.find(side + " ") == 0));
}

TEST_CASE("The same damage on both sides does not count as equal",
          "[transfer][verify][corruption]") {
  const ScratchDir dir;
  Make(dir / "source", OddFamilies());
  CloneTo(dir / "source", dir / "target");
  std::string name;
  Flip(dir / "source", ".sst", &name);
  Flip(dir / "target", ".sst", &name);
  const Summary summary = VerifyOf(dir / "source", dir / "target");
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kCorrupt);
}

TEST_CASE("A file without checksums that differs is named",
          "[transfer][verify][corruption]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  rocksdb::BlockBasedTableOptions table;
  table.checksum = rocksdb::kNoChecksum;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  Make(dir / "source", OneFamily(options));
  CloneTo(dir / "source", dir / "target");
  std::string name;
  Flip(dir / "target", ".sst", &name);
  const Summary summary = VerifyOf(dir / "source", dir / "target");
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kDifferent);
  REQUIRE(summary.compared == "files");
  REQUIRE(summary.differences == 1);
  REQUIRE(summary.first_differences.size() == 1);
  REQUIRE(summary.first_differences[0].file == name);
  REQUIRE(VerifyReport(summary).find("\n  " + name + ": file differs\n") !=
          std::string::npos);
}

TEST_CASE("Sides with different files or WALs are compared entry by entry",
          "[transfer][verify]") {
  const ScratchDir dir;
  const Families families = OneFamily(Quiet());
  Make(dir / "source", families);
  CloneTo(dir / "source", dir / "target");
  EndState end = EndState::kOk;
  SECTION("an application opened the clone, which flushed its WAL") {
    const OpenDb opened(dir / "target", families);
  }
  SECTION("a WAL holds more") {
    OpenDb db(dir / "source", families);
    db.Put("later", "in the WAL");
    end = EndState::kChangedSince;
  }
  SECTION("the target was made of chunks") {
    fs::remove_all(dir / "target");
    REQUIRE_OK(Ferry(dir / "source", dir / "target").status);
  }
  const Summary summary = VerifyOf(dir / "source", dir / "target");
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == end);
  REQUIRE(summary.compared == "entries");
  REQUIRE(summary.files_compared == 0);
  REQUIRE(summary.entries_left >= 1001);
}

TEST_CASE("A part of a database is compared entry by entry",
          "[transfer][verify]") {
  const ScratchDir dir;
  Make(dir / "source", OneFamily(Quiet()));
  CloneTo(dir / "source", dir / "target");
  VerifyOptions options;
  options.selection.interval.begin = NumberedKey(500);
  const Summary summary =
      VerifyOf(dir / "source", dir / "target", options);
  REQUIRE_OK(summary.status);
  REQUIRE(summary.compared == "entries");
}

TEST_CASE("If neither files nor entries can be compared, both reasons are "
          "reported",
          "[transfer][verify][refused]") {
  const ScratchDir dir;
  Make(dir / "source", OddFamilies());
  CloneTo(dir / "source", dir / "target");
  {
    OpenDb db(dir / "source", OddFamilies());
    db.Put("later", "in the WAL");
  }
  const Summary summary = VerifyOf(dir / "source", dir / "target");
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(Says(summary, kUnknownOrder.Name()));
  REQUIRE(Says(summary, "nor can the files be compared: the two sides have "
                        "different files or WAL records"));
}

}  // namespace
}  // namespace sstferry::test::verify_files_test
