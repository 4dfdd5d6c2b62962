// Slow deletion of an old database, which does not disturb other programs.
#include "pipeline/disk/paced_removal.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "pipeline/disk/durable.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::paced_removal_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

constexpr uint64_t kRate = 5'000'000;  // pieces of 100,000 bytes

Status Remove(const std::string& dir, uint64_t rate, StopSignal* stop) {
  return RemoveTreePaced(rocksdb::FileSystem::Default().get(), dir, rate,
                         stop);
}

// Calls `look` at each fault point of a removal.
class Watch {
 public:
  explicit Watch(std::function<void(const std::string&)> look) {
    TEST_SetFaultHook(std::move(look));
  }
  ~Watch() { TEST_SetFaultHook(nullptr); }
};

TEST_CASE("A large file is truncated piece by piece, at most at the given rate",
          "[target][removal]") {
  ScratchDir dir;
  fs::create_directories(dir / "old/archive");
  WriteBytes(dir / "old/1.sst", std::string(1'050'000, 'x'));
  WriteBytes(dir / "old/archive/1.log", std::string(50'000, 'x'));
  uint64_t largest_cut = 0;
  uint64_t size = 1'050'000;
  int cuts = 0;
  const Watch watch([&](const std::string& name) {
    if (name == "PacedRemoval:FileCut") {
      const uint64_t now = fs::file_size(dir / "old/1.sst");
      largest_cut = std::max(largest_cut, size - now);
      size = now;
      cuts++;
    }
  });
  StopSignal stop;
  const auto start = std::chrono::steady_clock::now();
  REQUIRE_OK(Remove(dir / "old", kRate, &stop));
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  REQUIRE_FALSE(fs::exists(dir / "old"));
  REQUIRE(cuts == 10);
  REQUIRE(largest_cut == 100'000);
  REQUIRE(took.count() >= 1'100'000.0 / kRate * 0.9);
  REQUIRE_OK(Remove(dir / "old", kRate, &stop));  // nothing there
}

TEST_CASE("A file that has another name or is open is not truncated",
          "[target][removal]") {
  ScratchDir dir;
  fs::create_directory(dir / "old");
  const std::string bytes(500'000, 'x');
  WriteBytes(dir / "old/linked.sst", bytes);
  fs::create_hard_link(dir / "old/linked.sst", dir / "backup.sst");
  WriteBytes(dir / "old/open.sst", bytes);
  const int fd = open((dir / "old/open.sst").c_str(), O_RDONLY);
  REQUIRE(fd >= 0);
  WriteBytes(dir / "precious", bytes);
  fs::create_symlink(dir / "precious", dir / "old/link.sst");
  StopSignal stop;
  REQUIRE_OK(Remove(dir / "old", kRate, &stop));
  REQUIRE_FALSE(fs::exists(dir / "old"));
  REQUIRE(BytesOf(dir / "backup.sst") == bytes);
  REQUIRE(BytesOf(dir / "precious") == bytes);
  std::string read_back(bytes.size(), '\0');
  REQUIRE(read(fd, read_back.data(), read_back.size()) ==
          static_cast<ssize_t>(bytes.size()));
  REQUIRE(read_back == bytes);
  close(fd);
}

TEST_CASE("A deletion ends at once when it is stopped", "[target][removal]") {
  ScratchDir dir;
  fs::create_directory(dir / "old");
  WriteBytes(dir / "old/1.sst", std::string(1'000'000, 'x'));
  StopSignal stop;
  const Watch watch([&](const std::string&) { stop.Stop(); });
  const Status status = Remove(dir / "old", 1000, &stop);  // for minutes
  REQUIRE(EndStateOf(status) == EndState::kCancelled);
  REQUIRE(fs::exists(dir / "old/1.sst"));
}

TEST_CASE("Without a rate a deletion does not wait", "[target][removal]") {
  ScratchDir dir;
  fs::create_directory(dir / "old");
  WriteBytes(dir / "old/1.sst", "");
  fs::resize_file(dir / "old/1.sst", 200'000'000);  // holds no block
  StopSignal stop;
  int cuts = 0;
  const Watch watch([&cuts](const std::string& name) {
    cuts += name == "PacedRemoval:FileCut" ? 1 : 0;
  });
  const auto start = std::chrono::steady_clock::now();
  REQUIRE_OK(Remove(dir / "old", 0, &stop));
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  REQUIRE_FALSE(fs::exists(dir / "old"));
  REQUIRE(cuts == 0);
  REQUIRE(took.count() < 35);  // the other tests' rate takes 40
}

}  // namespace
}  // namespace sstferry::paced_removal_test
