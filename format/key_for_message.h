// Formats a key, which may be long and binary, for use in a message.
#pragma once

#include <algorithm>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// Returns "0x6B6579"; for a long key its first 32 bytes and "...".
inline std::string KeyForMessage(const rocksdb::Slice& key) {
  const size_t shown = std::min<size_t>(key.size(), 32);
  return "0x" + rocksdb::Slice(key.data(), shown).ToString(/*hex=*/true) +
         (shown < key.size() ? "..." : "");
}

}  // namespace sstferry
