// Lists the sets of an archive. Checks the objects that the sets name: looks
// for them in a listing, or reads them.
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
  kExpiring = 1,    // a prune will delete it, but it can still be restored
  kUnfinished = 2,  // not committed: its push is running or has crashed
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
  // Earliest time at which a prune may delete the set; 0: no prune has marked
  // it.
  uint64_t expires_seconds = 0;
  uint64_t host_seconds = 0;  // ArchiveSet::host_seconds
  SetId repairs{};            // ArchiveSet::repairs
  bool is_readable = true;    // its record can be read
};

// Reads the records of all sets, the oldest first. Lists a damaged set without
// a failure. A set is damaged, too, if the last check found wrong objects in
// it, or a repair replaced it. *checked_age receives the seconds since the last
// check. It is unset if no check has stored its findings, or their age is
// unknown (KnownAge()).
[[nodiscard]] rocksdb::Status ListArchive(
    const Archive& archive, std::vector<ListedSet>* sets,
    std::optional<uint64_t>* checked_age = nullptr);

// Returns the part, from 1 to `parts`, that a check reads on a day (days since
// 1970). In each period of `parts` days, each day has a different part, and the
// first day has a pseudo-random part. Otherwise a check that runs every second
// day or once a week could read the same parts for ever. REQUIRES: parts > 0.
uint64_t PartOfDay(uint64_t day, uint64_t parts);

struct CheckOptions {
  // Percentage of all bytes that the check reads, in whole files; 0: none; 100:
  // all. Each day, by the store's clock, the check selects different files.
  double read_percent = 0;
  int lanes = 8;
  // Faults that another reader found before the check: object key -> fault.
  std::map<std::string, std::string> known;
  std::function<bool()> cancelled;  // polled between files; may be null
  WorkProgress* progress = nullptr;  // may be null
  // Stores all findings. Later checks, list, push, prune and remove use them.
  // The check reports stored findings about objects that it does not read,
  // whether or not this option is set.
  bool keeps_findings = false;
};

struct CheckSummary : ArchiveCheckCounts {
  std::vector<ListedSet> sets;
  // The check examined all requested objects, even if it found problems.
  bool is_complete = false;
  uint64_t newest_seconds = 0;  // time of the newest whole set; 0: none
  uint64_t now_seconds = 0;     // by the store's clock
  LogCheckSummary log;
  std::string not_kept;  // reason why the findings were not stored; empty: none
  // One sentence for each set without a record, and for each damaged set that a
  // repair replaced by a whole set.
  std::vector<std::string> warnings;
};
// Maximum number of entries in CheckSummary::problems.
inline constexpr size_t kMaxProblems = 100;

// Checks an archive. Does not fail for a damaged set that a repaired set
// (repair.h) replaces, but warns of it.
//   kCorrupt  a committed set has a missing or damaged file: the message names
//             the first such file, the sets that use it, and the newest whole
//             set. Or the segments of the log do not form a chain. In both
//             cases *summary is complete. Or the findings of earlier checks
//             cannot be read, and this check does not read all objects
//   kRefused  nothing can be restored, because there is no set. Or the newest
//             set has a date in the future, and hides the sets that are pushed
//             now
//   kDenied   the check reads only a part of the objects, but this account may
//             not store the findings
//   others    errors of the store
[[nodiscard]] rocksdb::Status CheckArchive(const Archive& archive,
                                           const CheckOptions& options,
                                           CheckSummary* summary);

}  // namespace sstferry
