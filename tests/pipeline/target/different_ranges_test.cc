#include "pipeline/target/pull/different_ranges.h"

#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry {
namespace {

using rocksdb::BytewiseComparator;

TEST_CASE("Different ranges that meet are listed as one, in key order",
          "[target][repair]") {
  DifferentRanges ranges;
  ranges.Add("b", BytewiseComparator(), {"m", "n"});
  ranges.Add("a", rocksdb::ReverseBytewiseComparator(), {"z", "y"});
  ranges.Add("a", rocksdb::ReverseBytewiseComparator(), {"y", "x"});
  ranges.Add("b", BytewiseComparator(), {"c", "d"});
  ranges.Add("b", BytewiseComparator(), {"p", std::nullopt});
  ranges.Add("b", BytewiseComparator(), {"d", "e"});
  ranges.Add("b", BytewiseComparator(), {"b", "c"});
  ranges.Add("b", BytewiseComparator(), {"o", "q"});
  REQUIRE(ranges.List() ==
          std::vector<FamilyRange>{{"a", {"z", "x"}},
                                   {"b", {"b", "e"}},
                                   {"b", {"m", "n"}},
                                   {"b", {"o", std::nullopt}}});
  ranges.Add("b", BytewiseComparator(), {std::nullopt, "mm"});
  REQUIRE(ranges.List() ==
          std::vector<FamilyRange>{{"a", {"z", "x"}},
                                   {"b", {std::nullopt, "n"}},
                                   {"b", {"o", std::nullopt}}});
  ranges.Add("b", BytewiseComparator(), {});
  REQUIRE(ranges.List().back() == FamilyRange{"b", {}});
  REQUIRE(ranges.List().size() == 2);
}

TEST_CASE("Long bounds of a different range are cut to shorter ones around it",
          "[target][repair]") {
  const std::string high(300, '\xff');
  DifferentRanges ranges;
  ranges.Add("a", BytewiseComparator(),
             {"b" + std::string(300, 'x'), "c" + high});
  ranges.Add("a", BytewiseComparator(), {"e" + high, high});
  ranges.Add("b", rocksdb::ReverseBytewiseComparator(), {high, "a" + high});
  REQUIRE(ranges.List() ==
          std::vector<FamilyRange>{
              {"a", {"b" + std::string(255, 'x'), "d"}},
              {"a", {"e" + high.substr(0, 255), std::nullopt}},
              {"b", {high, "a" + high}}});
}

TEST_CASE("Any number of different ranges is listed as a bounded one",
          "[target][repair]") {
  const size_t key_bytes = GENERATE(0u, 100'000u);
  DifferentRanges ranges;
  const std::string long_key(key_bytes, 'x');
  static const test::NamedComparator named("bytewise by another name");
  const rocksdb::Comparator* const order = &named;
  const auto key = [&](uint64_t i) { return test::NumberedKey(i) + long_key; };
  const uint64_t count = key_bytes == 0 ? 20'000 : 300;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = i * 7919 % count;
    ranges.Add("default", order, {key(2 * at), key(2 * at + 1)});
  }
  const std::vector<FamilyRange> list = ranges.List();
  REQUIRE(list.size() <= kMaxDifferentRanges);
  REQUIRE(list.size() > 5);
  size_t bytes = 0;
  size_t at = 0;
  for (const FamilyRange& range : list) {
    bytes += range.interval.begin->size() + range.interval.end->size();
  }
  REQUIRE(bytes <= DifferentRanges::kMaxDifferentRangeBytes);
  for (uint64_t i = 0; i < count; ++i) {
    while (at < list.size() && *list[at].interval.end < key(2 * i + 1)) {
      ++at;
    }
    REQUIRE(at < list.size());
    REQUIRE(*list[at].interval.begin <= key(2 * i));
  }
}

}  // namespace
}  // namespace sstferry
