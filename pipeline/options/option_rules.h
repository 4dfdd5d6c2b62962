// The allow-list of options: which names of OPTIONS files are taken over, and
// the bounds of their values. A description comes from a peer that is not
// trusted, so RocksDB's own parsers only see what passed here.
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
  kName,         // of an enumeration; one not known here keeps the default
  kVitalName,    // the same, but one not known here is an error
  kCompression,  // must be supported by the linked RocksDB
  kCompressions,
  kStruct,  // {name=value;...}, each by its own rule
  kObject,  // an id with bounded numbers, made by RocksDB's registry
  kDropped  // known, never taken over; reported if set
};

// One option. low and high bound numbers; of an object, each of its numbers.
struct OptionRule {
  const char* name;
  OptionKind kind;
  int64_t low = 0;
  uint64_t high = 0;
  const OptionRule* members = nullptr;  // of kStruct
  size_t member_count = 0;
  const char* const* ids = nullptr;  // of kObject, ends with null
  const char* reason = nullptr;      // of kDropped; null: not worth a word
};

// The rule of a name, or null.
const OptionRule* FindOptionRule(OptionScope scope, const std::string& name);

// All rules of a scope (for tests and documentation).
std::vector<const OptionRule*> OptionRules(OptionScope scope);

// Judges a list. *accepted gets what RocksDB's Get...OptionsFromMap may see:
// names the linked RocksDB knows with values within their bounds. What is
// dropped is named in *notes with the reason, after `where`.
//   InvalidArgument (kIncompatible)  a value out of bounds or not of its kind,
//     a compression this build lacks, a name twice; names option and value.
[[nodiscard]] rocksdb::Status CheckOptions(
    OptionScope scope, const std::string& where,
    const std::vector<NamedValue>& options,
    std::unordered_map<std::string, std::string>* accepted,
    std::vector<std::string>* notes);

// "{a=1;b={c=2;}}" into its pairs, in order. At most 4 levels of braces and
// kMaxOptionCount members; else InvalidArgument (kIncompatible).
[[nodiscard]] rocksdb::Status SplitMembers(const rocksdb::Slice& value,
                                           std::vector<NamedValue>* out);

// Reads "id", "id:1:true", "id.8" or "{id=...;name=1;}" and requires the id to
// be one of `ids` and each argument to be a boolean or a number within
// low..high. *id and *members (may be null) get the parts.
[[nodiscard]] rocksdb::Status CheckObject(const rocksdb::Slice& value,
                                          const OptionRule& rule,
                                          std::string* id,
                                          std::vector<NamedValue>* members);

}  // namespace sstferry
