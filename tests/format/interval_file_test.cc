// The file of covers: what is written comes back, and nothing else is believed.
#include "format/interval_file.h"

#include "format/coding.h"
#include "format/end_state.h"
#include "format/sealed_file.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"

namespace sstferry::interval_file_test {
namespace {

using rocksdb::Slice;

IntervalFile SampleIntervalFile() {
  IntervalFile file;
  file.transfer_id[3] = 0xab;
  file.source_database_id = "7c6a32b2-8e1f";
  file.sequence = 200;
  file.target_database_id = "aa-bb";
  file.families = {
      {"default", {{{1, 2}, "", "k", 77, 5, 6}, {{3, 4}, "a", "z", 8, 0, 0}}},
      {std::string("\0", 1), {}}};
  file.intervals = SampleIntervalRecords().intervals;
  return file;
}

std::string Encoded(const IntervalFile& file) {
  std::string bytes;
  REQUIRE_OK(EncodeIntervalFile(file, &bytes));
  return bytes;
}

TEST_CASE("IntervalRecords come back as they were written",
          "[format][covers]") {
  IntervalFile read;
  REQUIRE_OK(DecodeIntervalFile(Encoded(SampleIntervalFile()), &read));
  REQUIRE(read == SampleIntervalFile());
}

TEST_CASE("IntervalRecords with any bit flipped, cut or longer are refused",
          "[format][covers][corruption]") {
  const std::string good = Encoded(SampleIntervalFile());
  IntervalFile read;
  for (size_t i = 0; i < good.size(); ++i) {
    REQUIRE(DecodeIntervalFile(Slice(good.data(), i), &read).IsCorruption());
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      REQUIRE(DecodeIntervalFile(bad, &read).IsCorruption());
    }
  }
  REQUIRE(DecodeIntervalFile(good + '\0', &read).IsCorruption());
}

TEST_CASE("A cover of a family that is not listed is refused",
          "[format][covers][corruption]") {
  IntervalFile file = SampleIntervalFile();
  file.intervals[0].family = 2;
  IntervalFile read;
  const rocksdb::Status status = DecodeIntervalFile(Encoded(file), &read);
  REQUIRE(status.IsCorruption());
  REQUIRE(MessageOf(status).find("listed column families") !=
          std::string::npos);
}

}  // namespace
}  // namespace sstferry::interval_file_test
