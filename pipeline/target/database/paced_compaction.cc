#include "pipeline/target/database/paced_compaction.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "format/end_state.h"
#include "pipeline/base/key_interval.h"
#include "rocksdb/metadata.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// The most bytes of files that one call compacts. It reads them without a
// pause, and loses its work when it is stopped. With half as much, calls would
// rewrite a third more where chunks and files do not end at the same keys.
constexpr uint64_t kBytesTogether = 256u << 20;
// The same without pauses.
constexpr uint64_t kBytesTogetherUnpaced = 1u << 30;
constexpr std::chrono::milliseconds kCompactionLookInterval{50};

// Files with range deletions that are compacted in one call, and all files that
// overlap them.
struct Span {
  std::string smallest;
  std::string largest;
  std::set<size_t> tables;         // indexes of all of these files
  uint64_t bytes = 0;              // size of all of these files
  std::vector<std::string> names;  // names of the files with range deletions
};

// Sets a flag that cancels a compaction once `stop` is stopped. Has a thread
// that looks every kCompactionLookInterval.
class Canceller {
 public:
  explicit Canceller(StopSignal* stop)
      : thread_([this, stop] {
          while (!done_.WaitFor(kCompactionLookInterval)) {
            if (stop->stopped()) {
              cancelled_ = true;
              return;
            }
          }
        }) {}
  ~Canceller() {
    done_.Stop();
    thread_.join();
  }
  std::atomic<bool>* cancelled() { return &cancelled_; }

 private:
  std::atomic<bool> cancelled_{false};
  StopSignal done_;
  std::thread thread_;
};

Span SpanOf(const std::vector<LiveTable>& tables, const LiveTable& replacing,
            const rocksdb::Comparator* order) {
  Span span;
  span.smallest = replacing.smallest;
  span.largest = replacing.largest;
  span.names = {replacing.name};
  for (size_t i = 0; i < tables.size(); ++i) {
    if (order->Compare(tables[i].smallest, span.largest) <= 0 &&
        order->Compare(tables[i].largest, span.smallest) >= 0) {
      span.tables.insert(i);
      span.bytes += tables[i].bytes;
    }
  }
  return span;
}

// True if two spans should be compacted together: they share files, which two
// calls would rewrite twice, and are together not too large.
bool Belong(const std::vector<LiveTable>& tables, const Span& a, const Span& b,
            uint64_t most_bytes) {
  uint64_t shared = 0;
  for (const size_t i : b.tables) {
    shared += a.tables.count(i) != 0 ? tables[i].bytes : 0;
  }
  return shared != 0 && a.bytes + b.bytes - shared <= most_bytes;
}

// Returns the tables inside `interval` that hold range deletions.
std::vector<LiveTable> Replacing(const std::vector<LiveTable>& tables,
                                 const KeyInterval& interval,
                                 const rocksdb::Comparator* order) {
  std::vector<LiveTable> replacing;
  for (const LiveTable& table : tables) {
    if (table.range_deletions != 0 &&
        HoldsSpan(interval, order, table.smallest, table.largest)) {
      replacing.push_back(table);
    }
  }
  return replacing;
}

std::vector<Span> SpansOf(const std::vector<LiveTable>& tables,
                          const std::vector<LiveTable>& replacing,
                          const rocksdb::Comparator* order,
                          uint64_t most_bytes) {
  std::vector<Span> spans;
  for (const LiveTable& table : replacing) {
    spans.push_back(SpanOf(tables, table, order));
  }
  std::sort(spans.begin(), spans.end(), [order](const Span& a, const Span& b) {
    return order->Compare(a.smallest, b.smallest) < 0;
  });
  std::vector<Span> merged;
  for (Span& span : spans) {
    if (merged.empty() || !Belong(tables, merged.back(), span, most_bytes)) {
      merged.push_back(std::move(span));
      continue;
    }
    Span& last = merged.back();
    for (const size_t i : span.tables) {
      last.bytes += last.tables.insert(i).second ? tables[i].bytes : 0;
    }
    last.names.push_back(span.names.front());
    if (order->Compare(last.largest, span.largest) < 0) {
      last.largest = span.largest;
    }
  }
  return merged;
}

std::set<std::string> LiveNames(rocksdb::DB* db,
                                rocksdb::ColumnFamilyHandle* family) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family, &metadata);
  std::set<std::string> names;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      names.insert(file.name.substr(file.name.rfind('/') + 1));
    }
  }
  return names;
}

// Compacts the spans of one family after another. Threads: one.
class Compactor {
 public:
  Compactor(rocksdb::DB* db, uint64_t bytes_per_sec, StopSignal* stop)
      : db_(db),
        bytes_per_sec_(bytes_per_sec),
        stop_(stop),
        canceller_(stop) {}

  Status Run(const FamilyHandle& family, const KeyInterval& interval);

 private:
  using How = rocksdb::BottommostLevelCompaction;

  Status CompactAll(rocksdb::ColumnFamilyHandle* family,
                    const std::vector<LiveTable>& tables,
                    const std::vector<LiveTable>& replacing, How how);
  Status Compact(rocksdb::ColumnFamilyHandle* family, const Span& span,
                 How how);
  void Pause(uint64_t bytes, std::chrono::steady_clock::time_point start);

  rocksdb::DB* const db_;
  const uint64_t bytes_per_sec_;
  StopSignal* const stop_;
  Canceller canceller_;
};

// First merges files with those below them and skips the last level. The files
// that are left have nothing below them; a second pass rewrites them in place.
// One pass that may rewrite the last level would do so in every call.
Status Compactor::Run(const FamilyHandle& family, const KeyInterval& interval) {
  std::vector<LiveTable> tables;
  Status status = ListLiveTables(db_, family.handle, &tables);
  if (!status.ok()) {
    return status;
  }
  std::vector<LiveTable> replacing =
      Replacing(tables, interval, family.handle->GetComparator());
  status = CompactAll(family.handle, tables, replacing, How::kSkip);
  const std::set<std::string> live = LiveNames(db_, family.handle);
  std::erase_if(replacing, [&live](const LiveTable& table) {
    return live.count(table.name) == 0;
  });
  if (status.ok() && !replacing.empty()) {
    status = ListLiveTables(db_, family.handle, &tables);
  }
  return status.ok() ? CompactAll(family.handle, tables, replacing,
                                  How::kForceOptimized)
                     : status;
}

Status Compactor::CompactAll(rocksdb::ColumnFamilyHandle* family,
                             const std::vector<LiveTable>& tables,
                             const std::vector<LiveTable>& replacing,
                             How how) {
  Status status;
  for (const Span& span :
       SpansOf(tables, replacing, family->GetComparator(),
               bytes_per_sec_ == 0 ? kBytesTogetherUnpaced : kBytesTogether)) {
    if (!status.ok() || stop_->stopped()) {
      break;
    }
    // An earlier call may have compacted the span: RocksDB includes neighbours
    // where that costs nothing.
    const std::set<std::string> live = LiveNames(db_, family);
    const bool any = std::any_of(
        span.names.begin(), span.names.end(),
        [&live](const std::string& name) { return live.count(name) != 0; });
    if (any) {
      status = Compact(family, span, how);
    }
  }
  return status;
}

Status Compactor::Compact(rocksdb::ColumnFamilyHandle* family,
                          const Span& span, How how) {
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.bottommost_level_compaction = how;
  options.canceled = canceller_.cancelled();
  if (bytes_per_sec_ != 0) {
    options.max_subcompactions = 1;
  }
  const rocksdb::Slice begin(span.smallest);
  const rocksdb::Slice end(span.largest);
  const auto start = std::chrono::steady_clock::now();
  const Status status = db_->CompactRange(options, family, &begin, &end);
  if (status.ok()) {
    Pause(span.bytes, start);
  }
  return status;
}

void Compactor::Pause(uint64_t bytes,
                        std::chrono::steady_clock::time_point start) {
  if (bytes_per_sec_ != 0) {
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - start);
    const std::chrono::milliseconds due(
        static_cast<int64_t>(bytes * 1000 / bytes_per_sec_));
    if (due > spent) {
      stop_->WaitFor(due - spent);  // the caller looks at stop_ again
    }
  }
}

}  // namespace

Status CompactReplaced(rocksdb::DB* db,
                       const std::vector<FamilyHandle>& families,
                       const KeyInterval& interval, uint64_t bytes_per_sec,
                       StopSignal* stop) {
  Compactor compactor(db, bytes_per_sec, stop);
  for (const FamilyHandle& family : families) {
    if (db->GetOptions(family.handle).compaction_style ==
        rocksdb::kCompactionStyleFIFO) {
      continue;
    }
    const Status status = compactor.Run(family, interval);
    if (stop->stopped()) {
      return MakeStatus(EndState::kCancelled, "stopped on request");
    }
    if (!status.ok()) {
      return WithContext(
          status, EndStateOf(status),
          "compaction of column family '" + family.name + "'");
    }
  }
  return Status::OK();
}

uint64_t CompactionDebt(rocksdb::DB* db,
                        const std::vector<FamilyHandle>& families) {
  uint64_t sum = 0;
  for (const FamilyHandle& family : families) {
    uint64_t bytes = 0;
    if (db->GetIntProperty(
            family.handle,
            rocksdb::DB::Properties::kEstimatePendingCompactionBytes,
            &bytes)) {
      sum += bytes;
    }
  }
  return sum;
}

}  // namespace sstferry
