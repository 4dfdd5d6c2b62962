// The file `sstferry.audit` in a standby's directory: which of its entries were
// compared with the source's, and when. Normative text: format/FORMAT.md,
// "Audit". The file is one of format/sealed_file.h with magic 53 46 41 55 44 49
// 54 31 ("SFAUDIT1").
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
// Maximum payload size in bytes; mostly family names.
inline constexpr uint64_t kMaxAuditPayloadBytes = 64u << 20;

// A family that the audit does not compare.
struct UnauditedFamily {
  std::string name;
  std::string reason;  // such as "it has a compaction filter"
  friend bool operator==(const UnauditedFamily&,
                         const UnauditedFamily&) = default;
};

// State of the audit. A pass compares all families in order of their ids, and
// each family's keys in order, slice by slice. Times are by the standby's
// clock, since 1970; 0: never.
struct AuditFile {
  static constexpr char kName[] = "audit record";

  std::string source_database_id;
  // Start of the current pass; start and end of the last complete pass.
  uint64_t pass_begun_micros = 0;
  uint64_t done_begun_micros = 0;
  uint64_t done_ended_micros = 0;
  // Start of the next slice: the family with this id (if it was dropped, the
  // next higher id), and a key in it; null: the family's first key.
  uint32_t next_family = 0;
  std::optional<std::string> next_key;
  // Start time of the newest audit, and its CPU time.
  uint64_t begun_micros = 0;
  uint64_t cpu_micros = 0;
  // Counters since the standby was made.
  uint64_t slices = 0;
  uint64_t entries = 0;
  uint64_t passes = 0;
  uint64_t differences = 0;
  uint64_t unaudited_cuts = 0;  // cuts that could not be audited
  std::string unaudited_reason;  // reason for the newest unaudited cut
  uint64_t difference_micros = 0;
  std::string difference;  // description of the newest difference
  // The next audit compares everything, because a difference was found.
  bool compares_all = false;
  std::vector<UnauditedFamily> families;  // not compared by the newest audit
  friend bool operator==(const AuditFile&, const AuditFile&) = default;
};

// Appends a complete file. Truncates texts to their maximum lengths.
void EncodeAuditFile(const AuditFile& audit, std::string* out);
// Decodes a file. Corruption: not exactly one complete file.
[[nodiscard]] rocksdb::Status DecodeAuditFile(const rocksdb::Slice& file,
                                              AuditFile* audit);

}  // namespace sstferry
