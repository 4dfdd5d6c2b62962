// Which WAL records the linked RocksDB reads.
#pragma once

#include <cstdint>

#include "pipeline/base/rocksdb_compat.h"

namespace sstferry {

// True if recovery understands WAL records of this type. At others it stops or
// drops what follows, with status OK. 8.3 introduced the types for user-defined
// timestamps, 10.0 the rule that types from 128 on may be ignored.
constexpr bool ReadsWalRecord(uint8_t type) {
  return type <= 9 || (type <= 11 && RocksDbIsAtLeast(8, 3)) ||
         (type >= 128 && RocksDbIsAtLeast(10, 0));
}

}  // namespace sstferry
