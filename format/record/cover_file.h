// What a replica remembers of the refresh that made it current, in the file
// `sstferry.covers` of its directory: where it came from, what backed each
// interval there, and which files hold it here. Normative text:
// format/FORMAT.md, "Covers". The file is one of format/record/sealed_file.h with magic
// 53 46 43 4f 56 45 52 32 ("SFCOVER2").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/message/messages.h"

namespace sstferry {

inline constexpr char kCoverFileName[] = "sstferry.covers";
inline constexpr char kCoverMagic[9] = "SFCOVER2";
inline constexpr uint64_t kMaxCoverPayloadBytes = 1ull << 28;
inline constexpr uint32_t kMaxTargetFiles = 1u << 22;

// A live file of the target: where it lay counts once it has gone.
struct CoveredTable {
  Digest128 id;          // RocksDB's unique id
  std::string smallest;  // user keys, those of tombstones included
  std::string largest;
  uint64_t bytes = 0;
  uint64_t smallest_sequence = 0;
  uint64_t largest_sequence = 0;
  friend bool operator==(const CoveredTable&, const CoveredTable&) = default;
};

struct CoveredFamily {
  std::string name;
  std::vector<CoveredTable> files;  // all of them
  friend bool operator==(const CoveredFamily&, const CoveredFamily&) = default;
};

struct CoverFile {
  TransferId transfer_id{};           // that wrote it
  std::string source_database_id;
  bool mixed = false;                 // a refresh by chunks has not ended
  uint64_t sequence_old = 0;          // of the source, before that refresh
  uint64_t sequence_new = 0;          // and after it
  std::string target_database_id;     // whose files they are; empty: unknown
  std::vector<CoveredFamily> families;
  // Cover::family is an index of families. One that is doubted was so when
  // this was written, whatever its files say.
  std::vector<Cover> covers;
  friend bool operator==(const CoverFile&, const CoverFile&) = default;
};

// Appends a whole file. kRefused when it would be larger than it may be.
[[nodiscard]] rocksdb::Status EncodeCoverFile(const CoverFile& covers,
                                              std::string* out);

// Corruption for anything but one whole file whose covers name its families.
[[nodiscard]] rocksdb::Status DecodeCoverFile(const rocksdb::Slice& file,
                                              CoverFile* covers);

}  // namespace sstferry
