// Makes and reads logs for tests: physical records made by hand, and the
// records that LogFollower reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/rocksdb/log_follower.h"
#include "rocksdb/slice.h"

namespace sstferry::test {

inline constexpr size_t kLogBlockBytes = 32u << 10;

// Returns a physical record with the header of its type.
std::string PhysicalRecord(uint8_t type, const std::string& payload,
                           uint32_t log_number = 0);

// Appends a record with this batch to a WAL.
void AppendBatch(const std::string& wal, const std::string& batch);
// Returns a wide-column entity of version 2 (RocksDB 11). Its column "" has the
// value "v", and its column "a" is in a blob file, at `reference`.
std::string ReferringEntity(const std::string& reference);
// Returns a reference of a type that says when the blob expires. A stacked
// BlobDB writes such references.
std::string ExpiringReference();

// Appends a two-phase transaction to a WAL. It puts the wide-column entity
// {"": "whole", "a": "1"} at key "entity", with this sequence number.
void AppendPreparedEntity(const std::string& wal, uint64_t sequence);

// The result of LogFollower for some bytes.
struct Followed {
  rocksdb::Status status;
  std::vector<std::string> records;
  std::vector<uint64_t> ends;  // offsets at which the records end
  uint64_t end = 0;
  bool recyclable = false;
  bool stopped_inside = false;
  LogStop stop = LogStop::kEnd;
  bool is_damaged = false;
  std::set<uint8_t> meta_types;
};
Followed Follow(const rocksdb::Slice& bytes, LogKind kind = LogKind::kWal,
                uint64_t log_number = 0);

// Returns the contents of a file.
std::string FileBytes(const std::string& path);
// Returns the contents of the MANIFEST that CURRENT names.
std::string ManifestBytes(const std::string& directory);
// Returns for example "000012.log".
std::string WalName(uint64_t number);

}  // namespace sstferry::test
