// Logs for tests: physical records made by hand, and what a follower reads of
// a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/rocksdb/log_follower.h"
#include "rocksdb/slice.h"

namespace sstferry::test {

inline constexpr size_t kLogBlockBytes = 32u << 10;

// A physical record, with the header its type has.
std::string PhysicalRecord(uint8_t type, const std::string& payload,
                           uint32_t log_number = 0);

// What LogFollower makes of `bytes`.
struct Followed {
  rocksdb::Status status;
  std::vector<std::string> records;
  std::vector<uint64_t> ends;  // of them
  uint64_t end = 0;
  bool recyclable = false;
  bool stopped_inside = false;
  std::set<uint8_t> meta_types;
};
Followed Follow(const rocksdb::Slice& bytes, LogKind kind = LogKind::kWal,
                uint64_t log_number = 0);

// A file of `directory` by its name, whole.
std::string FileBytes(const std::string& path);
// The MANIFEST that CURRENT names.
std::string ManifestBytes(const std::string& directory);
// "000012.log"
std::string WalName(uint64_t number);

}  // namespace sstferry::test
