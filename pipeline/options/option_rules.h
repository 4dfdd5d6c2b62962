// Checks options that a peer has sent, before RocksDB's own parser reads them.
// The peer is not trusted: a short list has names and values that must not come
// from a peer. If an option is not allowed, the pull does not fail. sstferry
// opens the new database without the option, but the OPTIONS file for the
// application keeps it (replica_options.h).
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
  kInteger,      // a number from low to high
  kReal,         // a floating-point number from low to high
  kVitalName,    // enumeration value; an unknown name is an error
  kCompression,  // must be supported by the linked RocksDB
  kCompressions,
  // An object that RocksDB makes. Its id must be in `ids`, and its numbers from
  // low to high.
  kObject,
  kDropped  // never accepted; reported if it is set
};

// Rule for one option. For a number, low and high are its limits. For an
// object, they are the limits of each number in it.
struct OptionRule {
  const char* name;
  OptionKind kind;
  int64_t low = 0;
  uint64_t high = 0;
  const char* const* ids = nullptr;  // for kObject; the last one is null
  // For kDropped: why the option is dropped. Null: no note is made.
  const char* reason = nullptr;
};

// Returns the rule for the option `name`, or null if there is no rule.
const OptionRule* FindOptionRule(OptionScope scope, const std::string& name);

// Returns all rules of a scope, for tests and documentation.
std::vector<const OptionRule*> OptionRules(OptionScope scope);

// Checks a list of options. *accepted receives the options that the linked
// RocksDB knows and that no rule drops. They can be passed to RocksDB's
// Get...OptionsFromMap. *notes receives the other options, each with `where`
// and the reason.
//   InvalidArgument (kIncompatible)  a repeated name, or a value or list above
//     the bounds of format/limits.h; the message names the option.
[[nodiscard]] rocksdb::Status CheckOptions(
    OptionScope scope, const std::string& where,
    const std::vector<NamedValue>& options,
    std::unordered_map<std::string, std::string>* accepted,
    std::vector<std::string>* notes);

// Splits a struct such as "{a=1;b={c=2;}}" into pairs of names and values, in
// order. If it has more than 4 levels of braces or more than kMaxOptionCount
// members, returns InvalidArgument (kIncompatible).
[[nodiscard]] rocksdb::Status SplitMembers(const rocksdb::Slice& value,
                                           std::vector<NamedValue>* out);

// Checks the text of an object, for example "id", "id:1:true", "id.8" or
// "{id=...;name=1;}". The id must be one of `ids`. Each argument must be a
// boolean, or a number from low to high. *id and *members (may be null) receive
// the parts.
[[nodiscard]] rocksdb::Status CheckObject(const rocksdb::Slice& value,
                                          const OptionRule& rule,
                                          std::string* id,
                                          std::vector<NamedValue>* members);

}  // namespace sstferry
