// The lease file: a decoded lease equals the encoded one, and other bytes are
// refused.
#include "format/lease.h"

#include <rapidcheck.h>

#include "format/limits.h"
#include "format/sealed_file.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"

namespace sstferry::lease_test {
namespace {

using rocksdb::Status;

std::string Encoded(const Lease& lease) {
  std::string file;
  REQUIRE_OK(EncodeLease(lease, &file));
  return file;
}

TEST_CASE("A lease is decoded as it was encoded", "[format][lease]") {
  const Lease lease = SampleLease();
  Lease read;
  REQUIRE_OK(DecodeLease(Encoded(lease), &read));
  REQUIRE(read == lease);
}

TEST_CASE("A lease that is truncated, longer or has a flipped bit is refused",
          "[format][lease]") {
  const std::string good = Encoded(SampleLease());
  Lease read;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    INFO("bit " << bit);
    REQUIRE(DecodeLease(bad, &read).IsCorruption());
  }
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    INFO(bytes << " bytes");
    REQUIRE(DecodeLease(good.substr(0, bytes), &read).IsCorruption());
  }
  REQUIRE(DecodeLease(good + '\0', &read).IsCorruption());
}

TEST_CASE("An intact lease with impossible fields is refused",
          "[format][lease]") {
  const std::string good = Encoded(SampleLease()).substr(kSealedHeaderBytes);
  Lease read;
  REQUIRE_OK(DecodeLease(SealedLease(good), &read));
  const auto refuse = [&](size_t at, const std::string& bytes,
                          const std::string& sentence) {
    std::string bad = good;
    bad.replace(at, bytes.size(), bytes);
    const Status status = DecodeLease(SealedLease(bad), &read);
    INFO(status.ToString());
    REQUIRE(status.IsCorruption());
    REQUIRE(status.ToString().find(sentence) != std::string::npos);
  };
  refuse(16, std::string("\xff\xff\xff\xff", 4), "database");
  refuse(good.size() - 12, std::string(8, '\xff'), "ttl_seconds");
  refuse(22, std::string("\xff\xff\xff\x7f", 4), "directory");
  REQUIRE(DecodeLease(SealedLease(good + "x"), &read).IsCorruption());
  REQUIRE(DecodeLease(SealedLease(""), &read).IsCorruption());
  REQUIRE(DecodeLease(SealedLease(std::string(kMaxLeasePayloadBytes + 1, 'x')),
                      &read)
              .IsCorruption());
}

TEST_CASE("Fields that do not fit into a lease are not written",
          "[format][lease]") {
  std::string file;
  Lease lease = SampleLease();
  lease.owner_names.assign(kMaxOwnerNames + 1, "name");
  REQUIRE(EndStateOf(EncodeLease(lease, &file)) == EndState::kRefused);
  lease = SampleLease();
  lease.owner_subject.assign(kMaxMessageTextBytes + 1, 'x');
  REQUIRE(EndStateOf(EncodeLease(lease, &file)) == EndState::kRefused);
  REQUIRE(file.empty());
}

TEST_CASE("A lease expires some time after its renewal", "[format][lease]") {
  const Lease lease = SampleLease();
  REQUIRE(LeaseSecondsLeft(lease, 2000, 10'000) == 3600);
  REQUIRE(LeaseSecondsLeft(lease, 2001, 10'000) == 3599);
  REQUIRE(LeaseSecondsLeft(lease, 5599, 10'000) == 1);
  REQUIRE(LeaseSecondsLeft(lease, 5600, 10'000) == 0);
  REQUIRE(LeaseSecondsLeft(lease, UINT64_MAX, 10'000) == 0);
  // the clock was set back
  REQUIRE(LeaseSecondsLeft(lease, 1, 10'000) == 3600);
  REQUIRE(LeaseSecondsLeft(lease, 2050, 100) == 50);
  REQUIRE(LeaseSecondsLeft(lease, 2000, 0) == 0);
}

TEST_CASE("Random bytes are refused, or decoded as a lease",
          "[format][lease]") {
  REQUIRE(rc::check([](const std::string& bytes) {
    Lease lease;
    DecodeLease(bytes, &lease).PermitUncheckedError();
    DecodeLease(SealedLease(bytes), &lease).PermitUncheckedError();
  }));
}

}  // namespace
}  // namespace sstferry::lease_test
