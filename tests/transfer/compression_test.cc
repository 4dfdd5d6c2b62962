// Transfers with each kind of compression on the wire: the same database
// arrives, and the bytes on the wire are what the option promises.
#include <chrono>

#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/test_db.h"

namespace sstferry::test::compression_test {
namespace {

using std::chrono::milliseconds;

// Makes values of 1000 bytes, `noise_bytes` of which are incompressible.
void MakeDatabase(const std::string& path, int entries, size_t noise_bytes,
                  rocksdb::CompressionType blocks = rocksdb::kNoCompression) {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = blocks;
  OpenDb db(path, OneFamily(options));
  for (int i = 0; i < entries; ++i) {
    std::string value = RandomBytes(noise_bytes, i);
    value.resize(1000, 'v');
    db.Put(NumberedKey(i), value);
  }
  db.Flush();
}

PullOptions With(WireCompression compression, uint32_t level = 0) {
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.compression = compression;
  options.compression_level = level;
  options.chunk_bytes = 4'000'000;
  return options;
}

// Pulls from a server with a rate limit, which imitates a slow link.
Summary PullSlowly(const std::string& source, const std::string& target,
                   PullOptions options, uint64_t wire_bytes_per_sec) {
  ServeOptions serve = ServeSample(source);
  serve.max_rate_bytes_per_sec = wire_bytes_per_sec;
  TestServer server(serve);
  REQUIRE_OK(ParseSourceAddress(server.url("db"), &options.source));
  options.target_dir = target;
  Summary summary;
  REQUIRE_OK(MakePull(options)->Run(&summary));
  return summary;
}

}  // namespace

TEST_CASE("Every kind of compression moves every kind of data",
          "[transfer][compression]") {
  struct Data {
    const char* name;
    size_t noise_bytes;
    rocksdb::CompressionType blocks;
    bool shrinks;
  };
  const Data kinds[] = {{"shrinks", 150, rocksdb::kNoCompression, true},
                        {"noise", 1000, rocksdb::kNoCompression, false},
                        {"zstd blocks", 700, rocksdb::kZSTD, false}};
  struct Option {
    WireCompression compression;
    uint32_t level;
  };
  const Option options[] = {{WireCompression::kNone, 0},
                            {WireCompression::kAuto, 0},
                            {WireCompression::kZstd, 0},
                            {WireCompression::kZstd, 7}};
  for (const Data& data : kinds) {
    const ScratchDir dir;
    MakeDatabase(dir / "source", 20'000, data.noise_bytes, data.blocks);
    for (const Option& option : options) {
      const Via via =
          option.level == 7 ? Via::kDirectory : Via::kTcp;
      const std::string target =
          dir / ("target" + std::to_string(&option - options));
      const Ferried moved = Ferry(
          dir / "source", target, With(option.compression, option.level), via);
      REQUIRE_OK(moved.status);
      const Summary& s = moved.summary;
      INFO(data.name << " option " << &option - options << ": "
                     << s.wire_bytes << " wire bytes, " << s.sst_bytes
                     << " of SST, " << s.compressed_frames << " frames, "
                     << s.compressed_bytes_before << " to "
                     << s.compressed_bytes_after);
      ExpectSameEntries(dir / "source", target);
      const bool shrinks =
          data.shrinks && option.compression == WireCompression::kZstd;
      // On a busy machine, both sides may wait for a CPU so long that `auto`
      // takes the link for slow.
      const bool may_shrink =
          data.shrinks && option.compression == WireCompression::kAuto;
      REQUIRE((may_shrink || (s.compressed_frames > 0) == shrinks));
      REQUIRE((s.compressed_bytes_before > 0) == (s.compressed_frames > 0));
      // Frame headers and messages need less than a thousandth of the bytes.
      const uint64_t saved =
          s.compressed_bytes_before - s.compressed_bytes_after;
      REQUIRE(s.wire_bytes + saved >= s.sst_bytes);
      REQUIRE(s.wire_bytes + saved < s.sst_bytes + s.sst_bytes / 1000 + 20'000);
      REQUIRE((!shrinks || 3 * s.wire_bytes < s.sst_bytes));
    }
  }
}

// Does not check how soon: a source without spare CPU is no faster with
// compression. The tests of CompressionControl check times.
TEST_CASE("Auto compresses when the link is slow",
          "[transfer][compression]") {
  const ScratchDir dir;
  MakeDatabase(dir / "source", 12'000, 150);
  const Summary moved = PullSlowly(dir / "source", dir / "target",
                                   With(WireCompression::kAuto), 1'000'000);
  INFO(moved.seconds << " s, " << moved.compressed_frames << " frames, "
                     << moved.compressed_bytes_before << " bytes");
  ExpectSameEntries(dir / "source", dir / "target");
  REQUIRE(moved.compressed_frames > 0);
  REQUIRE(moved.wire_bytes < moved.sst_bytes);
}

TEST_CASE("Auto leaves compression off if it does not help",
          "[transfer][compression]") {
  const ScratchDir dir;
  MakeDatabase(dir / "source", 12'000, 150);
  SECTION("pull --max-rate counts bytes before compression") {
    PullOptions options = With(WireCompression::kAuto);
    options.max_rate_bytes_per_sec = 3'000'000;
    const Summary moved =
        PullSlowly(dir / "source", dir / "target", options, 0);
    REQUIRE(moved.seconds > 3);
    REQUIRE(moved.compressed_frames == 0);
  }
  SECTION("the target did not ask for it") {
    const Summary moved =
        PullSlowly(dir / "source", dir / "target",
                   With(WireCompression::kNone), 3'000'000);
    REQUIRE(moved.seconds > 3);
    REQUIRE(moved.compressed_frames == 0);
  }
}

}  // namespace sstferry::test::compression_test
