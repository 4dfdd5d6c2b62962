// A chunk's way to disk: every size, with and without direct writes.
#include "pipeline/target/staging_file.h"

#include <rapidcheck.h>

#include <cstring>
#include <filesystem>

#include "format/end_state.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

// Any file, with the rules of one opened past the page cache.
class StrictFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  StrictFile(std::unique_ptr<FSWritableFile> file, uint64_t* writes)
      : FSWritableFileOwnerWrapper(std::move(file)), writes_(writes) {}

  bool use_direct_io() const override { return true; }
  size_t GetRequiredBufferAlignment() const override { return 4096; }
  using FSWritableFileOwnerWrapper::PositionedAppend;
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    if (reinterpret_cast<uintptr_t>(data.data()) % 4096 != 0 ||
        data.size() % 4096 != 0 || offset != at_) {
      return IOStatus::InvalidArgument("not aligned");
    }
    ++*writes_;
    at_ += data.size();
    return target()->Append(data, options, dbg);
  }

 private:
  uint64_t* const writes_;
  uint64_t at_ = 0;
};

enum class Disk { kAsItIs, kStrict, kNoDirect, kSilentlyBuffered };

class StagingDisk : public rocksdb::FileSystemWrapper {
 public:
  explicit StagingDisk(Disk disk)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), disk_(disk) {}
  const char* Name() const override { return "StagingDisk"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext* dbg) override {
    FileOptions changed = options;
    if (options.use_direct_writes && disk_ == Disk::kNoDirect) {
      return IOStatus::InvalidArgument("no O_DIRECT here");
    }
    if (disk_ != Disk::kAsItIs) {
      changed.use_direct_writes = false;
    }
    IOStatus status = target()->NewWritableFile(name, changed, file, dbg);
    if (status.ok() && disk_ == Disk::kStrict) {
      *file = std::make_unique<StrictFile>(std::move(*file), &strict_writes);
    }
    return status;
  }

  uint64_t strict_writes = 0;

 private:
  const Disk disk_;
};

std::string Letters(size_t bytes, size_t from) {
  std::string letters(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) {
    letters[i] = static_cast<char>('a' + (from + i) * 7 / 5 % 26);
  }
  return letters;
}

// Writes pieces of these sizes; what the file must hold.
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

void RequireWritten(Disk disk, const std::vector<size_t>& pieces, bool sync) {
  ScratchDir dir;
  StagingDisk file_system(disk);
  StagingBuffer buffer;
  StagingFile file(&file_system, dir / "chunk", &buffer);
  std::string expected;
  REQUIRE_OK(WritePieces(&file, pieces, &expected));
  REQUIRE(file.bytes() == expected.size());
  REQUIRE_OK(file.Finish(sync));
  REQUIRE(file.bytes() == expected.size());
  REQUIRE(BytesOf(dir / "chunk") == expected);
  REQUIRE((file_system.strict_writes > 0) ==
          (disk == Disk::kStrict && !expected.empty()));
}

const std::vector<Disk> kDisks = {Disk::kAsItIs, Disk::kStrict,
                                  Disk::kNoDirect, Disk::kSilentlyBuffered};

TEST_CASE("StagingFile writes files of every length around a block",
          "[target][staging]") {
  const Disk disk = GENERATE(from_range(kDisks));
  for (const size_t base : {size_t{0}, StagingBuffer::kAlignment,
                            size_t{kMaxPayloadBytes}}) {
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
      INFO(static_cast<int>(disk) << ": " << bytes << " bytes");
      RequireWritten(disk, pieces, true);
    }
  }
}

TEST_CASE("StagingFile goes through the page cache where it is told to",
          "[target][staging]") {
  ScratchDir dir;
  StagingDisk file_system(Disk::kStrict);
  StagingBuffer buffer;
  StagingFile file(&file_system, dir / "chunk", &buffer,
                   StagingFile::Cache::kThrough);
  std::string expected;
  REQUIRE_OK(WritePieces(&file, {5000, 700'000, 1'000'000, 1}, &expected));
  REQUIRE_OK(file.Finish(/*sync=*/true));
  REQUIRE(file_system.strict_writes == 0);
  REQUIRE(BytesOf(dir / "chunk") == expected);
}

TEST_CASE("StagingFile keeps the bytes of pieces of any size in order",
          "[target][staging]") {
  const Disk disk = GENERATE(from_range(kDisks));
  for (const std::vector<size_t>& pieces :
       {std::vector<size_t>(5, kMaxPayloadBytes),
        std::vector<size_t>(6, kMaxPayloadBytes - 1),
        {1, kMaxPayloadBytes, kMaxPayloadBytes, kMaxPayloadBytes, 4095},
        {kMaxPayloadBytes - 1, kMaxPayloadBytes, 2, kMaxPayloadBytes}}) {
    RequireWritten(disk, pieces, false);
  }
  REQUIRE(rc::check("pieces", [disk] {
    const auto pieces = *rc::gen::resize(
        12, rc::gen::container<std::vector<size_t>>(rc::gen::oneOf(
                rc::gen::inRange<size_t>(1, 10'000),
                rc::gen::inRange<size_t>(1, kMaxPayloadBytes + 1))));
    RequireWritten(disk, pieces, false);
  }));
}

TEST_CASE("StagingFile writes nothing that was not committed",
          "[target][staging]") {
  const Disk disk = GENERATE(from_range(kDisks));
  ScratchDir dir;
  StagingDisk file_system(disk);
  StagingBuffer buffer;
  StagingFile file(&file_system, dir / "chunk", &buffer);
  REQUIRE_OK(file.Open());
  std::string expected;
  for (int i = 0; i < 5; ++i) {
    char* room = nullptr;
    REQUIRE_OK(file.Room(kMaxPayloadBytes, &room));
    memset(room, '!', kMaxPayloadBytes);
    // A frame whose digest is wrong ends here; half a room is a short frame.
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
  StagingFile file(rocksdb::FileSystem::Default().get(), dir / "chunk",
                   &buffer);
  REQUIRE_OK(file.Open());
  char* room = nullptr;
  const Status status = file.Room(size_t{kMaxPayloadBytes} + 1, &room);
  REQUIRE(EndStateOf(status) == EndState::kInternal);
  REQUIRE_OK(file.Finish(false));
}

}  // namespace
}  // namespace sstferry
