#include "tests/support/log_bytes.h"

#include <cstdio>
#include <fstream>
#include <iterator>

#include "format/coding.h"
#include "format/crc32c.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"

namespace sstferry::test {

using rocksdb::Slice;
using rocksdb::Status;

std::string PhysicalRecord(uint8_t type, const std::string& payload,
                           uint32_t log_number) {
  std::string checked(1, static_cast<char>(type));
  if ((type >= 5 && type <= 8) || type == 11 || type == 131) {
    PutFixed32(&checked, log_number);
  }
  checked += payload;
  std::string record;
  PutFixed32(&record, MaskCrc32c(Crc32c(checked.data(), checked.size())));
  PutFixed16(&record, static_cast<uint16_t>(payload.size()));
  return record + checked;
}

void AppendBatch(const std::string& wal, const std::string& batch) {
  constexpr uint8_t kWhole = 1;  // a record in one piece
  std::ofstream out(wal, std::ios::binary | std::ios::app);
  out << PhysicalRecord(kWhole, batch);
  REQUIRE(out.good());
}

std::string ReferringEntity(const std::string& reference) {
  // Version, columns, bytes of the name sizes, of the value sizes and of the
  // names; types; name sizes; value sizes, names and values.
  std::string entity("\x02\x02\x02\x02\x01" "\x01\x11" "\x00\x01" "\x01", 10);
  entity += static_cast<char>(reference.size());
  return entity + "av" + reference;
}

std::string ExpiringReference() {
  // Type, expiration, file, offset, size, compression.
  return std::string("\x02\x01\x63\x20\x05\x00", 6);
}

void AppendPreparedEntity(const std::string& wal, uint64_t sequence) {
  // Version 1, two columns, their names and the sizes of their values, values.
  const std::string entity("\x01\x02\x00\x05\x01" "a\x01" "whole1", 13);
  std::string section;
  PutFixed64(&section, sequence);
  std::string commit = section;
  PutFixed32(&section, 1);
  PutFixed32(&commit, 0);
  section += "\x09\x16\x06" "entity";
  section += static_cast<char>(entity.size());
  section += entity + "\x0a\x01t";
  commit += "\x0b\x01t";
  AppendBatch(wal, section);
  AppendBatch(wal, commit);
}

Followed Follow(const Slice& bytes, LogKind kind, uint64_t log_number) {
  Followed followed;
  LogFollower follower(kind, log_number);
  followed.status = follower.Follow(
      SliceSource(bytes), [&](const Slice& record, uint64_t end) {
        followed.records.push_back(record.ToString());
        followed.ends.push_back(end);
        return Status::OK();
      });
  followed.end = follower.end();
  followed.recyclable = follower.is_recyclable();
  followed.stopped_inside = follower.stopped_inside();
  followed.stop = follower.stop();
  followed.is_damaged = follower.is_damaged();
  followed.meta_types = follower.meta_record_types();
  return followed;
}

std::string FileBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  INFO(path);
  REQUIRE(in.good());
  return BytesIn(in);
}

std::string ManifestBytes(const std::string& directory) {
  std::string name = FileBytes(directory + "/CURRENT");
  name.resize(name.find('\n'));
  return FileBytes(directory + "/" + name);
}

std::string WalName(uint64_t number) {
  char name[32];
  snprintf(name, sizeof(name), "%06llu.log",
           static_cast<unsigned long long>(number));
  return name;
}

}  // namespace sstferry::test
