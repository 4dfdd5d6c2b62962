// Encodes the columns of stored entities for digests.
#include "format/rocksdb/wide_columns.h"

#include <string>

#include "format/coding.h"
#include "tests/support/catch.h"

namespace sstferry::wide_columns_test {
namespace {

std::string Bytes(const char* text, size_t bytes) { return {text, bytes}; }

TEST_CASE("Columns are encoded as names, each followed by its value",
          "[format]") {
  // Version 1, two columns: "" with "xyz", "b" with "".
  const std::string stored = Bytes("\x01\x02\x00\x03\x01" "b" "\x00" "xyz", 10);
  std::string expected;
  PutFixed32(&expected, 0);
  PutFixed32(&expected, 3);
  expected += "xyz";
  PutFixed32(&expected, 1);
  PutFixed32(&expected, 0);
  expected += "b";
  std::string encoded = "what was there";
  REQUIRE(EncodeColumnsForDigest(stored, &encoded).ok());
  REQUIRE(encoded == expected);
  // A missing byte, or one byte more, is damage.
  for (size_t bytes = 0; bytes < stored.size(); ++bytes) {
    REQUIRE(EncodeColumnsForDigest(stored.substr(0, bytes), &encoded)
                .IsCorruption());
  }
  REQUIRE(EncodeColumnsForDigest(stored + "x", &encoded).IsCorruption());
}

TEST_CASE("Entities of another version are refused", "[format]") {
  std::string encoded;
  REQUIRE(EncodeColumnsForDigest(Bytes("\x02\x00", 2), &encoded)
              .IsNotSupported());
}

TEST_CASE("Sizes that an entity does not have are damage", "[format]") {
  std::string encoded;
  // Sizes of 2^28: of columns, of a name's bytes and of a value's bytes.
  REQUIRE(EncodeColumnsForDigest(Bytes("\x01\x80\x80\x80\x80\x01", 6), &encoded)
              .IsCorruption());
  REQUIRE(
      EncodeColumnsForDigest(Bytes("\x01\x01\x80\x80\x80\x80\x01", 7), &encoded)
          .IsCorruption());
  REQUIRE(EncodeColumnsForDigest(Bytes("\x01\x01\x00\x80\x80\x80\x80\x01", 8),
                                 &encoded)
              .IsCorruption());
}

}  // namespace
}  // namespace sstferry::wide_columns_test
