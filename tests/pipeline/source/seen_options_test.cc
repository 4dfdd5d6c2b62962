#include "pipeline/options/seen_options.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "format/file_name.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::seen_options_test {
namespace {

TEST_CASE("OPTIONS files that are replaced before they are read do not count "
          "as none",
          "[snapshot]") {
  const ScratchDir dir;
  const auto path = [&dir](uint64_t number) {
    return dir / ("OPTIONS-" + NumberedName(number, ""));
  };
  WriteBytes(path(1), "text");
  std::atomic<bool> done{false};
  std::thread owner([&] {
    for (uint64_t number = 2; !done; ++number) {
      WriteBytes(dir / "new", "text");
      std::filesystem::rename(dir / "new", path(number));
      std::filesystem::remove(path(number - 1));
    }
  });
  int read = 0;
  int lost = 0;
  int failed = 0;
  for (int i = 0; i < 10'000; ++i) {
    SeenOptions options(dir.path());
    const rocksdb::Status status = options.Look();
    read += options.name().empty() ? 0 : 1;
    lost += status.ok() && options.name().empty() ? 1 : 0;
    failed += status.ok() || status.IsTryAgain() ? 0 : 1;
  }
  done = true;
  owner.join();
  CHECK(read > 0);
  CHECK(lost == 0);
  CHECK(failed == 0);
}

TEST_CASE("The settings of a database come from the newest complete OPTIONS "
          "file",
          "[snapshot]") {
  const ScratchDir dir;
  const std::string family = "[CFOptions \"default\"]\n  a=1\n";
  const std::string whole = "[DBOptions]\n  wal_dir=/a\n" + family;
  SeenOptions options(dir.path());
  REQUIRE_OK(options.Look());
  CHECK(options.name().empty());
  WriteBytes(dir / "OPTIONS-000007", "[DBOptions]\n  wal_dir=/b\n");
  REQUIRE_OK(options.Look());
  CHECK(options.name() == "OPTIONS-000007");
  CHECK_FALSE(options.database().HasDatabase());
  WriteBytes(dir / "OPTIONS-000009", whole);
  WriteBytes(dir / "OPTIONS-000012", "");
  REQUIRE_OK(options.Look());
  CHECK(options.name() == "OPTIONS-000012");
  CHECK(options.TextFor({}).empty());
  CHECK(options.newest().DatabaseOption("wal_dir", "").empty());
  CHECK(options.database().DatabaseOption("wal_dir", "") == "/a");
  CHECK(options.database().HasFamily("default"));
}

}  // namespace
}  // namespace sstferry::seen_options_test
