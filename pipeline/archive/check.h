// Lists the sets of an archive, and checks that everything is there that they
// name, by a list or by reading it.
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
  kExpiring = 1,    // a mark names it; it can still be restored
  kUnfinished = 2,  // it does not count: its push runs, or died
  kDamaged = 3,     // its record cannot be read, or a file is amiss
  kUnsealed = 4,    // it is not sealed, and the archive has a key
  kOtherKey = 5,    // it is sealed with another one
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
  // Bytes that this set was the first to upload.
  uint64_t own_bytes = 0;
  bool is_sealed = false;
  // A prune marked it: it goes at this time or later; 0: none did.
  uint64_t expires_seconds = 0;
  uint64_t host_seconds = 0;  // ArchiveSet::host_seconds
  SetId repairs{};            // ArchiveSet::repairs
  std::string problem;  // of a damaged one
};

// Reads the records of all sets, the oldest first. A damaged one is in the
// list, and no failure. Of whole ones whose objects the last check found amiss it
// says so. *checked_age: how long ago that was; not set: there was none.
[[nodiscard]] rocksdb::Status ListArchive(
    const Archive& archive, std::vector<ListedSet>* sets,
    std::optional<uint64_t>* checked_age = nullptr);

struct CheckOptions {
  // Reads files whole that hold so many of all bytes, each run others: those
  // whose turn it is by the store's date. 0: none; 100: all.
  double read_percent = 0;
  int lanes = 8;
  // Faults that a reader found in objects, by key.
  std::map<std::string, std::string> known;
  std::function<bool()> cancelled;  // polled between files; may be null
  WorkProgress* progress = nullptr;  // may be null
  // Takes over what earlier checks found and this one does not read, and keeps
  // what it finds for the next, and for lists.
  bool keeps_findings = false;
};

struct CheckSummary {
  std::vector<ListedSet> sets;
  uint64_t objects = 0;      // in files/ and parts/
  uint64_t bytes = 0;
  uint64_t orphans = 0;      // of these, that no set names
  uint64_t orphan_bytes = 0;
  uint64_t foreign = 0;      // objects of other names
  uint64_t read_files = 0;
  uint64_t read_bytes = 0;
  // The part of how many that it read, from 1 on; 0 of 0: none.
  uint64_t read_part = 0;
  uint64_t read_parts = 0;
  // All that was asked for was looked at, whatever was found.
  bool is_complete = false;
  uint64_t newest_seconds = 0;  // time of the newest whole set; 0: there is none
  uint64_t now_seconds = 0;     // of the store's clock
  LogCheckSummary log;
  std::string not_kept;  // why the findings are not kept; empty: they are
  // Says what is wrong: a sentence for each object, at most kMaxProblems.
  std::vector<std::string> problems;
};
inline constexpr size_t kMaxProblems = 100;

//   kCorrupt  a set that counts lacks a file, or bytes are wrong: the message
//             names the first file, the sets that use it, and the newest set
//             that is whole; or the log is no chain. *summary has all
//   kRefused  nothing can be restored: there is no set; or the newest one is of
//             a time to come: it hides those that are pushed now
//   others    the store's
[[nodiscard]] rocksdb::Status CheckArchive(const Archive& archive,
                                           const CheckOptions& options,
                                           CheckSummary* summary);

}  // namespace sstferry
