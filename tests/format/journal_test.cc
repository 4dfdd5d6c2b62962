#include "format/journal.h"

#include "format/coding.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"

namespace sstferry::journal_test {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Reads records until one is not OK, and returns its status: NotFound at the
// end of an intact journal.
Status ReadAll(const Slice& journal, size_t* records) {
  *records = 0;
  uint64_t offset = kJournalMagicBytes;
  for (;;) {
    JournalRecord record;
    Status status = ReadJournalRecord(journal, offset, &record);
    if (status.ok()) {
      status = DecodeRecord(record);
    }
    if (!status.ok()) {
      return status;
    }
    ++*records;
    offset += record.total_bytes;
  }
}

}  // namespace

TEST_CASE("A journal's records are read in order", "[format]") {
  const std::string journal = SampleJournal();
  REQUIRE_OK(CheckJournalMagic(journal));
  const std::vector<uint64_t> offsets = SampleJournalOffsets();
  using Type = JournalRecordType;
  const std::vector<Type> types = {Type::kTransfer, Type::kPlan,
                                   Type::kChunk,    Type::kIngested,
                                   Type::kTargetFiles, Type::kPartDone,
                                   Type::kComplete, Type::kChunk};
  REQUIRE(offsets.size() == types.size() + 1);
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    JournalRecord record;
    REQUIRE_OK(ReadJournalRecord(journal, offsets[i], &record));
    REQUIRE(record.offset == offsets[i]);
    REQUIRE(record.total_bytes == offsets[i + 1] - offsets[i]);
    REQUIRE(record.type == types[i]);
    REQUIRE_OK(DecodeRecord(record));
  }
  REQUIRE(offsets.back() == journal.size());
  JournalRecord record;
  REQUIRE(ReadJournalRecord(journal, journal.size(), &record).IsNotFound());
}

TEST_CASE("A journal torn at any length ends in a torn tail",
          "[format][crash]") {
  const std::string journal = SampleJournal();
  const std::vector<uint64_t> offsets = SampleJournalOffsets();
  for (size_t bytes = kJournalMagicBytes; bytes <= journal.size(); ++bytes) {
    size_t whole = 0;
    while (whole + 1 < offsets.size() && offsets[whole + 1] <= bytes) {
      ++whole;
    }
    size_t records = 0;
    const Status status = ReadAll(Slice(journal.data(), bytes), &records);
    INFO("cut to " << bytes << ": " << status.ToString());
    REQUIRE(records == whole);
    if (offsets[whole] == bytes) {
      REQUIRE(status.IsNotFound());
    } else {
      REQUIRE(status.IsIncomplete());
    }
  }
}

TEST_CASE("A tail of zeros or noise is a torn tail", "[format][crash]") {
  for (const std::string& tail :
       {std::string(4096, '\0'), std::string(15, '\0'),
        std::string(300, '\xff'), std::string(40, '\x01')}) {
    size_t records = 0;
    REQUIRE(ReadAll(SampleJournal() + tail, &records).IsIncomplete());
    REQUIRE(records == SampleJournalOffsets().size() - 1);
  }
}

TEST_CASE("A flipped bit before a journal's last record is Corruption",
          "[format][corruption]") {
  const std::string journal = SampleJournal();
  const std::vector<uint64_t> offsets = SampleJournalOffsets();
  const uint64_t last = offsets[offsets.size() - 2];
  for (size_t bit = kJournalMagicBytes * 8; bit < journal.size() * 8; ++bit) {
    std::string bad = journal;
    bad[bit / 8] ^= static_cast<char>(1u << (bit % 8));
    size_t records = 0;
    const Status status = ReadAll(bad, &records);
    INFO("byte " << bit / 8 << " bit " << bit % 8 << ": "
                 << status.ToString());
    if (bit / 8 < last) {
      REQUIRE(status.IsCorruption());
    } else {
      REQUIRE(status.IsIncomplete());
      REQUIRE(records == offsets.size() - 2);
    }
  }
}

TEST_CASE("A record is valid only at its offset in the journal",
          "[format][corruption]") {
  // Records 2 and 3 exchanged: each is intact, but at another offset.
  const std::string journal = SampleJournal();
  const std::vector<uint64_t> at = SampleJournalOffsets();
  const std::string swapped =
      journal.substr(0, at[1]) + journal.substr(at[2], at[3] - at[2]) +
      journal.substr(at[1], at[2] - at[1]) + journal.substr(at[3]);
  REQUIRE(swapped.size() == journal.size());
  size_t records = 0;
  REQUIRE(ReadAll(swapped, &records).IsCorruption());
  REQUIRE(records == 1);
}

TEST_CASE("A journal with a torn magic is distinguished from a wrong magic",
          "[format][corruption]") {
  const std::string journal = SampleJournal();
  for (size_t bytes = 0; bytes < kJournalMagicBytes; ++bytes) {
    REQUIRE(CheckJournalMagic(Slice(journal.data(), bytes)).IsIncomplete());
  }
  REQUIRE(CheckJournalMagic("SFJOURN2 and more").IsCorruption());
  REQUIRE(CheckJournalMagic("x").IsCorruption());
}

TEST_CASE("A crafted journal cannot make the search for records endless",
          "[format][corruption]") {
  // A plausible header every 16 bytes, each with a payload of 1 MiB.
  std::string journal(kJournalMagic, kJournalMagicBytes);
  std::string header;
  PutFixed32(&header, kMaxJournalPayloadBytes);
  PutFixed8(&header, 3);
  header.append(11, '\0');
  for (int i = 0; i < (4 << 20) / 16; ++i) {
    journal += header;
  }
  JournalRecord record;
  REQUIRE(ReadJournalRecord(journal, kJournalMagicBytes, &record)
              .IsCorruption());
}

}  // namespace sstferry::journal_test
