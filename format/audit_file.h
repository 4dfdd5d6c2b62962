// The file `sstferry.audit` in a standby's directory. It records which entries
// of the standby were compared with the source's entries, and when. The file
// has the format of format/sealed_file.h with magic 53 46 41 55 44 49 54 31
// ("SFAUDIT1"). Normative text: format/FORMAT.md, "Standby".
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
// Maximum size of the payload in bytes. Most of it is for names of families.
inline constexpr uint64_t kMaxAuditPayloadBytes = 64u << 20;

// A family that the audit does not compare.
struct UnauditedFamily {
  std::string name;
  std::string reason;  // such as "it has a compaction filter"
  friend bool operator==(const UnauditedFamily&,
                         const UnauditedFamily&) = default;
};

// State of the audit. One pass compares all families in the order of their ids.
// Within a family, it compares the keys in order, one slice (a range of keys)
// at a time. Times are in microseconds since 1970, by the standby's clock; 0:
// never.
struct AuditFile {
  static constexpr char kName[] = "audit record";

  std::string source_database_id;
  // Start of the current pass, and start and end of the last complete pass.
  uint64_t pass_begun_micros = 0;
  uint64_t done_begun_micros = 0;
  uint64_t done_ended_micros = 0;
  // Position at which the next slice begins: in the family with this id, at
  // this key; null: at the family's first key. If the family was dropped, the
  // slice begins in the family with the next higher id.
  uint32_t next_family = 0;
  std::optional<std::string> next_key;
  // Time at which the newest audit began, and the CPU time that it used.
  uint64_t begun_micros = 0;
  uint64_t cpu_micros = 0;
  // Counters since the standby was created.
  uint64_t slices = 0;
  uint64_t entries = 0;
  uint64_t passes = 0;
  uint64_t differences = 0;
  uint64_t unaudited_cuts = 0;  // cuts that no audit could compare
  std::string unaudited_reason;  // reason for the newest unaudited cut
  uint64_t difference_micros = 0;
  std::string difference;  // description of the newest difference
  // True after a difference was found. Then the next audit compares everything.
  bool compares_all = false;
  std::vector<UnauditedFamily> families;  // not compared by the newest audit
  friend bool operator==(const AuditFile&, const AuditFile&) = default;
};

// Appends a complete file. Truncates texts to their maximum lengths.
void EncodeAuditFile(const AuditFile& audit, std::string* out);
// Decodes a file. Returns Corruption unless `file` is exactly one complete
// file.
[[nodiscard]] rocksdb::Status DecodeAuditFile(const rocksdb::Slice& file,
                                              AuditFile* audit);

}  // namespace sstferry
