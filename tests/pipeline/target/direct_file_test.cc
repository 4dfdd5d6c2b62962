// Direct writes into a part of an existing file.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>

#include "pipeline/disk/staging_file.h"
#include "pipeline/pull/direct_file.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::direct_file_test {
namespace {

using rocksdb::FileSystem;

constexpr size_t kAlignment = StagingBuffer::kAlignment;

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return BytesIn(in);
}

void Fill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Receives `bytes` in pieces, as a lane does.
rocksdb::Status Stage(const std::string& path, uint64_t at,
                      const std::string& bytes, size_t piece) {
  const auto file_system = MakeDirectFileSystem(FileSystem::Default());
  StagingBuffer buffer;
  StagingFile file(file_system.get(), {path, at, /*direct=*/true}, &buffer);
  rocksdb::Status status = file.Open();
  for (size_t done = 0; status.ok() && done < bytes.size(); done += piece) {
    const size_t n = std::min(piece, bytes.size() - done);
    char* room = nullptr;
    status = file.Room(n, &room);
    if (status.ok()) {
      std::copy_n(bytes.data() + done, n, room);
      file.Commit(n);
    }
  }
  return status.ok() ? file.Finish(/*sync=*/true) : status;
}

TEST_CASE("A part is written around the page cache, and other bytes stay",
          "[pipeline][clone]") {
  const ScratchDir dir;
  const std::string before(8 * kAlignment, 'o');
  const std::string part = RandomBytes(1024 * kAlignment, 1);
  for (const size_t piece : {size_t{1000}, size_t{500'001}, size_t{1} << 20}) {
    Fill(dir / "file", before);
    REQUIRE_OK(Stage(dir / "file", 4 * kAlignment, part, piece));
    REQUIRE(BytesOf(dir / "file") == before.substr(0, 4 * kAlignment) + part);
    REQUIRE_OK(Stage(dir / "file", 0, part.substr(0, kAlignment), piece));
    REQUIRE(BytesOf(dir / "file") ==
            part.substr(0, kAlignment) + before.substr(0, 3 * kAlignment) +
                part);
  }
}

TEST_CASE(
    "A part of any aligned size is written completely",
    "[pipeline][clone]") {
  const ScratchDir dir;
  const std::string all = RandomBytes(1024 * kAlignment, 2);
  for (const size_t units : {1, 255, 256, 257, 400, 511, 512, 513, 900}) {
    for (const size_t piece : {size_t{700'001}, size_t{512} << 10}) {
      INFO(units << " units in pieces of " << piece << " bytes");
      const std::string part = all.substr(0, units * kAlignment);
      Fill(dir / "file", "");
      REQUIRE_OK(Stage(dir / "file", 0, part, piece));
      REQUIRE((BytesOf(dir / "file") == part));
    }
  }
}

TEST_CASE("A part whose size is not aligned fails with an error",
          "[pipeline][clone]") {
  const ScratchDir dir;
  Fill(dir / "file", std::string(2 * kAlignment, 'o'));
  for (const size_t units : {1, 300}) {
    const rocksdb::Status status =
        Stage(dir / "file", 0, std::string(units * kAlignment + 1, 'n'), 5000);
    REQUIRE(EndStateOf(status) == EndState::kInternal);
  }
}

TEST_CASE("A direct write does not create a missing file",
          "[pipeline][clone]") {
  const ScratchDir dir;
  REQUIRE_FALSE(Stage(dir / "none", 0, std::string(kAlignment, 'n'), 100).ok());
  REQUIRE(BytesOf(dir / "none").empty());
}

}  // namespace
}  // namespace sstferry::test::direct_file_test
