#include "format/rocksdb/write_batch_reader.h"

#include <random>

#include "format/rocksdb/known.h"
#include "rocksdb/write_batch.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::write_batch_reader_test {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Records entries and markers as text.
class Recorder : public BatchHandler {
 public:
  Status OnEntry(BatchEntryKind kind, uint32_t family_id, const Slice& key,
                 const Slice& value) override {
    entries.push_back(std::to_string(static_cast<int>(kind)) + " " +
                      std::to_string(family_id) + " " + key.ToString() + "=" +
                      value.ToString());
    return Status::OK();
  }
  Status OnMarker(BatchMarker marker, const Slice& name) override {
    entries.push_back("marker " + std::to_string(static_cast<int>(marker)) +
                      " " + name.ToString());
    return Status::OK();
  }

  std::vector<std::string> entries;
};

Status Read(const std::string& record, BatchHeader* header,
            Recorder* recorder) {
  return ReadWriteBatch(record, header, recorder);
}

// Returns a batch that announces `count` entries and has the bytes `body`.
std::string Batch(uint32_t count, const std::string& body) {
  std::string record(8, '\0');
  record[0] = 42;
  record += static_cast<char>(count);
  record.append(3, '\0');
  return record + body;
}

}  // namespace

TEST_CASE("A batch is read as RocksDB wrote it", "[format][rocksdb]") {
  const ScratchDir dir;
  test::Families families = test::OneFamily();
  families.emplace_back("second", rocksdb::ColumnFamilyOptions());
  const test::OpenDb db(dir / "db", families);
  const uint32_t id = db.cf("second")->GetID();
  rocksdb::WriteBatch batch;
  REQUIRE_OK(batch.Put("a", "1"));
  REQUIRE_OK(batch.Put(db.cf("second"), "b", std::string(300, 'x')));
  REQUIRE_OK(batch.Delete("c"));
  REQUIRE_OK(batch.SingleDelete(db.cf("second"), "d"));
  REQUIRE_OK(batch.DeleteRange("e", "f"));
  REQUIRE_OK(batch.PutLogData("a note"));
  REQUIRE_OK(batch.Merge(db.cf("second"), "g", "operand"));
  REQUIRE_OK(batch.PutEntity(db.cf(), "h", {{"name", "value"}}));
  BatchHeader header;
  Recorder recorder;
  REQUIRE_OK(Read(batch.Data(), &header, &recorder));
  REQUIRE(header.count == 7);
  const std::string second = std::to_string(id);
  // RocksDB's encoding of columns is not compared
  recorder.entries.back().resize(4);
  REQUIRE(recorder.entries ==
          std::vector<std::string>{
              "0 0 a=1", "0 " + second + " b=" + std::string(300, 'x'),
              "1 0 c=", "2 " + second + " d=", "3 0 e=f",
              "4 " + second + " g=operand", "6 0 "});
}

TEST_CASE("Markers of transactions are reported with their names",
          "[format][rocksdb]") {
  BatchHeader header;
  Recorder recorder;
  REQUIRE_OK(Read(Batch(2, std::string("\x0d\x09\x01\x01k\x01v\x0a\x02t1"
                                       "\x12\x00\x01k\x0a\x02t2"
                                       "\x13\x0a\x02t3\x0b\x02t1"
                                       "\x15\x08timestmp\x02t2\x0c\x02t3",
                                       45)),
                  &header, &recorder));
  REQUIRE(header.sequence == 42);
  REQUIRE(recorder.entries ==
          std::vector<std::string>{
              "marker 7 ", "marker 0 ", "0 0 k=v", "marker 3 t1", "marker 1 ",
              "1 0 k=", "marker 3 t2", "marker 2 ", "marker 3 t3",
              "marker 4 t1", "marker 5 t2", "marker 6 t3"});
}

TEST_CASE("A batch cut at any byte, or with a wrong count, is damaged",
          "[format][rocksdb]") {
  rocksdb::WriteBatch batch;
  REQUIRE_OK(batch.Put("key", std::string(200, 'v')));
  REQUIRE_OK(batch.Delete("other"));
  const std::string& whole = batch.Data();
  BatchHeader header;
  for (size_t size = 0; size < whole.size(); ++size) {
    Recorder recorder;
    REQUIRE(Read(whole.substr(0, size), &header, &recorder).IsCorruption());
    REQUIRE(ReadWriteBatch(Slice(whole.data(), size), &header, nullptr).ok() ==
            (size >= 12));
  }
  std::string wrong = whole;
  wrong[8] = 3;
  Recorder recorder;
  const Status status = Read(wrong, &header, &recorder);
  REQUIRE(status.IsCorruption());
  REQUIRE(status.ToString().find("expected 3 entries, found 2") !=
          std::string::npos);
}

TEST_CASE(
    "An entry of a type that the table does not have is refused by number",
    "[format][rocksdb]") {
  for (int type = 0; type < 256; ++type) {
    BatchHeader header;
    Recorder recorder;
    const Status status =
        Read(Batch(1, std::string(1, static_cast<char>(type)) + "\x01k\x01v"),
             &header, &recorder);
    bool is_known = false;  // types that only tables contain do not count
    for (const KnownName& known : KnownNames()) {
      is_known |= known.kind == KnownKind::kValueType &&
                  known.number == static_cast<uint32_t>(type) &&
                  known.effects->follow.handling != Handling::kNone;
    }
    INFO("type " << type);
    REQUIRE(status.IsNotSupported() == !is_known);
    if (!is_known) {
      REQUIRE(status.ToString().find("found " + std::to_string(type)) !=
              std::string::npos);
    }
  }
}

}  // namespace sstferry::write_batch_reader_test
