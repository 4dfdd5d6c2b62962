// The plan of a transfer: what it moves, and how. Constant once it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/messages.h"
#include "format/release.h"
#include "pipeline/parts/changed_keys.h"
#include "pipeline/parts/cover_plan.h"
#include "pipeline/parts/key_lookup.h"
#include "pipeline/parts/planner.h"
#include "rocksdb/options.h"

namespace sstferry {

// Files of one family that are merged without RocksDB: bounds the memory of the
// list, some hundred bytes a file.
inline constexpr size_t kMaxMergedFiles = 20000;

struct TransferFamily {
  Family wire;  // as sent to the target
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  rocksdb::Options chunk_options;
  rocksdb::Options delta_options;  // of chunks that lie above others
  uint64_t readahead_bytes = 0;
  FamilyPlan plan;  // its files only until the family is cut
  // All files with keys in the interval, if they hold all entries; else empty.
  std::vector<TableFile> merged_files;
  std::vector<PlanSegment> segments;  // until the family is cut
  // Where ranges are looked up: all keys that may have changed.
  std::shared_ptr<const ChangedKeys> changed;
  LookupFiles lookup_files;
  uint64_t changed_entry_bytes = 0;  // mean, of the files with these keys

  // Null: RocksDB has to iterate.
  const std::vector<TableFile>* files_to_merge() const {
    return merged_files.empty() ? nullptr : &merged_files;
  }
};

struct TransferPlan {
  std::vector<NamedValue> database_options;
  RocksDbRelease application;  // that will open the replica
  RocksDbRelease written_by;   // the source's OPTIONS
  Needs needs;          // of what is sent
  std::vector<TransferFamily> families;
  std::vector<Range> ranges;  // by id
  // Only a clone has these: its files, and the unit of each range by id.
  std::optional<ClonePlan> clone;
  std::vector<CloneUnit> units;
  std::vector<PlanItem> items;     // only for purpose kPlan
  std::vector<Cover> covers;       // interval records for the target to store
  std::string source_record;       // for the target to keep; may be empty
  std::vector<std::string> notes;  // of the snapshot, then of the plan

  // Digest of the plan: two plans of one snapshot with the same digest are
  // equal.
  Digest128 Digest() const;
};

// Sets the release of the application that the request names; not known if it
// names none.
//   kRefused  it names something else
[[nodiscard]] rocksdb::Status ReleaseAsked(const OpenRequest& request,
                                           RocksDbRelease* release);

}  // namespace sstferry
