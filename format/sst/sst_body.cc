// Finds the blocks before a table file's properties.
#include <algorithm>
#include <string_view>
#include <vector>

#include "format/end_state.h"
#include "format/sst/sst_tail.h"
#include "format/sst/sst_tail_names.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Visits the body's blocks in file order.
class BodyWalk {
 public:
  BodyWalk(const SstReader& reader, const SstTail& tail,
           const SstBlockVisitor& visitor)
      : reader_(reader), tail_(tail), visitor_(visitor) {}

  [[nodiscard]] Status Run() {
    Status s = reader_.ForEachIndexEntry([this](const SstIndexEntry& entry) {
      // There is no padding before the first block.
      return Visit(entry.handle, end_ == 0 ? 0 : kMaxSstPaddingBytes);
    });
    if (s.ok()) {
      s = SkipLastPadding();
    }
    if (s.ok()) {
      s = CollectStretches();
    }
    for (const Stretch& stretch : stretches_) {
      if (s.ok()) {
        s = stretch.partitioned ? VisitPartitions(stretch.handle)
                                : Visit(stretch.handle, 0);
      }
    }
    if (s.ok() && end_ != tail_.body_bytes) {
      return Uncovered(end_, tail_.body_bytes);
    }
    return s;
  }

 private:
  // One block, or the partitions that the block at `handle` lists.
  struct Stretch {
    uint64_t offset;
    SstBlockHandle handle;
    bool partitioned;
  };

  [[nodiscard]] static Status Uncovered(uint64_t begin, uint64_t end) {
    return RefuseToCarry("has bytes that no known block covers, from " +
                   std::to_string(begin) + " to " + std::to_string(end));
  }

  [[nodiscard]] Status Visit(const SstBlockHandle& handle,
                             uint64_t max_padding) {
    if (!HandleFits(handle, tail_.body_bytes) || handle.offset < end_) {
      return RefuseToCarry("has blocks in an unknown order, from " +
                     std::to_string(handle.offset) + " after " +
                     std::to_string(end_));
    }
    if (handle.offset - end_ > max_padding) {
      return Uncovered(end_, handle.offset);
    }
    end_ = handle.end();
    return visitor_(handle);
  }

  // Alignment pads the last data block too; writers count the padding as data.
  [[nodiscard]] Status SkipLastPadding() {
    const uint64_t data_bytes = reader_.properties().data_bytes;
    if (data_bytes < end_ || data_bytes - end_ > kMaxSstPaddingBytes) {
      return RefuseToCarry("has data blocks up to " + std::to_string(end_) +
                     ", its properties say " + std::to_string(data_bytes));
    }
    end_ = data_bytes;
    return Status::OK();
  }

  [[nodiscard]] Status AddPartitions(const SstBlockHandle& top) {
    bool any = false;
    return ForEachSstPartition(reader_, top, [&](const SstBlockHandle& handle) {
      if (!any) {
        stretches_.push_back({handle.offset, top, true});
        any = true;
      }
      return Status::OK();
    });
  }

  [[nodiscard]] Status VisitPartitions(const SstBlockHandle& top) {
    return ForEachSstPartition(reader_, top, [this](const SstBlockHandle& handle) {
      return Visit(handle, 0);
    });
  }

  [[nodiscard]] Status CollectStretches() {
    Status s;
    const SstBlockHandle index = reader_.index_handle();
    stretches_.push_back({index.offset, index, false});
    if (reader_.properties().index_type == SstIndexType::kTwoLevel) {
      s = AddPartitions(index);
    }
    for (const SstMetaBlock& meta : reader_.meta_blocks()) {
      if (!s.ok()) {
        return s;
      }
      if (meta.name == kPropertiesName || meta.name == kIndexName) {
        continue;
      }
      stretches_.push_back({meta.handle.offset, meta.handle, false});
      if (meta.name.starts_with(kPartitionedFilterPrefix)) {
        s = AddPartitions(meta.handle);
      }
    }
    std::sort(stretches_.begin(), stretches_.end(),
              [](const Stretch& a, const Stretch& b) {
                return a.offset < b.offset;
              });
    return s;
  }

  const SstReader& reader_;
  const SstTail& tail_;
  const SstBlockVisitor& visitor_;
  std::vector<Stretch> stretches_;
  uint64_t end_ = 0;  // offset behind the previous block
};

}  // namespace

// Both kinds of top-level blocks have the format of an index block.
Status ForEachSstPartition(const SstReader& reader, const SstBlockHandle& top,
                           const SstBlockVisitor& visitor) {
  SstBlockLayout layout;
  layout.values_are_handles = true;
  layout.delta_handles = reader.properties().index_value_is_delta_encoded != 0;
  SstBlock block;
  SstBlockCursor cursor;
  Status s = ReadSstBlock(reader.source(), reader.footer(), top,
                          kMaxSstBlockBytes, Slice(), &block);
  if (s.ok()) {
    s = cursor.Init(block.contents(), layout, top.offset);
  }
  if (s.ok()) {
    s = cursor.Next();
  }
  while (s.ok() && cursor.valid()) {
    s = visitor(cursor.handle());
    if (s.ok()) {
      s = cursor.Next();
    }
  }
  return s;
}

Status ForEachBodyBlock(const SstReader& reader, const SstTail& tail,
                        const SstBlockVisitor& visitor) {
  return BodyWalk(reader, tail, visitor).Run();
}

}  // namespace sstferry
