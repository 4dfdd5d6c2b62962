#include "pipeline/target/database/delta_compaction.h"

#include <algorithm>
#include <string>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Of the bytes of a file in the last level.
constexpr double kMostAbove = 0.15;
// Of the bytes of a family, in one night.
constexpr double kMostRewritten = 0.08;
// Levels above the last one that stay as they are.
constexpr size_t kMostLevels = 2;
// Of a file above the last level: about as much as lies above one file there, so
// that few files are rewritten together.
constexpr uint64_t kLeastFileBytes = 256u << 10;
// Of one merge of the levels above the last one.
constexpr uint32_t kMergeThreads = 4;
// Files in level 0 of a family that has no other level above its last one.
constexpr size_t kMostInLevel0 = 4;

// The files of one family, by what a refresh does with them.
struct Levels {
  int last = 0;                   // the deepest level with files
  int above = 0;                  // the deepest one above it; 0: none but 0
  size_t used_above = 0;          // levels above the last one with files
  std::vector<LiveTable> upper;   // in levels above the last one
  std::vector<LiveTable> bottom;  // in the last level
  uint64_t upper_bytes = 0;
  uint64_t bottom_bytes = 0;
};

Levels LevelsOf(const std::vector<LiveTable>& tables) {
  Levels levels;
  for (const LiveTable& table : tables) {
    levels.last = std::max(levels.last, table.level);
  }
  std::vector<bool> used(static_cast<size_t>(levels.last) + 1, false);
  for (const LiveTable& table : tables) {
    if (table.level == levels.last) {
      levels.bottom.push_back(table);
      levels.bottom_bytes += table.bytes;
    } else {
      levels.upper.push_back(table);
      levels.upper_bytes += table.bytes;
      levels.above = std::max(levels.above, table.level);
      used[static_cast<size_t>(table.level)] = true;
    }
  }
  levels.used_above =
      static_cast<size_t>(std::count(used.begin(), used.end(), true));
  return levels;
}

bool Meet(const LiveTable& a, const LiveTable& b,
          const rocksdb::Comparator* order) {
  return order->Compare(a.smallest, b.largest) <= 0 &&
         order->Compare(b.smallest, a.largest) <= 0;
}

Status MergeUpper(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                  const Levels& levels) {
  rocksdb::CompactionOptions options;
  options.compression = rocksdb::kDisableCompressionOption;  // the family's
  options.max_subcompactions = kMergeThreads;
  options.output_file_size_limit = std::max<uint64_t>(
      kLeastFileBytes,
      levels.upper_bytes / std::max<size_t>(1, levels.bottom.size()));
  std::vector<std::string> names;
  for (const LiveTable& table : levels.upper) {
    names.push_back(table.name);
  }
  const Status status =
      db->CompactFiles(options, family, names, levels.above);
  // Another compaction has some of them: then RocksDB is at it.
  return status.IsAborted() || status.IsInvalidArgument() ? Status::OK()
                                                          : status;
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

// A file of the last level, what lies above it as a share of its bytes, and the
// bytes of the last level that are rewritten with it.
struct Candidate {
  const LiveTable* table = nullptr;
  double share = 0;
  uint64_t rewritten_bytes = 0;
};

// Returns the files of the last level that have too much above them, the
// fullest first.
std::vector<Candidate> Full(const Levels& levels,
                            const rocksdb::Comparator* order) {
  // By file above: bytes of the last level under it.
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
        found.share += static_cast<double>(levels.upper[i].bytes) /
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
  std::vector<LiveTable> tables;
  Status status = ListLiveTables(db, family.handle, &tables);
  Levels levels = LevelsOf(tables);
  if (!status.ok() || levels.upper.empty() || levels.last == 0) {
    return status;
  }
  if (levels.above == 0) {
    // The last level is all that this family has: it is small.
    const bool many = levels.upper.size() >= kMostInLevel0;
    return many ? db->CompactRange({}, family.handle, nullptr, nullptr)
                : status;
  }
  if (levels.used_above > kMostLevels) {
    status = MergeUpper(db, family.handle, levels);
    if (status.ok()) {
      tables.clear();
      status = ListLiveTables(db, family.handle, &tables);
      levels = LevelsOf(tables);
    }
  }
  const auto most = static_cast<uint64_t>(
      kMostRewritten *
      static_cast<double>(levels.bottom_bytes + levels.upper_bytes));
  uint64_t rewritten = 0;
  const rocksdb::Comparator* const order = family.handle->GetComparator();
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
