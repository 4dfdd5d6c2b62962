// Splits a list into batches that each fit into one payload.
#pragma once

#include <vector>

#include "format/messages.h"

namespace sstferry {

// Calls each(batch) for every batch in order; a batch is a std::vector<Item>.
// Stops at the first call that fails, and returns its status. Does not call
// `each` for an empty list.
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

}  // namespace sstferry
