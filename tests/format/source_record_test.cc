// What a source leaves with a target: it comes back as it was, or not at all.
#include "format/source_record.h"

#include "format/end_state.h"
#include "tests/support/catch.h"

namespace sstferry::source_record_test {
namespace {

using rocksdb::Slice;

SourceRecord Sample() {
  SourceRecord record;
  SourceRecordFamily used;
  used.name = "default";
  used.searched = true;
  used.knows_keys = true;
  used.files = {{1, 2}, {3, 4}};
  used.keys = {"", std::string("k\0", 2), "\xff"};
  SourceRecordFamily other;
  other.name = "b";
  other.single_deletes = true;
  record.families = {used, other};
  return record;
}

std::string Encoded(const SourceRecord& record) {
  std::string bytes;
  EncodeSourceRecord(record, &bytes);
  return bytes;
}

TEST_CASE("A source record comes back as it was written",
          "[format][source_record]") {
  SourceRecord read;
  REQUIRE_OK(DecodeSourceRecord(Encoded(Sample()), &read));
  REQUIRE(read == Sample());
  TransferId id{};
  id[5] = 7;
  std::string file;
  EncodeSourceRecordFile(id, Encoded(Sample()), &file);
  TransferId read_id{};
  std::string bytes;
  REQUIRE_OK(DecodeSourceRecordFile(file, &read_id, &bytes));
  REQUIRE(read_id == id);
  REQUIRE(bytes == Encoded(Sample()));
}

TEST_CASE("Every truncation of a source record is refused",
          "[format][source_record][corruption]") {
  const std::string whole = Encoded(Sample());
  SourceRecord read;
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    REQUIRE(DecodeSourceRecord(Slice(whole.data(), bytes), &read)
                .IsCorruption());
  }
  REQUIRE(DecodeSourceRecord(whole + "x", &read).IsCorruption());
}

TEST_CASE("Every changed bit of the file of a source record is found",
          "[format][source_record][corruption]") {
  std::string file;
  EncodeSourceRecordFile(TransferId{}, Encoded(Sample()), &file);
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string bad = file;
    bad[bit / 8] ^= static_cast<char>(1u << (bit % 8));
    TransferId id{};
    std::string bytes;
    INFO("bit " << bit);
    REQUIRE(DecodeSourceRecordFile(bad, &id, &bytes).IsCorruption());
  }
}

TEST_CASE("A source record that is too large leaves out keys, then files",
          "[format][source_record]") {
  SourceRecord record = Sample();
  record.families[0].keys.assign(200, std::string(100'000, 'k'));
  SourceRecord read;
  REQUIRE_OK(DecodeSourceRecord(Encoded(record), &read));
  REQUIRE_FALSE(read.families[0].knows_keys);
  REQUIRE(read.families[0].keys.empty());
  REQUIRE(read.families[0].files.size() == 2);
  record.families[0].files.assign((kMaxSourceRecordBytes / 16) + 1, {1, 2});
  REQUIRE_OK(DecodeSourceRecord(Encoded(record), &read));
  REQUIRE(read.families[0].files.empty());
  REQUIRE(read.families[1].single_deletes);
}

}  // namespace
}  // namespace sstferry::source_record_test
