#include "pipeline/refresh/delta_compaction.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// A file of the last level is compacted if the files above it have more bytes
// than this share of the file's bytes.
constexpr double kMostAbove = 0.15;
// Maximum share of a family's bytes that one call rewrites in the last level.
// In a small family, kMostRewrittenOfSmall bytes are allowed, because it has
// few files.
constexpr double kMostRewritten = 0.08;
constexpr uint64_t kMostRewrittenOfSmall = 4u << 20;
// Maximum share of a family's bytes that a merge of two sorted runs above the
// last level may rewrite. It is larger than kMostRewritten, because a Get
// searches each run. For example, after ten nightly refreshes with 1.5 %
// changes each, the median Get takes 1.07 times as long as in a fresh copy.
// With 0.08, it takes 1.09 times as long.
constexpr double kMostMerged = 0.12;
// A level counts as the last level if it and all levels below it together have
// at least this share of the family's bytes (see LastLevel()).
constexpr double kLeastOfLast = 0.25;
// Maximum number of sorted runs above the last level that stay unmerged. Each
// level below level 0 is a run; level 0 may have several runs.
constexpr size_t kMostRuns = 2;
// Minimum size of a file that a merge above the last level writes. Usually the
// files are larger: their size is the merged bytes divided by the number of
// files in the last level. Each file then overlaps few files of the last level.
constexpr uint64_t kLeastFileBytes = 256u << 10;
// Number of threads for one merge above the last level.
constexpr uint32_t kMergeThreads = 4;
// Number of files in level 0 at which a family is compacted completely if its
// last level is level 1.
constexpr size_t kMostInLevel0 = 4;

// The files of one family: the files in the last level, and the files above it.
struct Levels {
  int last = 0;                   // LastLevel(); lower levels stay unchanged
  int above = 0;                  // deepest used level above `last`, or 0
  size_t runs_above = 0;          // sorted runs above the last level
  std::vector<LiveTable> upper;   // files above the last level
  std::vector<LiveTable> bottom;  // files of the last level
  bool in_level0 = false;         // at least one of `upper` is in level 0
  uint64_t upper_bytes = 0;
  uint64_t bottom_bytes = 0;

  // Returns the number of bytes that may be rewritten: `share` of the family's
  // bytes, but at least kMostRewrittenOfSmall.
  uint64_t Most(double share) const {
    return std::max(kMostRewrittenOfSmall,
                    static_cast<uint64_t>(
                        share *
                        static_cast<double>(bottom_bytes + upper_bytes)));
  }
};

// Returns the number of sorted runs in level 0. The files of one refresh are a
// single run, because their keys do not overlap.
size_t RunsIn(std::vector<LiveTable> level0, const rocksdb::Comparator* order) {
  std::sort(level0.begin(), level0.end(),
            [order](const LiveTable& a, const LiveTable& b) {
              return order->Compare(a.smallest, b.smallest) < 0;
            });
  std::vector<std::string> ends;  // last key of each run
  for (const LiveTable& table : level0) {
    const auto run = std::find_if(
        ends.begin(), ends.end(), [&](const std::string& end) {
          return order->Compare(end, table.smallest) < 0;
        });
    if (run == ends.end()) {
      ends.push_back(table.largest);
    } else {
      *run = table.largest;
    }
  }
  return ends.size();
}

// Returns the level that counts as the last level (see kLeastOfLast). Usually
// it is the deepest used level. It may be a higher level: for example, a clone
// has its data in level 2, and RocksDB has ingested some new keys into level 6.
int LastLevel(const std::vector<LiveTable>& tables) {
  std::map<int, uint64_t, std::greater<>> bytes;
  uint64_t all = 0;
  for (const LiveTable& table : tables) {
    bytes[table.level] += table.bytes;
    all += table.bytes;
  }
  uint64_t from_below = 0;
  for (const auto& [level, in_level] : bytes) {
    from_below += in_level;
    if (level > 0 && static_cast<double>(from_below) >=
                         kLeastOfLast * static_cast<double>(all)) {
      return level;
    }
  }
  return bytes.empty() ? 0 : bytes.begin()->first;
}

Levels LevelsOf(const std::vector<LiveTable>& tables,
                const rocksdb::Comparator* order) {
  Levels levels;
  levels.last = LastLevel(tables);
  std::vector<LiveTable> level0;
  std::vector<bool> used(static_cast<size_t>(levels.last) + 1, false);
  for (const LiveTable& table : tables) {
    if (table.level == levels.last) {
      levels.bottom.push_back(table);
      levels.bottom_bytes += table.bytes;
    } else if (table.level < levels.last) {
      levels.upper.push_back(table);
      levels.upper_bytes += table.bytes;
      levels.above = std::max(levels.above, table.level);
      if (table.level == 0) {
        level0.push_back(table);
      }
      used[static_cast<size_t>(table.level)] = table.level != 0;
    }
  }
  levels.in_level0 = !level0.empty();
  levels.runs_above =
      RunsIn(std::move(level0), order) +
      static_cast<size_t>(std::count(used.begin(), used.end(), true));
  return levels;
}

bool Meet(const LiveTable& a, const LiveTable& b,
          const rocksdb::Comparator* order) {
  return order->Compare(a.smallest, b.largest) <= 0 &&
         order->Compare(b.smallest, a.largest) <= 0;
}

// Merges the files of all levels above level `into` into this level. RocksDB
// also rewrites the files of level `into` that overlap them. These are few if
// the keys of a delta are close together.
Status Merge(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
             const Levels& levels, int into) {
  rocksdb::CompactionOptions options;
  // This value selects the family's own compression.
  options.compression = rocksdb::kDisableCompressionOption;
  options.max_subcompactions = kMergeThreads;
  std::vector<std::string> names;
  uint64_t bytes = 0;
  for (const LiveTable& table : levels.upper) {
    if (table.level < into) {
      names.push_back(table.name);
    }
    bytes += table.level <= into ? table.bytes : 0;
  }
  options.output_file_size_limit = std::max<uint64_t>(
      kLeastFileBytes, bytes / std::max<size_t>(1, levels.bottom.size()));
  const Status status = db->CompactFiles(options, family, names, into);
  // Ignore these errors: another compaction already uses some of the files.
  return status.IsAborted() || status.IsInvalidArgument() ? Status::OK()
                                                          : status;
}

// Returns the number of bytes that Merge() into the deepest used level above
// the last level would rewrite.
uint64_t BytesOfMerge(const Levels& levels, const rocksdb::Comparator* order) {
  std::optional<LiveTable> span;
  uint64_t bytes = 0;
  for (const LiveTable& table : levels.upper) {
    if (table.level == levels.above && levels.above != 0) {
      continue;
    }
    bytes += table.bytes;
    if (!span) {
      span = table;
    }
    if (order->Compare(table.smallest, span->smallest) < 0) {
      span->smallest = table.smallest;
    }
    if (order->Compare(table.largest, span->largest) > 0) {
      span->largest = table.largest;
    }
  }
  for (const LiveTable& table : levels.upper) {
    if (span && table.level == levels.above && levels.above != 0 &&
        Meet(table, *span, order)) {
      bytes += table.bytes;
    }
  }
  return bytes;
}

// Merges sorted runs above the last level (the first step of CompactDeltas()).
// RocksDB ingests deltas into level 0 while no level between level 0 and the
// last level is used (level_compaction_dynamic_level_bytes). A Get checks each
// file of level 0. So if another run exists, this function moves the deltas out
// of level 0.
Status MergeUpper(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                  const Levels& levels) {
  const bool too_many = levels.runs_above > kMostRuns;
  const bool cheap =
      BytesOfMerge(levels, family->GetComparator()) <= levels.Most(kMostMerged);
  if (too_many || (levels.runs_above > 1 && cheap)) {
    // Merge into the deepest used level above the last level. If all files are
    // in level 0, merge into the level just above the last level.
    const int into = levels.above != 0 ? levels.above : levels.last - 1;
    return Merge(db, family, levels, into);
  }
  if (levels.in_level0 && levels.above > 1) {
    return Merge(db, family, levels, levels.above - 1);
  }
  return Status::OK();
}

Status CompactSpan(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                   const LiveTable& span) {
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kSkip;
  const rocksdb::Slice begin(span.smallest);
  const rocksdb::Slice end(span.largest);
  return db->CompactRange(options, family, &begin, &end);
}

// A file of the last level that may be compacted. `share` is the bytes above
// the file divided by the file's bytes. `rewritten_bytes` is the number of
// bytes in the last level that the compaction rewrites.
struct Candidate {
  const LiveTable* table = nullptr;
  double share = 0;
  uint64_t rewritten_bytes = 0;
};

// Returns the files of the last level that have too many bytes above them. The
// file with the largest share comes first.
std::vector<Candidate> Full(const Levels& levels,
                            const rocksdb::Comparator* order) {
  // For each upper file, the bytes of all last-level files that it overlaps.
  std::vector<uint64_t> under(levels.upper.size(), 0);
  for (size_t i = 0; i < levels.upper.size(); ++i) {
    for (const LiveTable& bottom : levels.bottom) {
      under[i] += Meet(bottom, levels.upper[i], order) ? bottom.bytes : 0;
    }
  }
  std::vector<Candidate> full;
  for (const LiveTable& bottom : levels.bottom) {
    Candidate found;
    found.table = &bottom;
    for (size_t i = 0; i < levels.upper.size(); ++i) {
      if (Meet(bottom, levels.upper[i], order)) {
        // A file with a range deletion counts as if it had the size of the
        // files under it. The file itself is small, but the entries that it
        // deletes still take space in the last level.
        const bool deletes = levels.upper[i].range_deletions != 0;
        found.share +=
            static_cast<double>(deletes ? under[i] : levels.upper[i].bytes) /
            static_cast<double>(under[i]);
        found.rewritten_bytes += under[i];
      }
    }
    if (found.share > kMostAbove) {
      full.push_back(found);
    }
  }
  std::sort(full.begin(), full.end(),
            [](const Candidate& a, const Candidate& b) {
              return a.share > b.share;
            });
  return full;
}

Status CompactFamily(rocksdb::DB* db, const FamilyHandle& family,
                     StopSignal* stop) {
  const rocksdb::Comparator* const order = family.handle->GetComparator();
  std::vector<LiveTable> tables;
  Status status = ListLiveTables(db, family.handle, &tables);
  Levels levels = LevelsOf(tables, order);
  if (!status.ok() || levels.upper.empty() || levels.last == 0) {
    return status;
  }
  if (levels.last == 1) {
    // Compact a small family completely if level 0 has many files. All files
    // above the last level are in level 0.
    const bool many = levels.upper.size() >= kMostInLevel0;
    return many ? db->CompactRange({}, family.handle, nullptr, nullptr)
                : status;
  }
  status = MergeUpper(db, family.handle, levels);
  if (status.ok()) {
    tables.clear();
    status = ListLiveTables(db, family.handle, &tables);
    levels = LevelsOf(tables, order);
  }
  const uint64_t most = levels.Most(kMostRewritten);
  uint64_t rewritten = 0;
  for (const Candidate& full : Full(levels, order)) {
    if (!status.ok() || stop->stopped() ||
        rewritten + full.rewritten_bytes > most) {
      break;
    }
    status = CompactSpan(db, family.handle, *full.table);
    rewritten += full.rewritten_bytes;
  }
  return status;
}

}  // namespace

Status CompactDeltas(rocksdb::DB* db,
                     const std::vector<FamilyHandle>& families,
                     StopSignal* stop) {
  for (const FamilyHandle& family : families) {
    if (stop->stopped()) {
      return MakeStatus(EndState::kCancelled, "stopped on request");
    }
    if (db->GetOptions(family.handle).compaction_style !=
        rocksdb::kCompactionStyleLevel) {
      continue;
    }
    const Status status = CompactFamily(db, family, stop);
    if (!status.ok()) {
      return WithContext(
          status, EndStateOf(status),
          "compaction of column family '" + family.name + "'");
    }
  }
  return Status::OK();
}

}  // namespace sstferry
