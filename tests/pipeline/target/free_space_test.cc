#include "pipeline/disk/free_space.h"

#include <sys/statvfs.h>

#include "format/end_state.h"
#include "tests/support/catch.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::free_space_test {
namespace {

std::vector<Part> PartsOf(const std::vector<uint64_t>& sizes) {
  std::vector<Part> parts;
  for (const uint64_t bytes : sizes) {
    parts.emplace_back();
    parts.back().bytes = bytes;
  }
  return parts;
}

TEST_CASE("Need is the estimate, 10 % more, and the largest chunk of each lane",
          "[target][nospace]") {
  const SpaceNeed need = SpaceNeedOf(PartsOf({10, 500, 70, 300, 20}), 100, 3);
  REQUIRE(need.estimated_bytes == 900);
  REQUIRE(need.chunk_bytes == 100 + 100 + 70);
  REQUIRE(need.bytes() == 900 + 90 + 270);
  REQUIRE(SpaceNeedOf(PartsOf({30}), 100, 4).bytes() == 30 + 3 + 30);
  REQUIRE(SpaceNeedOf({}, 100, 4).bytes() == 0);
}

TEST_CASE("Parts to compare need space only for chunks in transit",
          "[target][nospace]") {
  std::vector<Part> parts = PartsOf({500, 70});
  parts[0].need = PartNeed::kCompare;
  const SpaceNeed need = SpaceNeedOf(parts, 100, 3);
  REQUIRE(need.estimated_bytes == 70);
  REQUIRE(need.chunk_bytes == 100 + 70);
}

TEST_CASE("FreeBytes does not count space that is reserved for root",
          "[target][disk]") {
  struct statvfs info;
  REQUIRE(statvfs("/", &info) == 0);
  uint64_t bytes = 0;
  REQUIRE_OK(FreeBytes(rocksdb::FileSystem::Default().get(), "/", &bytes));
  // Other processes write meanwhile, but less than the reserved space.
  constexpr uint64_t kWrittenMeanwhile = 500'000'000;
  REQUIRE(bytes <= uint64_t{info.f_bavail} * info.f_frsize + kWrittenMeanwhile);
}

TEST_CASE("CheckFreeSpace accepts just enough space and refuses one byte less",
          "[target][nospace]") {
  ScratchDir dir;
  FaultyFileSystem disk;
  SpaceNeed need;
  need.estimated_bytes = 50'000'000;
  need.chunk_bytes = 5'000'000;
  disk.SetFreeSpace(60'000'000);
  REQUIRE_OK(CheckFreeSpace(&disk, dir.path(), need));
  disk.SetFreeSpace(59'999'999);
  const rocksdb::Status status = CheckFreeSpace(&disk, dir.path(), need);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kNoSpace);
  REQUIRE(MessageOf(status).find(dir.path()) != std::string::npos);
  REQUIRE(MessageOf(status).find("needs 60.00 MB") != std::string::npos);
}

TEST_CASE("A pull may begin if free space is not supported, but not if reading "
          "it fails",
          "[target][nospace]") {
  class Mute : public rocksdb::FileSystemWrapper {
   public:
    explicit Mute(rocksdb::IOStatus status)
        : FileSystemWrapper(FileSystem::Default()),
          status_(std::move(status)) {}
    const char* Name() const override { return "Mute"; }
    rocksdb::IOStatus GetFreeSpace(const std::string&,
                                   const rocksdb::IOOptions&, uint64_t*,
                                   rocksdb::IODebugContext*) override {
      return status_;
    }

   private:
    const rocksdb::IOStatus status_;
  };
  SpaceNeed need;
  need.estimated_bytes = 1;
  Mute silent(rocksdb::IOStatus::NotSupported("no"));
  REQUIRE_OK(CheckFreeSpace(&silent, "/", need));
  Mute broken(DiskBroken());
  REQUIRE(EndStateOf(CheckFreeSpace(&broken, "/", need)) ==
          EndState::kInternal);
}

}  // namespace
}  // namespace sstferry::free_space_test
