// Rules for options that an untrusted peer sends, before RocksDB's own parser
// sees them: a short list of names and values that must not come from a peer.
// No rule refuses a pull: what is left out here is left out of the options that
// sstferry opens the new database with, and stays in the OPTIONS text that the
// application finds (replica_options.h).
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
  kInteger,      // low..high
  kReal,         // low..high
  kVitalName,    // of an enumeration; unknown names are an error
  kCompression,  // must be supported by the linked RocksDB
  kCompressions,
  kObject,  // an id with bounded numbers, made by RocksDB's registry
  kDropped  // never accepted; reported if set
};

// Rule for one option. low and high bound its number, or each number of an
// object.
struct OptionRule {
  const char* name;
  OptionKind kind;
  int64_t low = 0;
  uint64_t high = 0;
  const char* const* ids = nullptr;  // kObject only; ends with null
  const char* reason = nullptr;      // kDropped only; null: no note
};

// Returns the rule for a name, or null.
const OptionRule* FindOptionRule(OptionScope scope, const std::string& name);

// Returns all rules of a scope (for tests and documentation).
std::vector<const OptionRule*> OptionRules(OptionScope scope);

// Checks a list. *accepted receives the options for RocksDB's
// Get...OptionsFromMap: those whose names the linked RocksDB knows and no rule
// holds back. *notes receives, after `where`, what was left out and why.
//   InvalidArgument (kIncompatible)  a repeated name, a value or a list above
//     the bounds of format/limits.h; the message names the option.
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
