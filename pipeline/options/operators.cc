#include "pipeline/options/operators.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/options/option_rules.h"
#include "pipeline/options/options_file.h"
#include "rocksdb/convenience.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::MergeOperator;
using rocksdb::SliceTransform;
using rocksdb::Status;

constexpr std::string_view kTimestampSuffix = ".u64ts";

constexpr const char* kBuiltInMergeOperators[] = {
    "PutOperator",          "UInt64AddOperator",    "MaxOperator",
    "StringAppendOperator", "StringAppendTESTOperator",
    "BytesXOR",             "MergeSortOperator",    "uint64add",
    "put",                  "put_v1",               "max",
    "stringappend",         "stringappendtest",     "bytesxor",
    "sortlist"};

std::string Where(const std::string& family) {
  return "column family " + Quoted(family);
}

// Returns the id in "id" or "{id=...;...}"; "" for other text.
std::string IdOf(const std::string& value) {
  if (!value.starts_with('{')) {
    return value;
  }
  std::vector<NamedValue> members;
  if (!SplitMembers(value, &members).ok() || members.empty() ||
      members.front().name != "id") {
    return "";
  }
  return members.front().value;
}

bool IsBuiltInMergeOperator(const std::string& id) {
  return std::find(std::begin(kBuiltInMergeOperators),
                   std::end(kBuiltInMergeOperators),
                   std::string_view(id)) != std::end(kBuiltInMergeOperators);
}

}  // namespace

Status FindComparator(const std::string& family, const std::string& name,
                      const OperatorRegistry& registry,
                      const Comparator** out) {
  *out = nullptr;
  std::vector<const Comparator*> known = {
      rocksdb::BytewiseComparator(), rocksdb::ReverseBytewiseComparator()};
  known.insert(known.end(), registry.comparators.begin(),
               registry.comparators.end());
  const auto it = std::find_if(
      known.begin(), known.end(), [&name](const Comparator* comparator) {
        return comparator != nullptr && name == comparator->Name();
      });
  if (std::string_view(name).ends_with(kTimestampSuffix) ||
      (it != known.end() && (*it)->timestamp_size() > 0)) {
    return OnlyAsFiles(EndState::kRefused,
                          Where(family) + ": comparator " + Quoted(name) +
                              " uses user-defined timestamps, which sstferry "
                              "cannot move as chunks");
  }
  if (it == known.end()) {
    return OnlyAsFiles(EndState::kIncompatible,
                          Where(family) + ": expected a comparator that this " +
                              "process has, found " + Quoted(name));
  }
  *out = *it;
  return Status::OK();
}

Status FindMergeOperator(const std::string& family, const std::string& value,
                         const OperatorRegistry& registry,
                         std::shared_ptr<MergeOperator>* out,
                         std::vector<std::string>* notes) {
  out->reset();
  if (IsNullObject(value)) {
    return Status::OK();
  }
  if (value.size() > kMaxIdentifierBytes) {
    return OnlyAsFiles(
        EndState::kIncompatible,
        Where(family) + ": merge operator's name is too long");
  }
  const std::string id = IdOf(value);
  for (const std::shared_ptr<MergeOperator>& known :
       registry.merge_operators) {
    if (known != nullptr && id == known->Name()) {
      *out = known;
      return Status::OK();
    }
  }
  rocksdb::ConfigOptions config;
  if (IsBuiltInMergeOperator(id)) {
    Status s = MergeOperator::CreateFromString(config, value, out);
    if (!s.ok()) {
      out->reset();
    }
  }
  if (*out == nullptr) {
    AddNote(notes, Where(family) + ": merge operator " + Quoted(value) +
                       " is unknown to this process, which cannot "
                       "move merge operands without it");
  }
  return Status::OK();
}

std::shared_ptr<const SliceTransform> FindRegisteredPrefixExtractor(
    const std::string& name, const OperatorRegistry& registry) {
  const std::string id = IdOf(name);
  for (const std::shared_ptr<const SliceTransform>& known :
       registry.prefix_extractors) {
    if (known != nullptr && (id == known->Name() || id == known->AsString())) {
      return known;
    }
  }
  return nullptr;
}

}  // namespace sstferry
