#include "pipeline/target/paced_compaction.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "format/end_state.h"
#include "pipeline/key_interval.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Of files of one call: what is lost when it is stopped, and done before the
// next pause.
constexpr uint64_t kBytesTogether = 256u << 20;
constexpr std::chrono::milliseconds kLookInterval{50};

struct Span {
  std::string smallest;
  std::string largest;
  uint64_t bytes = 0;  // read, and written at most
};

// Lets a compaction go on until `stop`.
class Canceller {
 public:
  explicit Canceller(StopSignal* stop)
      : thread_([this, stop] {
          while (!done_.WaitFor(kLookInterval)) {
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

// Neighbouring spans in one call, as long as they stay small.
std::vector<Span> SpansOf(const std::vector<LiveTable>& tables,
                          const KeyInterval& interval,
                          const rocksdb::Comparator* order) {
  std::vector<Span> spans;
  for (const LiveTable& table : tables) {
    if (table.range_deletions != 0 &&
        HoldsSpan(interval, order, table.smallest, table.largest)) {
      spans.push_back({table.smallest, table.largest, 0});
    }
  }
  std::sort(spans.begin(), spans.end(), [order](const Span& a, const Span& b) {
    return order->Compare(a.smallest, b.smallest) < 0;
  });
  for (Span& span : spans) {
    for (const LiveTable& table : tables) {
      const bool meets = order->Compare(table.smallest, span.largest) <= 0 &&
                         order->Compare(table.largest, span.smallest) >= 0;
      span.bytes += meets ? table.bytes : 0;
    }
  }
  std::vector<Span> merged;
  for (const Span& span : spans) {
    if (merged.empty() || merged.back().bytes + span.bytes > kBytesTogether) {
      merged.push_back(span);
      continue;
    }
    Span& last = merged.back();
    last.bytes += span.bytes;
    if (order->Compare(last.largest, span.largest) < 0) {
      last.largest = span.largest;
    }
  }
  return merged;
}

Status CompactSpan(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                   const Span& span, std::atomic<bool>* cancelled) {
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForceOptimized;
  options.canceled = cancelled;
  const rocksdb::Slice begin(span.smallest);
  const rocksdb::Slice end(span.largest);
  return db->CompactRange(options, family, &begin, &end);
}

}  // namespace

Status CompactReplaced(rocksdb::DB* db,
                       const std::vector<FamilyHandle>& families,
                       const KeyInterval& interval, uint64_t bytes_per_sec,
                       StopSignal* stop) {
  Canceller canceller(stop);
  for (const FamilyHandle& family : families) {
    if (db->GetOptions(family.handle).compaction_style ==
        rocksdb::kCompactionStyleFIFO) {
      continue;
    }
    std::vector<LiveTable> tables;
    Status status = ListLiveTables(db, family.handle, &tables);
    const std::vector<Span> spans =
        SpansOf(tables, interval, family.handle->GetComparator());
    for (const Span& span : spans) {
      const auto start = std::chrono::steady_clock::now();
      if (status.ok() && !stop->stopped()) {
        status = CompactSpan(db, family.handle, span, canceller.cancelled());
      }
      if (stop->stopped()) {
        return MakeStatus(EndState::kCancelled, "stopped on request");
      }
      if (!status.ok()) {
        return WithContext(status, EndStateOf(status),
                           "compaction of column family '" + family.name +
                               "'");
      }
      if (bytes_per_sec != 0) {
        const auto spent =
            std::chrono::duration_cast<std::chrono::milliseconds>(
                std::chrono::steady_clock::now() - start);
        const std::chrono::milliseconds due(
            static_cast<int64_t>(span.bytes * 1000 / bytes_per_sec));
        if (due > spent && stop->WaitFor(due - spent)) {
          return MakeStatus(EndState::kCancelled, "stopped on request");
        }
      }
    }
    if (!status.ok()) {
      return status;
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
