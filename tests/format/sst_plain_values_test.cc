#include "format/sst/sst_plain_values.h"

#include "format/sst/sst_reader.h"
#include "tests/support/catch.h"
#include "tests/support/sst_files.h"

namespace sstferry::test {
namespace {

std::string Block(uint8_t type, uint64_t sequence) {
  return PlainBlock({{InternalKey("a"), "one"},
                     {InternalKey("b", type, sequence), "two"},
                     {InternalKey("", 1, 0), ""}});
}

}  // namespace

TEST_CASE("A block of plain values is told from all others", "[format][sst]") {
  REQUIRE(HoldsOnlyPlainValues(Block(kSstTypeValue, 0)));
  REQUIRE(HoldsOnlyPlainValues(PlainBlock({})));
  REQUIRE_FALSE(HoldsOnlyPlainValues(Block(kSstTypeWideColumnEntity, 0)));
  REQUIRE_FALSE(HoldsOnlyPlainValues(Block(kSstTypeValue, 1)));
  REQUIRE_FALSE(HoldsOnlyPlainValues(Block(0, 0)));
  REQUIRE_FALSE(HoldsOnlyPlainValues(PlainBlock({{"short", "value"}})));
}

TEST_CASE("No damage makes a block of others one of plain values",
          "[format][sst][corruption]") {
  const std::string good = Block(kSstTypeWideColumnEntity, 0);
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    // Whatever it says, it must not read beyond the end.
    const std::string cut(good.data(), bytes);
    static_cast<void>(HoldsOnlyPlainValues(cut));
  }
  for (const char top : {'\x80', '\x10', '\x7f'}) {
    std::string other = Block(kSstTypeValue, 0);
    other.back() = top;
    REQUIRE_FALSE(HoldsOnlyPlainValues(other));
  }
  std::string cut = Block(kSstTypeValue, 0);
  cut.erase(0, 1);
  REQUIRE_FALSE(HoldsOnlyPlainValues(cut));
}

}  // namespace sstferry::test
