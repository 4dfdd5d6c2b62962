// Lists the sets of an archive, and checks that all objects that they name are
// there, by a listing or by reading them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/archive/archive.h"
#include "pipeline/archive/log_check.h"
#include "pipeline/archive/set_source.h"
#include "rocksdb/status.h"
#include "sstferry/archive.h"

namespace sstferry {

enum class SetState : uint8_t {
  kWhole = 0,
  kExpiring = 1,    // a mark names it, but it can still be restored
  kUnfinished = 2,  // not done: its push is running or has crashed
  kDamaged = 3,     // its record cannot be read, or a file is missing or wrong
  kUnsealed = 4,    // not sealed, although the archive has a key
  kOtherKey = 5,    // sealed with another key
};
const char* SetStateName(SetState state);  // "whole", "other key", ...
inline bool IsRestorable(SetState state) {
  return state == SetState::kWhole || state == SetState::kExpiring;
}

struct ListedSet : SetFacts {
  SetName name;
  SetState state = SetState::kWhole;
  // Earliest time at which a prune may delete the set; 0: no mark names it.
  uint64_t expires_seconds = 0;
  uint64_t host_seconds = 0;  // ArchiveSet::host_seconds
  SetId repairs{};            // ArchiveSet::repairs
  bool is_readable = true;    // its record can be read
};

// Reads the records of all sets, the oldest first. A damaged set is listed and
// causes no failure. A set with objects that the last check found damaged is
// listed as damaged, and so is one that a repair replaced. *checked_age:
// seconds since that check; not set: no check result is stored, or its age is
// unknown (KnownAge()).
[[nodiscard]] rocksdb::Status ListArchive(
    const Archive& archive, std::vector<ListedSet>* sets,
    std::optional<uint64_t>* checked_age = nullptr);

struct CheckOptions {
  // Percentage of all bytes to read, in whole files. A different selection of
  // files is read each day of the store's clock. 0: none; 100: all.
  double read_percent = 0;
  int lanes = 8;
  // Faults that a reader already found: object key -> fault.
  std::map<std::string, std::string> known;
  std::function<bool()> cancelled;  // polled between files; may be null
  WorkProgress* progress = nullptr;  // may be null
  // Stores all findings, for later checks and for list, push, prune and remove.
  // (Earlier findings about objects that this check does not read are reported
  // in any case.)
  bool keeps_findings = false;
};

struct CheckSummary : ArchiveCheckCounts {
  std::vector<ListedSet> sets;
  // All requested objects were examined, even if problems were found.
  bool is_complete = false;
  uint64_t newest_seconds = 0;  // time of the newest whole set; 0: none
  uint64_t now_seconds = 0;     // by the store's clock
  LogCheckSummary log;
  std::string not_kept;  // why the findings were not stored, or empty
  // A sentence for each set without a record, and for each damaged set that a
  // repaired set replaces.
  std::vector<std::string> warnings;
};
inline constexpr size_t kMaxProblems = 100;  // of a CheckSummary

// Checks an archive.
//   kCorrupt  a committed set has a missing or damaged file: the message names
//             the first such file, the sets that use it, and the newest whole
//             set; or the log's segments do not form a chain. *summary is
//             complete. A damaged set that a repaired set (repair.h) replaces
//             is only warned about. Or the findings of earlier checks cannot be
//             read, and this check does not read everything
//   kRefused  nothing can be restored: there is no set, or the newest set is
//             dated in the future and hides sets that are pushed now
//   kDenied   this account may not put the findings, although the check reads
//             only a part of the objects
//   others    errors of the store
[[nodiscard]] rocksdb::Status CheckArchive(const Archive& archive,
                                           const CheckOptions& options,
                                           CheckSummary* summary);

}  // namespace sstferry
