// Splits a list into batches that each fit into one payload, and joins batches.
#pragma once

#include <iterator>
#include <vector>

#include "format/messages.h"

namespace sstferry {

// Calls each(std::vector<Item>) -> Status for every batch in order, until a
// call fails; returns this failure. Does not call `each` for an empty list.
template <typename Item, typename Each>
[[nodiscard]] rocksdb::Status ForEachBatch(const std::vector<Item>& items,
                                           Each each) {
  rocksdb::Status status;
  for (size_t at = 0; at < items.size() && status.ok();) {
    const size_t next = BatchEnd(items, at);
    status = each(std::vector<Item>(items.begin() + at, items.begin() + next));
    at = next;
  }
  return status;
}

// Decodes a message with a batch and appends its items to *out.
template <typename Batch, typename Item>
[[nodiscard]] rocksdb::Status AppendBatch(const rocksdb::Slice& payload,
                                          std::vector<Item> Batch::*items,
                                          std::vector<Item>* out) {
  Batch batch;
  const rocksdb::Status status = Decode(payload, &batch);
  out->insert(out->end(), std::make_move_iterator((batch.*items).begin()),
              std::make_move_iterator((batch.*items).end()));
  return status;
}

}  // namespace sstferry
