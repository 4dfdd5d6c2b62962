// The file of covers: what is written comes back, and nothing else is believed.
#include "format/cover_file.h"

#include "format/coding.h"
#include "format/end_state.h"
#include "format/sealed_file.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"

namespace sstferry {
namespace {

using rocksdb::Slice;

CoverFile SampleCoverFile() {
  CoverFile file;
  file.transfer_id[3] = 0xab;
  file.source_database_id = "7c6a32b2-8e1f";
  file.sequence = 200;
  file.target_database_id = "aa-bb";
  file.families = {
      {"default", {{{1, 2}, "", "k", 77, 5, 6}, {{3, 4}, "a", "z", 8, 0, 0}}},
      {std::string("\0", 1), {}}};
  file.covers = SampleCovers().covers;
  return file;
}

std::string Encoded(const CoverFile& file) {
  std::string bytes;
  REQUIRE_OK(EncodeCoverFile(file, &bytes));
  return bytes;
}

TEST_CASE("Covers come back as they were written", "[format][covers]") {
  CoverFile read;
  REQUIRE_OK(DecodeCoverFile(Encoded(SampleCoverFile()), &read));
  REQUIRE(read == SampleCoverFile());
}

TEST_CASE("Covers with any bit flipped, cut or longer are refused",
          "[format][covers][corruption]") {
  const std::string good = Encoded(SampleCoverFile());
  CoverFile read;
  for (size_t i = 0; i < good.size(); ++i) {
    REQUIRE(DecodeCoverFile(Slice(good.data(), i), &read).IsCorruption());
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      REQUIRE(DecodeCoverFile(bad, &read).IsCorruption());
    }
  }
  REQUIRE(DecodeCoverFile(good + '\0', &read).IsCorruption());
}

TEST_CASE("A cover of a family that is not listed is refused",
          "[format][covers][corruption]") {
  CoverFile file = SampleCoverFile();
  file.covers[0].family = 2;
  CoverFile read;
  const rocksdb::Status status = DecodeCoverFile(Encoded(file), &read);
  REQUIRE(status.IsCorruption());
  REQUIRE(MessageOf(status).find("families that are listed") !=
          std::string::npos);
}

}  // namespace
}  // namespace sstferry
