// Segments of an archive's log: a decoded head equals the encoded one, and
// other bytes are refused.
#include "format/archive_log.h"

#include <functional>

#include <rapidcheck.h>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/sealed_file.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"

namespace sstferry::archive_log_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

std::string Encoded(const LogHead& head) {
  std::string bytes;
  EncodeLogHead(head, &bytes);
  return bytes;
}

TEST_CASE("A segment's head is decoded as it was encoded",
          "[format][archive]") {
  const LogHead head = SampleLogHead();
  LogHead read;
  REQUIRE_OK(DecodeLogHead(Encoded(head), head.key, &read));
  REQUIRE(read == head);
  REQUIRE(read.payload_bytes() == 3100);
  REQUIRE(read.last_sequence() == 1002);
  REQUIRE(read.end().wal_number == 15);
  REQUIRE(read.end().wal_bytes == 3000);
  REQUIRE(read.stored_bytes() == 3100 + kSealTagBytes);
  REQUIRE(LogHeadBytes(Encoded(head) + "payload") == Encoded(head).size());
  LogHead idle = head;
  idle.wals.clear();
  idle.moments.clear();
  REQUIRE_OK(DecodeLogHead(Encoded(idle), idle.key, &read));
  REQUIRE(read.end() == idle.begin);
  LogHead same = head;  // it continues in the same WAL
  same.wals = {{12, 3100}};
  REQUIRE_OK(DecodeLogHead(Encoded(same), same.key, &read));
  REQUIRE(read.end().wal_bytes == 34567 + 3100);
}

TEST_CASE("The golden bytes of a segment's head", "[format][archive]") {
  LogHead head;
  head.key = {SetId{1}, 1, 2, 3};
  head.begin = {5, 6, {7, 8}, 9, 10};
  head.ended = CutReason::kBarrier;
  head.wals = {{9, 4}};
  head.moments = {{3, 4, 11}};
  head.payload = {12, 13};
  head.judged = {14, {15, 16}};
  REQUIRE(ToHex(Encoded(head)) ==
          "5346414c4f4753311601000000000000f391e8dbcaaf3603"  // see FORMAT.md
          "0100000000000000"                                  // lineage
          "010000000000000002000000000000000300000000000000"  // number, times
          "0000000000000000"                                  // previous
          "0000000000000000000000000000000000000000000000000000000000000000"
          "05000000000000000600000000000000"                  // begin
          "08000000000000000700000000000000"
          "09000000000000000a00000000000000"
          "0e0000000000000010000000000000000f00000000000000"  // judged
          "03000000000000000000000000"  // ended, note, host, software
          "0100000009000000000000000400000000000000"
          "01000000030000000000000004000000000000000b00000000000000"
          "0d000000000000000c00000000000000"
          "00000000000000000000000000000000000000000000000000"  // not sealed
          "0000000000000000000000000000000000000000000000000000000000000000");
}

TEST_CASE("A segment's head that is cut or changed anywhere is damage",
          "[format][archive][corruption]") {
  const LogHead head = SampleLogHead();
  const std::string good = Encoded(head);
  LogHead read;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    REQUIRE(DecodeLogHead(bad, head.key, &read).IsCorruption());
    REQUIRE(DecodeLogHead(good.substr(0, i), head.key, &read).IsCorruption());
  }
  REQUIRE(DecodeLogHead(good + '\0', head.key, &read).IsCorruption());
  REQUIRE(LogHeadBytes("") == 0);
  REQUIRE(LogHeadBytes(good.substr(0, kSealedHeaderBytes - 1)) == 0);
  std::string large = good.substr(0, kSealedHeaderBytes);
  EncodeFixed32(large.data() + 8, kMaxLogHeadBytes);
  REQUIRE(LogHeadBytes(large) == 0);
}

TEST_CASE("A segment's head in the older format says nothing of its history",
          "[format][archive]") {
  LogHead head = SampleLogHead();
  head.database_id.clear();
  head.wal = Digest128();
  REQUIRE(Encoded(head).starts_with("SFALOGS1"));
  REQUIRE(Encoded(SampleLogHead()).starts_with("SFALOGS2"));
  LogHead read;
  REQUIRE_OK(DecodeLogHead(Encoded(head), head.key, &read));
  REQUIRE(read == head);
  REQUIRE(read.position().database_id.empty());
  REQUIRE(SampleLogHead().position() ==
          FollowPosition{"id of the source", 5, 1000, 1100, {9, 10}, 15, 3000,
                         {13, 14}});
}

TEST_CASE("A segment with another's name or impossible fields is damage",
          "[format][archive][corruption]") {
  const LogHead good = SampleLogHead();
  const auto refuse = [&good](const std::function<void(LogHead*)>& change) {
    LogHead bad = good;
    change(&bad);
    LogHead read;
    const Status status = DecodeLogHead(Encoded(bad), good.key, &read);
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  };
  refuse([](LogHead* head) { head->key.number += 1; });
  refuse([](LogHead* head) { head->key.lineage[0] ^= 1; });
  refuse([](LogHead* head) { head->key.end_micros += 1; });
  refuse([](LogHead* head) { head->previous = {}; });
  refuse([](LogHead* head) { head->previous_lineage = {}; });
  refuse([](LogHead* head) {
    head->previous = {};
    head->previous_lineage = {};  // only number 1 may have no previous lineage
  });
  refuse([](LogHead* head) { head->wals.pop_back(); });
  refuse([](LogHead* head) { head->wals[1].wal_number = 12; });
  refuse([](LogHead* head) { head->wals[0].wal_number = 11; });
  refuse([](LogHead* head) { head->wals[0].bytes = 0; });
  refuse([](LogHead* head) { head->moments.pop_back(); });
  refuse([](LogHead* head) { std::swap(head->moments[0], head->moments[1]); });
  refuse([](LogHead* head) { head->moments[1].bytes = 60; });
  refuse([](LogHead* head) { head->moments[0].micros += 1; });
  refuse([](LogHead* head) { head->moments[2].bytes += 1; });
  // The encoder refuses a head out of bounds. So the test encodes a head with
  // the marker kPlace, and then overwrites the marker in the bytes.
  constexpr uint64_t kPlace = 0x02345678;
  const auto refuse_largest = [&good](LogHead head) {
    std::string bytes = Encoded(head);
    std::string place;
    PutFixed64(&place, kPlace);
    const size_t at = bytes.find(place);
    REQUIRE(at != std::string::npos);
    bytes.replace(at, place.size(), place.size(), '\xff');
    std::string bad;
    SealFile(bytes.substr(0, 8).c_str(), bytes.substr(kSealedHeaderBytes),
             &bad);
    LogHead read;
    const Status status = DecodeLogHead(bad, good.key, &read);
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  };
  LogHead large = good;
  large.wals[1].bytes = kPlace;
  refuse_largest(large);
  large = good;
  large.begin.wal_bytes = kPlace;
  refuse_largest(large);
}

TEST_CASE("Names of segments sort by their numbers, and only they are parsed",
          "[format][archive]") {
  const LogKey key = SampleLogHead().key;
  REQUIRE(LogKeyText(key) == "wal/0102030405060708/0000002a-"
                             "0006608b015f3001-0006608b01f7c682");
  LogKey read;
  const std::string good = LogKeyText(key);
  REQUIRE(ParseLogKey(good, &read));
  REQUIRE(read == key);
  for (size_t i = 0; i < good.size(); ++i) {
    REQUIRE_FALSE(ParseLogKey(good.substr(0, i), &read));
    std::string bad = good;
    bad[i] = '+';
    REQUIRE_FALSE(ParseLogKey(bad, &read));
  }
  for (const char* const bad :
       {"wal/0102030405060708/00000000-0000000000000001-0000000000000002",
        "wal/0102030405060708/00000001-0000000000000002-0000000000000001",
        "wal/0102030405060708/00000001-0000000000000000-0000000000000001",
        "wal/0102030405060708/0000000A-0000000000000001-0000000000000002",
        "wal/0102030405060708/00000001-ffffffffffffffff-ffffffffffffffff"}) {
    INFO(bad);
    REQUIRE_FALSE(ParseLogKey(bad, &read));
  }
  LogKey later = key;
  later.number += 0x100;
  REQUIRE(LogKeyText(later) > good);
  REQUIRE(rc::check([](const std::string& text) {
    LogKey any;
    RC_ASSERT(!ParseLogKey(text, &any) || LogKeyText(any) == text);
  }));
}

}  // namespace
}  // namespace sstferry::archive_log_test
