// What a replica remembers of the refresh that made it current, in the file
// `sstferry.covers` of its directory: where it came from, what backed each
// interval there, and which files hold it here. Normative text:
// format/FORMAT.md, "Covers". The file is one of format/sealed_file.h with magic
// 53 46 43 4f 56 45 52 31 ("SFCOVER1").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages.h"

namespace sstferry {

inline constexpr char kCoverFileName[] = "sstferry.covers";
inline constexpr char kCoverMagic[9] = "SFCOVER1";
inline constexpr uint64_t kMaxCoverPayloadBytes = 1ull << 28;
inline constexpr uint32_t kMaxTargetFiles = 1u << 22;

// A live file of the target: where it lay counts once it has gone.
struct CoveredTable {
  Digest128 id;          // RocksDB's unique id
  std::string smallest;  // user keys, those of tombstones included
  std::string largest;
  friend bool operator==(const CoveredTable&, const CoveredTable&) = default;
};

struct CoveredFamily {
  std::string name;
  std::vector<CoveredTable> files;
  friend bool operator==(const CoveredFamily&, const CoveredFamily&) = default;
};

struct CoverFile {
  TransferId transfer_id{};           // that wrote it
  std::string source_database_id;
  bool mixed = false;                 // a refresh by chunks has not ended
  uint64_t sequence_old = 0;          // of the source, before that refresh
  uint64_t sequence_new = 0;          // and after it
  std::string target_database_id;     // whose latest sequence it is:
  uint64_t target_sequence = 0;       // nothing was written since, if equal
  std::vector<CoveredFamily> families;
  std::vector<Cover> covers;          // Cover::family is an index of families
  friend bool operator==(const CoverFile&, const CoverFile&) = default;
};

// Appends a whole file. kRefused when it would be larger than it may be.
[[nodiscard]] rocksdb::Status EncodeCoverFile(const CoverFile& covers,
                                              std::string* out);

// Corruption for anything but one whole file whose covers name its families.
[[nodiscard]] rocksdb::Status DecodeCoverFile(const rocksdb::Slice& file,
                                              CoverFile* covers);

}  // namespace sstferry
