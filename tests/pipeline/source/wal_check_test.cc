#include "pipeline/snapshot/wal_check.h"

#include <filesystem>

#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"

namespace sstferry::wal_check_test {
namespace {

// Makes a WAL of small and large records (over several blocks) with RocksDB.
std::string MakeWal(const ScratchDir& tree, int entries) {
  test::OpenDb db(rocksdb::Options(), tree / "db");
  for (int i = 0; i < entries; i++) {
    REQUIRE_OK(db->Put(rocksdb::WriteOptions(), "key" + std::to_string(i),
                       std::string(i % 10 == 9 ? 40000 : 70, 'v')));
  }
  return FilesWith(tree / "db", ".log").at(0);
}

TEST_CASE("CheckWal accepts a WAL cut at any byte", "[snapshot]") {
  ScratchDir tree;
  const std::string name = MakeWal(tree, 20);
  const std::string path = tree / ("db/" + name);
  const uint64_t number = std::stoull(name);
  REQUIRE_OK(CheckWal(path, number, name));
  for (uint64_t size = std::filesystem::file_size(path); size > 0;) {
    size -= size > 600 && size < 80000 ? 97 : 1;
    std::filesystem::resize_file(path, size);
    const auto status = CheckWal(path, number, name);
    INFO("cut to " << size << ": " << status.ToString());
    CHECK(status.ok());
    if (size < 97) break;
  }
}

TEST_CASE("CheckWal accepts a WAL that ends in preallocated zeros",
          "[snapshot]") {
  ScratchDir tree;
  const std::string name = MakeWal(tree, 20);
  const std::string path = tree / ("db/" + name);
  std::filesystem::resize_file(path,
                               std::filesystem::file_size(path) + 100'000);
  REQUIRE_OK(CheckWal(path, std::stoull(name), name));
}

TEST_CASE("CheckWal finds every flipped bit of a header, and of payloads that "
          "others follow",
          "[snapshot][corruption]") {
  ScratchDir tree;
  const std::string name = MakeWal(tree, 30);
  const std::string path = tree / ("db/" + name);
  const uint64_t number = std::stoull(name);
  // size of each of the first ten
  const uint64_t record = 7 + 12 + 1 + 5 + 1 + 70;
  std::vector<uint64_t> offsets;
  for (uint64_t at = 0; at < record + 7; at++) offsets.push_back(at);
  for (uint64_t at = 0; at < 20; at++) offsets.push_back(32768 + at);
  for (const uint64_t at : offsets) {
    for (int bit = 0; bit < 8; bit++) {
      FlipByte(path, at, static_cast<uint8_t>(1 << bit));
      const auto status = CheckWal(path, number, name);
      INFO("offset " << at << " bit " << bit << ": " << status.ToString());
      CHECK(EndStateOf(status) == EndState::kCorrupt);
      CHECK(MessageOf(status).find(name) != std::string::npos);
      FlipByte(path, at, static_cast<uint8_t>(1 << bit));
    }
  }
}

TEST_CASE("CheckWal finds a flipped bit in the header of the last record",
          "[snapshot][corruption]") {
  ScratchDir tree;
  const std::string name = MakeWal(tree, 1);
  const std::string path = tree / ("db/" + name);
  // Bits of the length and the type: RocksDB takes such a record for the file's
  // end.
  for (uint64_t at = 4; at < 7; at++) {
    for (int bit = 0; bit < 8; bit++) {
      FlipByte(path, at, static_cast<uint8_t>(1 << bit));
      INFO("offset " << at << " bit " << bit);
      CHECK(EndStateOf(CheckWal(path, std::stoull(name), name)) ==
            EndState::kCorrupt);
      FlipByte(path, at, static_cast<uint8_t>(1 << bit));
    }
  }
}

}  // namespace
}  // namespace sstferry::wal_check_test
