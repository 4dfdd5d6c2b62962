// The record of a standby's audits: a decoded record equals the encoded one,
// and other bytes are refused.
#include "format/audit_file.h"

#include "format/hex.h"
#include "tests/support/catch.h"

namespace sstferry::audit_file_test {
namespace {

using rocksdb::Slice;

AuditFile Sample() {
  AuditFile audit;
  audit.source_database_id = "0af1";
  audit.pass_begun_micros = 1'764'000'000'000'000;
  audit.done_begun_micros = 1'763'000'000'000'000;
  audit.done_ended_micros = 1'763'500'000'000'000;
  audit.next_family = 2;
  audit.next_key = std::string("k\0z", 3);
  audit.begun_micros = 1'764'000'600'000'000;
  audit.cpu_micros = 5'123'456;
  audit.slices = 7;
  audit.entries = 41'951;
  audit.passes = 1;
  audit.differences = 2;
  audit.unaudited_cuts = 3;
  audit.unaudited_reason = "the standby did not come to the cut's end in time";
  audit.difference_micros = 1'763'200'000'000'000;
  audit.difference = "column family 'users': 1 entries differ";
  audit.compares_all = true;
  audit.families = {{"sessions", "it has a compaction filter"}};
  return audit;
}

std::string Encoded(const AuditFile& audit) {
  std::string bytes;
  EncodeAuditFile(audit, &bytes);
  return bytes;
}

TEST_CASE("The record of audits is decoded as it was encoded",
          "[format][audit]") {
  AuditFile read;
  REQUIRE_OK(DecodeAuditFile(Encoded(Sample()), &read));
  REQUIRE(read == Sample());
  REQUIRE_OK(DecodeAuditFile(Encoded(AuditFile()), &read));
  REQUIRE(read == AuditFile());
}

TEST_CASE("The record of audits has the bytes that FORMAT.md specifies",
          "[format][audit][golden]") {
  const std::string bytes = Encoded(Sample());
  REQUIRE(bytes.substr(0, 8) == "SFAUDIT1");
  const AuditFile audit = Sample();
  REQUIRE(bytes.size() ==
          24 + (4 + 4) + 3 * 8 + 4 + (1 + 4 + 3) + 2 * 8 + 5 * 8 +
              (4 + audit.unaudited_reason.size()) + 8 +
              (4 + audit.difference.size()) + 1 +
              (4 + 4 + 8 + 4 + audit.families[0].reason.size()));
}

TEST_CASE("A record of audits with any wrong byte is refused",
          "[format][audit]") {
  const std::string whole = Encoded(Sample());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    AuditFile read;
    REQUIRE_FALSE(DecodeAuditFile(bytes, &read).ok());
    REQUIRE_FALSE(DecodeAuditFile(Slice(whole.data(), i), &read).ok());
    REQUIRE(read == AuditFile());
  }
}

}  // namespace
}  // namespace sstferry::audit_file_test
