// The record of a replica's health: a decoded record equals the encoded one,
// and other bytes are refused.
#include "format/health_file.h"

#include "format/limits.h"
#include "tests/support/catch.h"

namespace sstferry::health_file_test {
namespace {

using rocksdb::Slice;

HealthFile SampleHealthFile() {
  HealthFile health;
  health.fault = ReplicaFault::kDamaged;
  health.id[7] = 0x5a;
  health.found_seconds = 1'764'000'000;
  health.what = "000012.sst: block checksum mismatch";
  health.families = {"default", std::string("\0", 1)};
  health.interval.begin = "a";
  return health;
}

std::string Encoded(const HealthFile& health) {
  std::string bytes;
  EncodeHealthFile(health, &bytes);
  return bytes;
}

TEST_CASE("A record of health is decoded as it was encoded",
          "[format][health]") {
  HealthFile read;
  REQUIRE_OK(DecodeHealthFile(Encoded(SampleHealthFile()), &read));
  REQUIRE(read == SampleHealthFile());
}

TEST_CASE("A record of health that is truncated, longer or flipped is refused",
          "[format][health][corruption]") {
  const std::string good = Encoded(SampleHealthFile());
  HealthFile read;
  for (size_t i = 0; i < good.size(); ++i) {
    REQUIRE(DecodeHealthFile(Slice(good.data(), i), &read).IsCorruption());
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      REQUIRE(DecodeHealthFile(bad, &read).IsCorruption());
    }
  }
  REQUIRE(DecodeHealthFile(good + '\0', &read).IsCorruption());
}

TEST_CASE("A message that is too long is truncated when it is recorded",
          "[format][health]") {
  HealthFile health = SampleHealthFile();
  health.what.assign(2 * kMaxMessageTextBytes, 'x');
  HealthFile read;
  REQUIRE_OK(DecodeHealthFile(Encoded(health), &read));
  REQUIRE(read.what == std::string(kMaxMessageTextBytes, 'x'));
}

}  // namespace
}  // namespace sstferry::health_file_test
