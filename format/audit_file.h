// The file `sstferry.audit` in the directory of a standby: which part of its
// entries was compared with its source's, and when. Normative text:
// format/FORMAT.md, "Audit". It is one of format/sealed_file.h with magic
// 53 46 41 55 44 49 54 31 ("SFAUDIT1").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/types.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr char kAuditFileName[] = "sstferry.audit";
inline constexpr char kAuditMagic[9] = "SFAUDIT1";
// The largest file that can be one: names of families are most of it.
inline constexpr uint64_t kMaxAuditPayloadBytes = 64u << 20;

// A family that is not audited.
struct UnauditedFamily {
  std::string name;
  std::string reason;  // "it has a compaction filter"
  friend bool operator==(const UnauditedFamily&,
                         const UnauditedFamily&) = default;
};

// A pass compares all families, in the order of their ids, and each in the order
// of its keys, slice by slice. Times are of the standby's clock, since 1970; 0:
// never.
struct AuditFile {
  static constexpr char kName[] = "audit record";

  std::string source_database_id;
  // The pass that has begun, and the last one that came to its end.
  uint64_t pass_begun_micros = 0;
  uint64_t done_begun_micros = 0;
  uint64_t done_ended_micros = 0;
  // Where the next slice begins: in the family of that id or the next one, at
  // that key; null: at the first one.
  uint32_t next_family = 0;
  std::optional<std::string> next_key;
  // The newest audit, and the CPU time that it took.
  uint64_t begun_micros = 0;
  uint64_t cpu_micros = 0;
  // Since the standby was made.
  uint64_t slices = 0;
  uint64_t entries = 0;
  uint64_t passes = 0;
  uint64_t differences = 0;
  uint64_t unaudited_cuts = 0;  // that could not be audited
  std::string unaudited_reason;  // of the newest one
  uint64_t difference_micros = 0;
  std::string difference;  // the newest one
  bool compares_all = false;  // the next audit: after a difference
  std::vector<UnauditedFamily> families;  // as of the newest audit
  friend bool operator==(const AuditFile&, const AuditFile&) = default;
};

// Appends a whole file. Cuts texts to what the file can hold.
void EncodeAuditFile(const AuditFile& audit, std::string* out);
// Corruption: not exactly one whole file.
[[nodiscard]] rocksdb::Status DecodeAuditFile(const rocksdb::Slice& file,
                                              AuditFile* audit);

}  // namespace sstferry
