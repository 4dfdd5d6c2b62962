// Finds comparators, merge operators and prefix extractors by name. They are
// either built into RocksDB or registered by the application.
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

// Finds the comparator with the name `name`. `family` is the column family for
// messages.
//   NotSupported (kRefused)          the comparator uses user-defined
//                                    timestamps
//   InvalidArgument (kIncompatible)  this process does not have the comparator
[[nodiscard]] rocksdb::Status FindComparator(const std::string& family,
                                             const std::string& name,
                                             const OperatorRegistry& registry,
                                             const rocksdb::Comparator** out);

// Finds the merge operator for a value in OPTIONS. The value is a name,
// {id=NAME;...}, or "" for no merge operator. If this process does not have the
// operator, returns OK, sets *out to null and adds a note. The caller must then
// fail only if it finds merge operands.
[[nodiscard]] rocksdb::Status FindMergeOperator(
    const std::string& family, const std::string& value,
    const OperatorRegistry& registry,
    std::shared_ptr<rocksdb::MergeOperator>* out,
    std::vector<std::string>* notes);

// Returns the prefix extractor that the application has registered with this
// name. Returns null if it has registered no such extractor.
std::shared_ptr<const rocksdb::SliceTransform> FindRegisteredPrefixExtractor(
    const std::string& name, const OperatorRegistry& registry);

}  // namespace sstferry
