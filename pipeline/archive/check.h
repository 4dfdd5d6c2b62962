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

namespace sstferry {

enum class SetState : uint8_t {
  kWhole = 0,
  kExpiring = 1,    // a mark names it, but it can still be restored
  kUnfinished = 2,  // not done: its push is running or died
  kDamaged = 3,     // its record cannot be read, or a file is missing or wrong
  kUnsealed = 4,    // not sealed, although the archive has a key
  kOtherKey = 5,    // sealed with another key
};
const char* SetStateName(SetState state);  // "whole", "other key", ...
inline bool IsRestorable(SetState state) {
  return state == SetState::kWhole || state == SetState::kExpiring;
}

struct ListedSet {
  SetName name;
  SetState state = SetState::kWhole;
  std::string label;
  std::string host;
  std::string database_id;
  uint64_t sequence = 0;
  uint64_t families = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
  // Bytes that were first uploaded by this set.
  uint64_t own_bytes = 0;
  bool is_sealed = false;
  // Earliest time of its deletion, from the mark of a prune; 0: not marked.
  uint64_t expires_seconds = 0;
  uint64_t host_seconds = 0;  // ArchiveSet::host_seconds
  SetId repairs{};            // ArchiveSet::repairs
  std::string problem;  // of a damaged set
};

// Reads the records of all sets, the oldest first. A damaged set is listed and
// is no failure. A set with objects that the last check found damaged is listed
// as damaged. *checked_age: seconds since that check; not set: no check was
// stored.
[[nodiscard]] rocksdb::Status ListArchive(
    const Archive& archive, std::vector<ListedSet>* sets,
    std::optional<uint64_t>* checked_age = nullptr);

struct CheckOptions {
  // Reads whole files with about this percentage of all bytes, different ones
  // each day by the store's clock. 0: none; 100: all.
  double read_percent = 0;
  int lanes = 8;
  // Object key -> fault that a reader found in it.
  std::map<std::string, std::string> known;
  std::function<bool()> cancelled;  // polled between files; may be null
  WorkProgress* progress = nullptr;  // may be null
  // Takes over findings of earlier checks about objects that this one does not
  // read, and stores its findings for the next check and for lists.
  bool keeps_findings = false;
};

struct CheckSummary {
  std::vector<ListedSet> sets;
  uint64_t objects = 0;      // in files/ and parts/
  uint64_t bytes = 0;
  uint64_t orphans = 0;      // of these, named by no set
  uint64_t orphan_bytes = 0;
  uint64_t foreign = 0;      // objects with other names
  uint64_t read_files = 0;
  uint64_t read_bytes = 0;
  // The number of the part that was read, from 1 on, and of all parts; 0: none.
  uint64_t read_part = 0;
  uint64_t read_parts = 0;
  // Everything requested was examined, whatever was found.
  bool is_complete = false;
  uint64_t newest_seconds = 0;  // of the newest whole set; 0: there is none
  uint64_t now_seconds = 0;     // by the store's clock
  LogCheckSummary log;
  std::string not_kept;  // why the findings were not stored; empty: they were
  // The problems found: a sentence for each object, at most kMaxProblems.
  std::vector<std::string> problems;
};
inline constexpr size_t kMaxProblems = 100;

// Checks an archive.
//   kCorrupt  a set that counts has a missing or damaged file: the message
//             names the first such file, the sets that use it, and the newest
//             whole set; or the log is no chain. *summary has everything
//   kRefused  nothing can be restored: there is no set, or the newest one is
//             dated in the future and hides those that are pushed now
//   others    errors of the store
[[nodiscard]] rocksdb::Status CheckArchive(const Archive& archive,
                                           const CheckOptions& options,
                                           CheckSummary* summary);

}  // namespace sstferry
