#include "format/crc32c.h"

#include <algorithm>
#include <string>

#include "tests/support/catch.h"

namespace sstferry::crc32c_test {
namespace {

uint32_t Of(const std::string& bytes) {
  const uint32_t value = Crc32c(bytes.data(), bytes.size());
  REQUIRE(TEST_Crc32cExtendPortable(0, bytes.data(), bytes.size()) == value);
  return value;
}

TEST_CASE("Crc32c matches the published vectors", "[format]") {
  // RFC 3720, section B.4.
  REQUIRE(Of(std::string(32, '\0')) == 0x8a9136aau);
  REQUIRE(Of(std::string(32, '\xff')) == 0x62a8ab43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<char>(i));
  }
  REQUIRE(Of(ascending) == 0x46dd794eu);
  REQUIRE(Of(std::string(ascending.rbegin(), ascending.rend())) ==
          0x113fdb5cu);
  // An iSCSI SCSI Read (10) Command PDU.
  std::string pdu(48, '\0');
  pdu[0] = '\x01';
  pdu[1] = '\xc0';
  pdu[16] = '\x14';
  pdu[22] = '\x04';
  pdu[27] = '\x14';
  pdu[31] = '\x18';
  pdu[32] = '\x28';
  pdu[40] = '\x02';
  REQUIRE(Of(pdu) == 0xd9963a56u);
  REQUIRE(Of("123456789") == 0xe3069283u);
  REQUIRE(Of("") == 0);
}

TEST_CASE("Crc32c gives the same value however the bytes are cut",
          "[format]") {
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    bytes.push_back(static_cast<char>(i * 37 + 11));
  }
  const uint32_t whole = Of(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const uint32_t head = Crc32c(bytes.data(), cut);
    INFO("cut at " << cut);
    REQUIRE(Crc32cExtend(head, bytes.data() + cut, bytes.size() - cut) ==
            whole);
    REQUIRE(TEST_Crc32cExtendPortable(head, bytes.data() + cut,
                                      bytes.size() - cut) == whole);
  }
}

TEST_CASE("Crc32c of long inputs equals the portable version at every length",
          "[format]") {
  std::string bytes;
  for (int i = 0; i < 10000; ++i) {
    bytes.push_back(static_cast<char>(i * i >> 3));
  }
  for (size_t n = 0; n <= bytes.size(); ++n) {
    const size_t begin = n % 9;
    const size_t length = n - std::min(n, begin);
    INFO(length << " bytes from " << begin);
    REQUIRE(Crc32cExtend(0x12345678u, bytes.data() + begin, length) ==
            TEST_Crc32cExtendPortable(0x12345678u, bytes.data() + begin,
                                      length));
  }
}

TEST_CASE("MaskCrc32c rotates by 15 and adds its constant", "[format]") {
  REQUIRE(MaskCrc32c(0) == 0xa282ead8u);
  REQUIRE(MaskCrc32c(0x8000u) == 0xa282ead9u);
  REQUIRE(MaskCrc32c(1) == 0x20000u + 0xa282ead8u);
  for (const uint32_t crc : {0u, 1u, 0x7fffu, 0x8000u, 0xe3069283u, ~0u}) {
    REQUIRE(UnmaskCrc32c(MaskCrc32c(crc)) == crc);
  }
}

}  // namespace
}  // namespace sstferry::crc32c_test
