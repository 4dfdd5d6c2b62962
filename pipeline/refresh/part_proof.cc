#include "pipeline/refresh/part_proof.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "format/rocksdb/sst_reader.h"
#include "format/rocksdb/wide_columns.h"
#include "pipeline/base/file_source.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// A range deletion: its first key, and its end, which is exclusive.
using Range = std::pair<std::string, std::string>;

// Calls `visit` for each entry of the chunk, in order. Adds the chunk's range
// deletions to *ranges.
Status ReadDelta(const CheckedDelta& chunk,
                 const std::function<Status(const Slice& user_key, uint8_t type,
                                            const Slice& value)>& visit,
                 std::vector<Range>* ranges) {
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::Open(chunk.file_system, chunk.path, &source));
  SstReader table;
  RETURN_IF_ERROR(table.Open(source.get()));
  RETURN_IF_ERROR(table.ForEachRangeDeletion(
      [ranges](const Slice& key, const Slice& end) {
        ranges->emplace_back(UserKeyOf(key).ToString(), end.ToString());
        return Status::OK();
      }));
  const auto visit_entry = [&visit](const Slice& key, const Slice& value) {
    const Slice user_key = UserKeyOf(key);
    return visit(user_key, static_cast<uint8_t>(key[user_key.size()]), value);
  };
  return table.ForEachIndexEntry([&](const SstIndexEntry& block) {
    return table.ForEachEntry(block.handle, visit_entry);
  });
}

Status UnknownType(uint8_t type) {
  return MakeStatus(EndState::kCorrupt,
                    "delta: expected puts and deletions, found an entry of "
                    "type " + std::to_string(type));
}

// Finds entries in an index by their keys. REQUIRES: the keys of successive
// calls of Find() ascend.
class EntriesByKey {
 public:
  EntriesByKey(const GroupIndex& index, const rocksdb::Comparator* order)
      : index_(index), order_(order) {}

  // Returns the index of the first entry at or after the key.
  size_t Find(const Slice& key) {
    size_t end = index_.kept();
    while (at_ < end) {
      const size_t middle = at_ + (end - at_) / 2;
      if (order_->Compare(index_.key(middle), key) < 0) {
        at_ = middle + 1;
      } else {
        end = middle;
      }
    }
    return at_;
  }
  bool IsAt(size_t entry, const Slice& key) const {
    return entry < index_.kept() &&
           order_->Compare(index_.key(entry), key) == 0;
  }

 private:
  const GroupIndex& index_;
  const rocksdb::Comparator* const order_;
  size_t at_ = 0;
};

}  // namespace

Status PartProof::TakeChunk(const CheckedDelta& chunk, const GroupIndex& index,
                            EntryDigester* digester) {
  std::vector<bool> gone(index.kept(), false);
  const auto remove = [&](size_t entry) {
    if (!gone[entry]) {
      gone[entry] = true;
      here_.Remove(index.digest(entry));
    }
  };
  EntriesByKey by_key(index, chunk.order);
  std::vector<Range> ranges;
  std::string scratch;
  const auto take = [&](const Slice& key, uint8_t type, const Slice& value) {
    const size_t entry = by_key.Find(key);
    if (by_key.IsAt(entry, key)) {
      remove(entry);
    }
    Status status;
    if (type == kSstTypeValue) {
      here_.Add(digester->DigestOfEntry(key, value, false));
    } else if (type == kSstTypeWideColumnEntity) {
      status = EncodeColumnsForDigest(value, &scratch);
      here_.Add(digester->DigestOfEntry(key, scratch, true));
    } else if (type != kSstTypeDeletion) {
      status = UnknownType(type);
    }
    return status;
  };
  RETURN_IF_ERROR(ReadDelta(chunk, take, &ranges));
  EntriesByKey by_bound(index, chunk.order);
  for (const auto& [first, last] : ranges) {
    const size_t begin = by_bound.Find(first);
    const size_t end = by_bound.Find(last);
    for (size_t entry = begin; entry < end; ++entry) {
      remove(entry);
    }
  }
  return Status::OK();
}

Status PartProof::TakeClearing(const CheckedDelta& chunk,
                               const std::string& first,
                               const std::string& last) {
  bool puts = false;
  bool deletes_last = false;
  std::vector<Range> ranges;
  const auto take = [&](const Slice& key, uint8_t type, const Slice&) {
    puts = puts || type != kSstTypeDeletion;
    deletes_last = deletes_last || chunk.order->Compare(key, last) == 0;
    return Status::OK();
  };
  RETURN_IF_ERROR(ReadDelta(chunk, take, &ranges));
  bool reaches = chunk.order->Compare(first, last) == 0;
  for (const auto& [begin, end] : ranges) {
    reaches = reaches || (chunk.order->Compare(begin, first) <= 0 &&
                          chunk.order->Compare(end, last) >= 0);
  }
  if (!puts && deletes_last && reaches) {
    here_ = EntrySums();
  }
  return Status::OK();
}

}  // namespace sstferry
