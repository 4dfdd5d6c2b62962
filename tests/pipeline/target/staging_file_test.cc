// Writes chunks of every size to the disk.
#include "pipeline/disk/staging_file.h"

#include <rapidcheck.h>

#include <cstring>
#include <filesystem>

#include "format/end_state.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::staging_file_test {
namespace {

using rocksdb::Status;

std::string Letters(size_t bytes, size_t from) {
  std::string letters(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) {
    letters[i] = static_cast<char>('a' + (from + i) * 7 / 5 % 26);
  }
  return letters;
}

// Writes pieces of these sizes. Adds the file's contents to *expected.
Status WritePieces(StagingFile* file, const std::vector<size_t>& pieces,
                   std::string* expected) {
  Status status = file->Open();
  for (const size_t bytes : pieces) {
    char* room = nullptr;
    if (status.ok()) {
      status = file->Room(bytes, &room);
    }
    if (!status.ok()) {
      return status;
    }
    const std::string letters = Letters(bytes, expected->size());
    memcpy(room, letters.data(), bytes);
    file->Commit(bytes);
    expected->append(letters);
  }
  return status;
}

void RequireWritten(const std::vector<size_t>& pieces, bool sync) {
  ScratchDir dir;
  StagingBuffer buffer;
  StagingFile file(rocksdb::FileSystem::Default().get(),
                   {dir / "chunk", std::nullopt, false}, &buffer);
  std::string expected;
  REQUIRE_OK(WritePieces(&file, pieces, &expected));
  REQUIRE(file.bytes() == expected.size());
  REQUIRE_OK(file.Finish(sync));
  REQUIRE(file.bytes() == expected.size());
  REQUIRE(BytesOf(dir / "chunk") == expected);
}

TEST_CASE("StagingFile writes files of every length around its buffer",
          "[target][staging]") {
  for (const size_t base :
       {size_t{0}, size_t{4096}, size_t{kMaxPayloadBytes},
        StagingBuffer::kBytes}) {
    for (const int beyond : {-4097, -4096, -1, 0, 1, 4095, 4096, 4097}) {
      const auto bytes = static_cast<ptrdiff_t>(base) + beyond;
      if (bytes < 0) {
        continue;
      }
      std::vector<size_t> pieces;
      for (auto left = static_cast<size_t>(bytes); left > 0;
           left -= pieces.back()) {
        pieces.push_back(std::min<size_t>(left, kMaxPayloadBytes));
      }
      INFO(bytes << " bytes");
      RequireWritten(pieces, true);
    }
  }
}

TEST_CASE("StagingFile keeps the bytes of pieces of any size in order",
          "[target][staging]") {
  for (const std::vector<size_t>& pieces :
       {std::vector<size_t>(5, kMaxPayloadBytes),
        std::vector<size_t>(6, kMaxPayloadBytes - 1),
        {1, kMaxPayloadBytes, kMaxPayloadBytes, kMaxPayloadBytes, 4095},
        {kMaxPayloadBytes - 1, kMaxPayloadBytes, 2, kMaxPayloadBytes}}) {
    RequireWritten(pieces, false);
  }
  REQUIRE(rc::check("pieces", [] {
    const auto pieces = *rc::gen::resize(
        12, rc::gen::container<std::vector<size_t>>(rc::gen::oneOf(
                rc::gen::inRange<size_t>(1, 10'000),
                rc::gen::inRange<size_t>(1, kMaxPayloadBytes + 1))));
    RequireWritten(pieces, false);
  }));
}

TEST_CASE("StagingFile writes only committed bytes", "[target][staging]") {
  ScratchDir dir;
  StagingBuffer buffer;
  StagingFile file(rocksdb::FileSystem::Default().get(),
                   {dir / "chunk", std::nullopt, false}, &buffer);
  REQUIRE_OK(file.Open());
  std::string expected;
  for (int i = 0; i < 5; ++i) {
    char* room = nullptr;
    REQUIRE_OK(file.Room(kMaxPayloadBytes, &room));
    memset(room, '!', kMaxPayloadBytes);
    // The first frame is not committed, as after a wrong digest. The second one
    // is short.
    REQUIRE_OK(file.Room(kMaxPayloadBytes, &room));
    memset(room, 'x', 500'001);
    file.Commit(500'001);
    expected.append(500'001, 'x');
  }
  REQUIRE_OK(file.Finish(true));
  REQUIRE(BytesOf(dir / "chunk") == expected);
}

TEST_CASE("StagingFile has no room for more than a frame",
          "[target][staging]") {
  ScratchDir dir;
  StagingBuffer buffer;
  StagingFile file(rocksdb::FileSystem::Default().get(),
                   {dir / "chunk", std::nullopt, false}, &buffer);
  REQUIRE_OK(file.Open());
  char* room = nullptr;
  const Status status = file.Room(size_t{kMaxPayloadBytes} + 1, &room);
  REQUIRE(EndStateOf(status) == EndState::kInternal);
  REQUIRE_OK(file.Finish(false));
}

}  // namespace
}  // namespace sstferry::staging_file_test
