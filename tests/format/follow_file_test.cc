// The files of a standby: decoded records equal the encoded ones, and other
// bytes are refused.
#include "format/follow_file.h"

#include "format/hex.h"
#include "tests/support/catch.h"

namespace sstferry::follow_file_test {
namespace {

using rocksdb::Slice;

FollowFile SampleRecord() {
  FollowFile record;
  record.source = "sst://db1/orders";
  record.source_database_id = "0af1";
  record.manifest_number = 5;
  record.manifest_bytes = 1234;
  record.manifest_digest = {1, 2};
  record.wals = {{12, 4096}, {14, 77}};
  record.sequence = 41'951;
  record.cut_micros = 1'764'000'000'000'000;
  record.reason = CutReason::kBarrier;
  record.cuts[static_cast<size_t>(CutReason::kFirst)] = 1;
  record.cuts[static_cast<size_t>(CutReason::kBarrier)] = 7;
  record.lost_sequences = 3;
  record.lost_dir = "/srv/orders.sstferry-lost-20261125T020003Z";
  record.unproven_dirs = {"/srv/orders.sstferry-unproven-20261125T020003Z"};
  return record;
}

FollowMark SampleMark(uint64_t count) {
  FollowMark mark;
  mark.count = count;
  mark.wal_number = 12;
  mark.wal_bytes = 100 * count;
  mark.last_sequence = 10 * count;
  mark.read_micros = 1'764'000'000'000'000 + count;
  mark.closed_micros = count % 3;
  mark.judged = {1000 + count, {3, 4}};
  mark.begun_micros = 5;
  mark.heard_micros = 6 + count;
  mark.source_process =
      count % 2 == 0 ? SourceProcess::kOpen : SourceProcess::kClosed;
  mark.silent_micros = 7 + count;
  return mark;
}

std::string Encoded(const FollowFile& record) {
  std::string bytes;
  EncodeFollowFile(record, &bytes);
  return bytes;
}

std::string Slots(const FollowMark& even, const FollowMark& odd) {
  std::string bytes;
  EncodeFollowMark(even, &bytes);
  EncodeFollowMark(odd, &bytes);
  return bytes;
}

TEST_CASE("The record of a standby is decoded as it was encoded",
          "[format][follow]") {
  FollowFile read;
  REQUIRE_OK(DecodeFollowFile(Encoded(SampleRecord()), &read));
  REQUIRE(read == SampleRecord());
}

TEST_CASE("The record of a standby has the bytes that FORMAT.md specifies",
          "[format][follow][golden]") {
  const std::string bytes = Encoded(SampleRecord());
  REQUIRE(bytes.substr(0, 8) == "SFFOLLO1");
  REQUIRE(bytes.size() == 24 + (4 + 16) + (4 + 4) + 8 + 8 + 16 +
                              (4 + 2 * 16) + 8 + 8 + 1 + 1 + (4 + 14 * 8) + 8 +
                              (4 + 42) + (4 + 4 + 46));
}

TEST_CASE("A standby's record that is truncated, longer or flipped is refused",
          "[format][follow][corruption]") {
  const std::string good = Encoded(SampleRecord());
  FollowFile read;
  for (size_t i = 0; i < good.size(); ++i) {
    REQUIRE(DecodeFollowFile(Slice(good.data(), i), &read).IsCorruption());
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      REQUIRE(DecodeFollowFile(bad, &read).IsCorruption());
    }
  }
  REQUIRE(DecodeFollowFile(good + '\0', &read).IsCorruption());
}

TEST_CASE("The newest mark of a standby is used", "[format][follow]") {
  REQUIRE(NewestFollowMark(Slots(SampleMark(8), SampleMark(7))) ==
          SampleMark(8));
  REQUIRE(NewestFollowMark(Slots(SampleMark(8), SampleMark(9))) ==
          SampleMark(9));
  REQUIRE(NewestFollowMark("") == FollowMark());
  REQUIRE(NewestFollowMark(std::string(512, '\0')) == FollowMark());
}

TEST_CASE("After a torn mark, the previous mark is used",
          "[format][follow][corruption]") {
  const std::string good = Slots(SampleMark(8), SampleMark(9));
  for (size_t i = 0; i < kFollowMarkSlotBytes; ++i) {
    std::string bad = good;
    bad[kFollowMarkSlotBytes + i] ^= 1;
    REQUIRE(NewestFollowMark(bad) == SampleMark(8));
    REQUIRE(NewestFollowMark(Slice(good.data(), kFollowMarkSlotBytes + i)) ==
            SampleMark(8));
  }
}

}  // namespace
}  // namespace sstferry::follow_file_test
