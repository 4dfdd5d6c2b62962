// The allow-list of options: the names of OPTIONS files that a target accepts,
// and the bounds of their values. An untrusted peer sends the options, so
// RocksDB's own parsers see only what passed these checks.
//
// All functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/message/messages.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

enum class OptionScope { kDatabase, kFamily, kTable };

enum class OptionKind : uint8_t {
  kBool,
  kInteger,      // low..high
  kReal,         // low..high
  kIntegers,     // a list, each low..high
  kName,         // of an enumeration; unknown names keep the default
  kVitalName,    // of an enumeration; unknown names are an error
  kCompression,  // must be supported by the linked RocksDB
  kCompressions,
  kStruct,  // {name=value;...}, each by its own rule
  kObject,  // an id with bounded numbers, made by RocksDB's registry
  kDropped  // known, never accepted; reported if set
};

// Rule for one option. low and high bound its number, or each number of an
// object.
struct OptionRule {
  const char* name;
  OptionKind kind;
  int64_t low = 0;
  uint64_t high = 0;
  const OptionRule* members = nullptr;  // kStruct only
  size_t member_count = 0;
  const char* const* ids = nullptr;  // kObject only; ends with null
  const char* reason = nullptr;      // kDropped only; null: no note
};

// Returns the rule for a name, or null.
const OptionRule* FindOptionRule(OptionScope scope, const std::string& name);

// Returns all rules of a scope (for tests and documentation).
std::vector<const OptionRule*> OptionRules(OptionScope scope);

// Checks a list. *accepted receives the options for RocksDB's
// Get...OptionsFromMap: names that the linked RocksDB knows with values within
// their bounds. *notes receives each dropped option and the reason, after
// `where`.
//   InvalidArgument (kIncompatible)  a value out of bounds or of another kind,
//     a compression that this build lacks, a repeated name; the message names
//     option and value.
[[nodiscard]] rocksdb::Status CheckOptions(
    OptionScope scope, const std::string& where,
    const std::vector<NamedValue>& options,
    std::unordered_map<std::string, std::string>* accepted,
    std::vector<std::string>* notes);

// Splits "{a=1;b={c=2;}}" into its pairs, in order. At most 4 levels of braces
// and kMaxOptionCount members; else InvalidArgument (kIncompatible).
[[nodiscard]] rocksdb::Status SplitMembers(const rocksdb::Slice& value,
                                           std::vector<NamedValue>* out);

// Parses "id", "id:1:true", "id.8" or "{id=...;name=1;}". Requires the id to be
// one of `ids` and each argument to be a boolean or a number within low..high.
// *id and *members (may be null) receive the parts.
[[nodiscard]] rocksdb::Status CheckObject(const rocksdb::Slice& value,
                                          const OptionRule& rule,
                                          std::string* id,
                                          std::vector<NamedValue>* members);

}  // namespace sstferry
