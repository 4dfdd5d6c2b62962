// Carrying takes the memory of its buffers, whatever the files weigh.
#include <nlohmann/json.hpp>

#include "tests/support/carried.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sanitizer.h"

namespace sstferry::test {
namespace {

constexpr uint64_t kMostBytes = 128u << 20;

}  // namespace

TEST_CASE("Carrying files of 100 MB stays in 128 MiB on both sides together",
          "[transfer][carry]") {
  const TempDir dir;
  rocksdb::ColumnFamilyOptions options = SmallFiles();
  options.target_file_size_base = 100 << 20;
  options.write_buffer_size = 128 << 20;
  {
    OpenDb db(dir / "source", OneFamily(options));
    const std::string value = RandomBytes(1000, 1);
    for (uint64_t i = 0; i < 400'000; ++i) db.Put(NumberedKey(i), value);
    db.Flush();
    db.Compact();
  }
  Process pull(Sstferry({"pull", dir / "source", dir / "target", "--carry",
                         "only", "--lanes", "8", "--json"}));
  REQUIRE(pull.Wait(std::chrono::seconds(120)) == 0);
  const auto summary = nlohmann::json::parse(pull.out(), nullptr, false);
  INFO(summary.dump(1));
  REQUIRE(summary["chunks_carried"] >= 3);
  const uint64_t peak = summary["peak_rss_bytes"];
  REQUIRE((kSanitized || peak < kMostBytes));
}

}  // namespace sstferry::test
