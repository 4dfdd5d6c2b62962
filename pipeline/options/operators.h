// Comparators, merge operators and prefix extractors by name: RocksDB's
// built-in ones and those the application registers.
//
// All functions may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/comparator.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// The comparator called `name`, which family `family` was written with.
//   NotSupported (kRefused)          it carries user-defined timestamps
//   InvalidArgument (kIncompatible)  this process does not have it
[[nodiscard]] rocksdb::Status FindComparator(const std::string& family,
                                             const std::string& name,
                                             const OperatorRegistry& registry,
                                             const rocksdb::Comparator** out);

// The merge operator of an OPTIONS value, a name or {id=NAME;...}; "" is none.
// One that this process does not have gives OK, null and a note: only where
// merge operands exist must the caller stop.
[[nodiscard]] rocksdb::Status FindMergeOperator(
    const std::string& family, const std::string& value,
    const OperatorRegistry& registry,
    std::shared_ptr<rocksdb::MergeOperator>* out,
    std::vector<std::string>* notes);

// The registered prefix extractor of that name, or null.
std::shared_ptr<const rocksdb::SliceTransform> FindRegisteredPrefixExtractor(
    const std::string& name, const OperatorRegistry& registry);

}  // namespace sstferry
