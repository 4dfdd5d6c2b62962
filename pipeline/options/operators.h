// Finds comparators, merge operators and prefix extractors by name: RocksDB's
// built-in ones, and those that the application registers.
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

// Finds the comparator `name` for column family `family`.
//   NotSupported (kRefused)          the comparator uses user-defined
//                                    timestamps
//   InvalidArgument (kIncompatible)  this process does not have the comparator
[[nodiscard]] rocksdb::Status FindComparator(const std::string& family,
                                             const std::string& name,
                                             const OperatorRegistry& registry,
                                             const rocksdb::Comparator** out);

// Finds the merge operator of an OPTIONS value, which is a name or
// {id=NAME;...}; "" means no merge operator. If this process does not have the
// operator, returns OK, sets *out to null and adds a note. The caller must then
// fail only if merge operands exist.
[[nodiscard]] rocksdb::Status FindMergeOperator(
    const std::string& family, const std::string& value,
    const OperatorRegistry& registry,
    std::shared_ptr<rocksdb::MergeOperator>* out,
    std::vector<std::string>* notes);

// Returns the registered prefix extractor with this name; null: not found.
std::shared_ptr<const rocksdb::SliceTransform> FindRegisteredPrefixExtractor(
    const std::string& name, const OperatorRegistry& registry);

}  // namespace sstferry
