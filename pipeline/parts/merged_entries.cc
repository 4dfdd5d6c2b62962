#include "pipeline/parts/merged_entries.h"

#include <map>

#include "pipeline/base/key_interval.h"

namespace sstferry {

using rocksdb::Comparator;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr uint8_t kTypeSingleDeletion = 0x07;
// Number of skipped entries between two polls of `cancelled`.
constexpr uint64_t kEntriesPerLook = 4096;

bool Meets(const TableFile& file, const Comparator* order,
           const KeyInterval& interval) {
  return MeetsSpan(interval, order, file.smallest, file.largest);
}

// Returns the files that overlap the interval, grouped by depth. All files of
// one level have the same depth. Each file of level 0 has its own depth.
std::map<uint64_t, std::vector<const TableFile*>> ByDepth(
    const std::vector<TableFile>& files, const Comparator* order,
    const KeyInterval& interval) {
  std::map<uint64_t, std::vector<const TableFile*>> runs;
  for (const TableFile& file : files) {
    if (Meets(file, order, interval)) {
      runs[file.depth].push_back(&file);
    }
  }
  return runs;
}

}  // namespace

Status SortedRun::OpenNext() {
  table_ = std::make_unique<TableCursor>();
  return InTable(table_->Open(*files_[next_file_++], *reads_));
}

Status SortedRun::InTable(const Status& status) const {
  return WithContext(status, EndStateOf(status), files_[next_file_ - 1]->path);
}

Status SortedRun::Open() {
  Status status;
  while (status.ok() && !valid() && next_file_ < files_.size()) {
    status = OpenNext();
  }
  return status;
}

Status SortedRun::Next() {
  const Status status = table_->Next();
  return !status.ok()        ? InTable(status)
         : !table_->valid() ? Open()
                            : status;
}

bool MergedEntries::CanMerge(const std::vector<TableFile>& files,
                             const Comparator* order,
                             const KeyInterval& interval) {
  if (order->timestamp_size() != 0) {
    return false;
  }
  const auto runs = ByDepth(files, order, interval);
  if (runs.size() > SharedFile::MostOpen()) {
    return false;
  }
  for (const auto& [depth, run] : runs) {
    const TableFile* before = nullptr;
    for (const TableFile* file : run) {
      // Refuse two files of a level that overlap or have a key in common. The
      // merge would return the versions of a key in the wrong order.
      if (file->has_blobs ||
          (before != nullptr &&
           order->Compare(before->largest, file->smallest) >= 0)) {
        return false;
      }
      before = file;
    }
  }
  return true;
}

MergedEntries::MergedEntries(const std::vector<TableFile>& files,
                             TableReads reads,
                             std::function<bool()> cancelled)
    : reads_(std::move(reads)),
      is_bytewise_(reads_.order == rocksdb::BytewiseComparator()),
      cancelled_(std::move(cancelled)) {
  for (const auto& [depth, run] :
       ByDepth(files, reads_.order, reads_.interval)) {
    runs_.push_back(std::make_unique<SortedRun>(&reads_));
    for (const TableFile* file : run) {
      runs_.back()->Add(file);
    }
  }
}

Status MergedEntries::Open() {
  for (const std::unique_ptr<SortedRun>& run : runs_) {
    RETURN_IF_ERROR(run->Open());
    if (run->valid()) {
      heap_.push_back(run.get());
    }
  }
  for (size_t at = heap_.size() / 2; at-- > 0;) {
    SiftDown(at);
  }
  return FindVisible();
}

bool MergedEntries::IsBefore(const SortedRun& a, const SortedRun& b) const {
  const int order = Compare(a.entry().user_key(), b.entry().user_key());
  return order != 0 ? order < 0 : a.entry().sequence() > b.entry().sequence();
}

void MergedEntries::SiftDown(size_t at) {
  SortedRun* const run = heap_[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap_.size()) {
      break;
    }
    if (child + 1 < heap_.size() &&
        IsBefore(*heap_[child + 1], *heap_[child])) {
      ++child;
    }
    if (!IsBefore(*heap_[child], *run)) {
      break;
    }
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = run;
}

Status MergedEntries::Step() {
  RETURN_IF_ERROR(heap_.front()->Next());
  if (!heap_.front()->valid()) {
    heap_.front() = heap_.back();
    heap_.pop_back();
  }
  if (!heap_.empty()) {
    SiftDown(0);
  }
  return Status::OK();
}

Status MergedEntries::Next() {
  const Status status = Step();
  return status.ok() ? FindVisible() : status;
}

Status MergedEntries::FindVisible() {
  for (uint64_t passed = 0; !heap_.empty();) {
    const TableCursor& entry = heap_.front()->entry();
    if (!any_done_ || Compare(entry.user_key(), done_) != 0) {
      const uint8_t type = entry.type();
      if (type != kSstTypeValue && type != kSstTypeDeletion &&
          type != kTypeSingleDeletion) {
        return Status::NotSupported("entry of type " + std::to_string(type));
      }
      done_.assign(entry.user_key().data(), entry.user_key().size());
      any_done_ = true;
      if (type == kSstTypeValue) {
        return Status::OK();
      }
    }
    if (++passed % kEntriesPerLook == 0 && cancelled_ && cancelled_()) {
      return MakeStatus(EndState::kCancelled, "build: stopped on request");
    }
    RETURN_IF_ERROR(Step());
  }
  return Status::OK();
}

}  // namespace sstferry
