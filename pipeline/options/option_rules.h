// Checks options that an untrusted peer sent against a short list of names and
// values that must not come from a peer. Runs before RocksDB's own parser reads
// the options. An option that a rule drops does not make a pull fail. sstferry
// opens the new database without it, but the OPTIONS file for the application
// keeps it (replica_options.h).
//
// All functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/messages.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

enum class OptionScope { kFamily, kTable };

enum class OptionKind : uint8_t {
  kInteger,      // from low to high
  kReal,         // from low to high
  kVitalName,    // enumeration value; unknown names are an error
  kCompression,  // must be supported by the linked RocksDB
  kCompressions,
  kObject,  // one of `ids` with limited numbers; RocksDB makes the object
  kDropped  // never accepted; reported if set
};

// Rule for one option. low and high limit the option's number, or each number
// in an object.
struct OptionRule {
  const char* name;
  OptionKind kind;
  int64_t low = 0;
  uint64_t high = 0;
  const char* const* ids = nullptr;  // kObject only; ends with null
  const char* reason = nullptr;      // kDropped only; null: no note
};

// Returns the rule for an option name; null: no rule.
const OptionRule* FindOptionRule(OptionScope scope, const std::string& name);

// Returns all rules of a scope, for tests and documentation.
std::vector<const OptionRule*> OptionRules(OptionScope scope);

// Checks a list of options. *accepted receives the options for RocksDB's
// Get...OptionsFromMap: options that the linked RocksDB knows and that no rule
// drops. *notes receives the omitted options with reasons, each prefixed by
// `where`.
//   InvalidArgument (kIncompatible)  a repeated name, or a value or list above
//     the bounds of format/limits.h; the message names the option.
[[nodiscard]] rocksdb::Status CheckOptions(
    OptionScope scope, const std::string& where,
    const std::vector<NamedValue>& options,
    std::unordered_map<std::string, std::string>* accepted,
    std::vector<std::string>* notes);

// Splits "{a=1;b={c=2;}}" into its name-value pairs, in order. Returns
// InvalidArgument (kIncompatible) for more than 4 levels of braces, or more
// than kMaxOptionCount members.
[[nodiscard]] rocksdb::Status SplitMembers(const rocksdb::Slice& value,
                                           std::vector<NamedValue>* out);

// Parses "id", "id:1:true", "id.8" or "{id=...;name=1;}". Requires the id to be
// one of `ids`, and each argument to be a boolean or a number from low to high.
// *id and *members (may be null) receive the parts.
[[nodiscard]] rocksdb::Status CheckObject(const rocksdb::Slice& value,
                                          const OptionRule& rule,
                                          std::string* id,
                                          std::vector<NamedValue>* members);

}  // namespace sstferry
