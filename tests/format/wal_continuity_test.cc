#include "format/rocksdb/wal_continuity.h"

#include "format/coding.h"
#include "format/end_state.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"

namespace sstferry::wal_continuity_test {
namespace {

// A put of key "k" and value "v" in family 0.
const std::string kEntry("\x01\x01k\x01v", 5);

// Encodes a batch of `count` entries that begins at `sequence`. `before` and
// `behind` are extra bytes before and after the entries.
std::string Batch(uint64_t sequence, uint32_t count,
                  const std::string& before = "",
                  const std::string& behind = "") {
  std::string record;
  PutFixed64(&record, sequence);
  PutFixed32(&record, count);
  record += before;
  for (uint32_t i = 0; i < count; ++i) {
    record += kEntry;
  }
  return record + behind;
}

// Markers of a transaction: begin and end of a prepared section, then commit,
// rollback and no-op.
const std::string kPrepare(1, '\x09');
const std::string kEndPrepare("\x0a\x01t", 3);
const std::string kCommit("\x0b\x01t", 3);
const std::string kRollback("\x0c\x01t", 3);
const std::string kNoop(1, '\x0d');
const std::string kBlobIndex("\x11\x01k\x01v", 5);

WalStep Add(WalContinuity* wals, const std::string& record, uint64_t wal = 4) {
  WalStep step = WalStep::kGap;
  REQUIRE_OK(wals->Add(wal, record, &step));
  return step;
}

}  // namespace

TEST_CASE("Each batch continues after the entries of the previous batch",
          "[format]") {
  WalContinuity wals(6);
  REQUIRE(Add(&wals, Batch(7, 3)) == WalStep::kContinues);
  REQUIRE(Add(&wals, Batch(10, 1)) == WalStep::kContinues);
  // an empty batch takes no sequence number
  REQUIRE(Add(&wals, Batch(11, 0)) == WalStep::kContinues);
  REQUIRE(wals.last_sequence() == 10);
  REQUIRE(Add(&wals, Batch(12, 1)) == WalStep::kGap);
  REQUIRE(Add(&wals, Batch(13, 1)) == WalStep::kContinues);
}

TEST_CASE("Entries that recovery does not reach are in no WAL", "[format]") {
  WalContinuity wals(0);
  REQUIRE_FALSE(wals.has_entries());
  wals.SetLost(true);
  REQUIRE(Add(&wals, Batch(1, 3)) == WalStep::kContinues);
  REQUIRE(wals.has_entries());
  REQUIRE_FALSE(wals.Covers(3, 3));
  wals.SetLost(false);
  REQUIRE(Add(&wals, Batch(4, 1)) == WalStep::kContinues);
  REQUIRE(wals.Covers(4, 4));
  REQUIRE_FALSE(wals.Covers(2, 4));
}

TEST_CASE("A first batch that does not continue is a gap", "[format]") {
  WalContinuity wals(6);
  REQUIRE(Add(&wals, Batch(5, 3)) == WalStep::kGap);
  REQUIRE(Add(&wals, Batch(8, 3)) == WalStep::kContinues);
}

TEST_CASE("Numbers that only the MANIFEST mentions are in no WAL", "[format]") {
  WalContinuity wals(20);
  REQUIRE(wals.last_sequence() == 20);
  REQUIRE(Add(&wals, Batch(5, 3)) == WalStep::kGap);
  REQUIRE(wals.last_sequence() == 7);
  REQUIRE(wals.Covers(5, 7));
  REQUIRE_FALSE(wals.Covers(4, 7));
  wals.SkipTo(20);
  REQUIRE_FALSE(wals.Covers(5, 20));
}

TEST_CASE("A prepared section takes its numbers at the commit", "[format]") {
  WalContinuity wals(6);
  REQUIRE(Add(&wals, Batch(7, 3, kPrepare, kEndPrepare)) ==
          WalStep::kContinues);
  REQUIRE(Add(&wals, Batch(7, 1)) == WalStep::kContinues);
  SECTION("committed") {
    REQUIRE(Add(&wals, Batch(8, 0, kCommit)) == WalStep::kContinues);
    REQUIRE(Add(&wals, Batch(11, 1)) == WalStep::kContinues);
  }
  SECTION("rolled back") {
    REQUIRE(Add(&wals, Batch(8, 0, kRollback)) == WalStep::kContinues);
    REQUIRE(Add(&wals, Batch(8, 1)) == WalStep::kContinues);
  }
}

TEST_CASE("After the commit of an unseen section nothing is known",
          "[format]") {
  WalContinuity wals(6);
  REQUIRE(Add(&wals, Batch(7, 1)) == WalStep::kContinues);
  REQUIRE(Add(&wals, Batch(8, 0, kCommit)) == WalStep::kContinues);
  REQUIRE(Add(&wals, Batch(11, 1)) == WalStep::kGap);
  REQUIRE_FALSE(wals.Covers(9, 9));
  REQUIRE(Add(&wals, Batch(12, 1)) == WalStep::kContinues);
}

TEST_CASE("A batch that refers to a blob, or may do so, is reported",
          "[format]") {
  const auto step_of = [](const std::string& entry) {
    WalContinuity wals(6);
    std::string record = Batch(7, 1, "", entry);
    record[8] = 2;
    return Add(&wals, record);
  };
  const auto entity = [](const std::string& value) {
    return std::string("\x16\x01k", 3) + static_cast<char>(value.size()) +
           value;
  };
  REQUIRE(step_of(kBlobIndex) == WalStep::kBlobIndex);
  REQUIRE(step_of(entity(test::ReferringEntity("\x01\x63\x20\x05"))) ==
          WalStep::kBlobIndex);
  REQUIRE(step_of(entity("\x03 of a later version")) == WalStep::kBlobIndex);
  REQUIRE(step_of(entity(std::string("\x01\x00", 2))) == WalStep::kContinues);
}

TEST_CASE("Other policies than WriteCommitted are refused", "[format]") {
  WalContinuity wals(6);
  WalStep step;
  REQUIRE(Add(&wals, Batch(7, 3)) == WalStep::kContinues);
  for (const char* begin : {"\x12", "\x13"}) {
    const rocksdb::Status status =
        wals.Add(4, Batch(10, 1, begin, kEndPrepare), &step);
    REQUIRE(EndStateOf(status) == EndState::kRefused);
  }
  // The batch before had three entries that together took one number.
  REQUIRE(EndStateOf(wals.Add(4, Batch(8, 1), &step)) == EndState::kRefused);
}

TEST_CASE("A batch that may have taken one number for all its entries is "
          "accepted once the next record of its WAL continues",
          "[format]") {
  WalContinuity wals(6);
  WalStep step;
  // A transaction of three entries, perhaps followed by an empty one.
  REQUIRE(Add(&wals, Batch(7, 3, kNoop, kNoop)) == WalStep::kContinues);
  REQUIRE(wals.Covers(7, 7));
  // A table with one of these numbers may contain a batch from a WAL that was
  // never read.
  REQUIRE_FALSE(wals.Covers(8, 8));
  REQUIRE_FALSE(wals.Covers(9, 12));
  REQUIRE(wals.Covers(10, 12));  // numbers after the last are not judged
  SECTION("it continues") {
    REQUIRE(Add(&wals, Batch(10, 0, kNoop)) == WalStep::kContinues);
    REQUIRE_FALSE(wals.Covers(7, 9));
    REQUIRE(Add(&wals, Batch(10, 1, kNoop)) == WalStep::kContinues);
    REQUIRE(wals.Covers(7, 10));
  }
  SECTION("the next WAL's first record is no proof: WALs may be missing") {
    REQUIRE(Add(&wals, Batch(10, 1), 8) == WalStep::kGap);
    REQUIRE(wals.Covers(7, 7));
    REQUIRE(wals.Covers(10, 10));
    REQUIRE_FALSE(wals.Covers(9, 9));
    REQUIRE(Add(&wals, Batch(11, 1), 8) == WalStep::kContinues);
  }
  SECTION("refused if that record shows that all entries took one number") {
    REQUIRE(EndStateOf(wals.Add(8, Batch(8, 1), &step)) == EndState::kRefused);
  }
}

TEST_CASE("A batch that took a number for each entry is accepted at once",
          "[format]") {
  WalContinuity wals(6);
  SECTION("since a transaction's marker comes first") {
    REQUIRE(Add(&wals, Batch(7, 3, kNoop)) == WalStep::kContinues);
  }
  SECTION("since each batch has one entry") {
    std::string two = Batch(7, 1, kNoop, kNoop + kEntry + kNoop);
    two[8] = 2;
    REQUIRE(Add(&wals, two) == WalStep::kContinues);
  }
  SECTION("since it has prepared sections") {
    REQUIRE(Add(&wals, Batch(7, 3, kPrepare, kEndPrepare + kNoop)) ==
            WalStep::kContinues);
    REQUIRE(Add(&wals, Batch(7, 3, "", kCommit + kNoop)) ==
            WalStep::kContinues);
  }
  REQUIRE(Add(&wals, Batch(wals.last_sequence() + 1, 1), 8) ==
          WalStep::kContinues);
}

TEST_CASE("Numbers that tables explain are no gap", "[format]") {
  WalContinuity wals(6);
  REQUIRE(Add(&wals, Batch(7, 1)) == WalStep::kContinues);
  SECTION("an ingestion's") {
    wals.Excuse(8);
    REQUIRE(Add(&wals, Batch(9, 1)) == WalStep::kContinues);
    REQUIRE(wals.Covers(7, 9));
  }
  SECTION("a flush's of entries that no WAL has") {
    wals.SkipTo(9);
    REQUIRE(Add(&wals, Batch(10, 1)) == WalStep::kContinues);
    REQUIRE_FALSE(wals.Covers(9, 9));
    REQUIRE(wals.Covers(10, 10));
  }
}

TEST_CASE("A table with a number that no WAL has is not covered", "[format]") {
  WalContinuity wals(6);
  REQUIRE(Add(&wals, Batch(7, 2)) == WalStep::kContinues);
  REQUIRE(Add(&wals, Batch(12, 2)) == WalStep::kGap);
  REQUIRE(wals.Covers(7, 8));
  REQUIRE(wals.Covers(12, 13));
  REQUIRE(wals.Covers(12, 99));  // numbers after the last are not judged
  REQUIRE_FALSE(wals.Covers(6, 8));
  REQUIRE_FALSE(wals.Covers(8, 9));
  REQUIRE_FALSE(wals.Covers(7, 12));
  REQUIRE_FALSE(wals.Covers(10, 10));
}

}  // namespace sstferry::wal_continuity_test
