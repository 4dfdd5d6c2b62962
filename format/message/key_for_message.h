// How a key, which may be long and not text, stands in a sentence.
#pragma once

#include <algorithm>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// "0x6B6579", the first 32 bytes and "..." of a longer key.
inline std::string KeyForMessage(const rocksdb::Slice& key) {
  const size_t shown = std::min<size_t>(key.size(), 32);
  return "0x" + rocksdb::Slice(key.data(), shown).ToString(/*hex=*/true) +
         (shown < key.size() ? "..." : "");
}

}  // namespace sstferry
