#include "pipeline/options/option_rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <unordered_set>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/options/option_table.h"
#include "pipeline/options/options_file.h"
#include "rocksdb/convenience.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using NameSet = std::unordered_set<std::string>;

constexpr int kMaxBraceDepth = 4;
constexpr size_t kMaxListItems = 64;  // RocksDB's maximum number of levels

std::span<const OptionRule> RulesOf(OptionScope scope) {
  return scope == OptionScope::kFamily
             ? std::span<const OptionRule>(option_table::kFamilyRules)
             : std::span<const OptionRule>(option_table::kTableRules);
}

const OptionRule* FindIn(std::span<const OptionRule> rules,
                         std::string_view name) {
  const auto it = std::find_if(
      rules.begin(), rules.end(),
      [name](const OptionRule& rule) { return name == rule.name; });
  return it == rules.end() ? nullptr : &*it;
}

Status Unexpected(const std::string& expected, const Slice& found) {
  return MakeStatus(EndState::kIncompatible,
                    "expected " + expected + ", found " + Quoted(found));
}

bool IsBool(std::string_view text) {
  return text == "true" || text == "false" || text == "0" || text == "1";
}

// Returns true if `text` has the form of an enumeration value's name. Later
// RocksDB looks the name up in its own table.
bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                  (c >= 'a' && c <= 'z') || c == '_';
         });
}

bool IsIntegerWithin(std::string_view text, int64_t low, uint64_t high) {
  const char* const end = text.data() + text.size();
  if (text.starts_with('-')) {
    int64_t number = 0;
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc() && read.ptr == end && number >= low;
  }
  uint64_t number = 0;
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end && number <= high &&
         (low <= 0 || number >= static_cast<uint64_t>(low));
}

bool IsRealWithin(std::string_view text, int64_t low, uint64_t high) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end && std::isfinite(number) &&
         number >= static_cast<double>(low) &&
         number <= static_cast<double>(high);
}

std::string Bounds(const OptionRule& rule) {
  return std::to_string(rule.low) + " to " + std::to_string(rule.high);
}

std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

// Returns the names of the compressions that the linked RocksDB supports.
const NameSet& SupportedCompressions() {
  static const NameSet names = [] {
    NameSet found;
    for (rocksdb::CompressionType type : rocksdb::GetSupportedCompressions()) {
      rocksdb::ColumnFamilyOptions options;
      options.compression = type;
      FamilyDescription family;
      if (DescribeFamily("", options, &family).ok()) {
        for (const NamedValue& option : family.options) {
          if (option.name == "compression") {
            found.insert(option.value);
          }
        }
      }
    }
    return found;
  }();
  return names;
}

Status CheckCompression(std::string_view name) {
  if (SupportedCompressions().contains(std::string(name))) {
    return Status::OK();
  }
  return Unexpected("a compression that this build of RocksDB supports",
                    Slice(name.data(), name.size()));
}

Status CheckCompressions(const std::string& value) {
  if (static_cast<size_t>(std::count(value.begin(), value.end(), ':')) >=
      kMaxListItems) {
    return Unexpected("at most " + std::to_string(kMaxListItems) + " items",
                      value);
  }
  Status s;
  for (std::string_view item : SplitAt(value, ':')) {
    if (s.ok() && !value.empty()) s = CheckCompression(item);
  }
  return s;
}

// Names of the options that the linked RocksDB knows. They are read from the
// text that RocksDB writes for its default options.
class LinkedOptions {
 public:
  static bool Knows(OptionScope scope, const std::string& name) {
    static const LinkedOptions linked;
    return (scope == OptionScope::kFamily ? linked.family_ : linked.table_)
        .contains(name);
  }

 private:
  LinkedOptions() {
    FamilyDescription family;
    rocksdb::ColumnFamilyOptions options;
    // Not empty, because RocksDB omits empty lists from the text.
    options.compression_per_level = {rocksdb::kNoCompression};
    DescribeFamily("", options, &family)
        // If this fails, no option is known. A test detects this.
        .PermitUncheckedError();
    for (const NamedValue& option : family.options) {
      family_.insert(option.name);
    }
    for (const NamedValue& option : family.table_options) {
      table_.insert(option.name);
    }
  }

  NameSet family_;
  NameSet table_;
};

Status CheckScalar(const OptionRule& rule, const std::string& value) {
  switch (rule.kind) {
    case OptionKind::kInteger:
      return IsIntegerWithin(value, rule.low, rule.high)
                 ? Status::OK()
                 : Unexpected("an integer of " + Bounds(rule), value);
    case OptionKind::kReal:
      return IsRealWithin(value, rule.low, rule.high)
                 ? Status::OK()
                 : Unexpected("a number of " + Bounds(rule), value);
    case OptionKind::kVitalName:
      return IsName(value) ? Status::OK() : Unexpected("a name", value);
    case OptionKind::kCompression:
      // This value means "as for the other levels". Only this option accepts
      // it.
      return value == "kDisableCompressionOption" &&
                     rule.name == std::string_view("bottommost_compression")
                 ? Status::OK()
                 : CheckCompression(value);
    default:
      return CheckCompressions(value);
  }
}

bool IsArgument(std::string_view text, const OptionRule& rule) {
  return IsBool(text) || IsRealWithin(text, rule.low, rule.high);
}

// Returns true if `text` is empty, or has the form of arguments after an id,
// such as ":1:true" or ".8".
bool AreArguments(std::string_view text, const OptionRule& rule) {
  if (text.empty()) {
    return true;
  }
  if (text.front() != ':' && text.front() != '.') {
    return false;
  }
  const std::vector<std::string_view> parts = SplitAt(text.substr(1), ':');
  return parts.size() <= 4 &&
         std::all_of(parts.begin(), parts.end(), [&rule](std::string_view p) {
           return IsArgument(p, rule);
         });
}

// Adds one note for all unknown names together, because OPTIONS of a newer
// RocksDB have about twenty of them.
void NoteUnknown(const std::string& where,
                 const std::vector<std::string>& names,
                 std::vector<std::string>* notes) {
  std::string list;
  size_t listed = 0;
  for (; listed < names.size() && list.size() < kMaxNoteBytes / 2; ++listed) {
    list += (listed == 0 ? " " : ", ") + Quoted(names[listed]);
  }
  if (listed < names.size()) {
    list += " and " + std::to_string(names.size() - listed) + " more";
  }
  if (!names.empty()) {
    AddNote(notes, where + ": options unknown to this RocksDB, kept in OPTIONS "
                           "unchanged:" + list);
  }
}

}  // namespace

const OptionRule* FindOptionRule(OptionScope scope, const std::string& name) {
  return FindIn(RulesOf(scope), name);
}

std::vector<const OptionRule*> OptionRules(OptionScope scope) {
  std::vector<const OptionRule*> rules;
  for (const OptionRule& rule : RulesOf(scope)) {
    rules.push_back(&rule);
  }
  return rules;
}

Status SplitMembers(const Slice& value, std::vector<NamedValue>* out) {
  out->clear();
  std::string_view text(value.data(), value.size());
  if (text.starts_with('{') && text.ends_with('}')) {
    text = text.substr(1, text.size() - 2);
  }
  const Status bad = MakeStatus(
      EndState::kIncompatible,
      "expected {name=value;...} of at most 4 levels, found " + Quoted(value));
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ';';
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth < 0 || depth >= kMaxBraceDepth) {
      return bad;
    }
    if (c != ';' || (depth > 0 && i < text.size())) {
      continue;
    }
    const std::string_view part = text.substr(begin, i - begin);
    begin = i + 1;
    if (part.empty()) {
      continue;
    }
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || depth != 0 ||
        out->size() == kMaxOptionCount) {
      return bad;
    }
    out->push_back({std::string(part.substr(0, equals)),
                    std::string(part.substr(equals + 1))});
  }
  return Status::OK();
}

Status CheckObject(const Slice& value, const OptionRule& rule, std::string* id,
                   std::vector<NamedValue>* members) {
  std::vector<NamedValue> parts;
  *id = value.ToString();
  if (value.starts_with("{")) {
    RETURN_IF_ERROR(SplitMembers(value, &parts));
    if (parts.empty() || parts.front().name != "id") {
      return Unexpected("the name of an object, or {id=NAME;...}", value);
    }
    *id = parts.front().value;
    parts.erase(parts.begin());
  }
  bool matches = false;
  for (const char* const* known = rule.ids; *known != nullptr; ++known) {
    const size_t length = strlen(*known);
    matches = matches || (id->compare(0, length, *known) == 0 &&
                          AreArguments(id->substr(length), rule));
  }
  if (!matches) {
    return Unexpected("an object that RocksDB has built in", value);
  }
  for (const NamedValue& part : parts) {
    if (!IsName(part.name) || !IsArgument(part.value, rule)) {
      return Unexpected("numbers of " + Bounds(rule), value);
    }
  }
  if (members != nullptr) {
    *members = std::move(parts);
  }
  return Status::OK();
}

Status CheckOptions(OptionScope scope, const std::string& where,
                    const std::vector<NamedValue>& options,
                    std::unordered_map<std::string, std::string>* accepted,
                    std::vector<std::string>* notes) {
  accepted->clear();
  NameSet seen;
  std::vector<std::string> unknown;
  if (options.size() > kMaxOptionCount) {
    return MakeStatus(EndState::kIncompatible,
                      where + ": expected at most " +
                          std::to_string(kMaxOptionCount) +
                          " options, found " + std::to_string(options.size()));
  }
  for (const NamedValue& option : options) {
    const std::string here = where + ": option " + Quoted(option.name);
    if (!seen.insert(option.name).second) {
      return MakeStatus(EndState::kIncompatible,
                        here + ": expected one value, found a second one");
    }
    if (option.value.size() > kMaxOptionValueBytes) {
      return MakeStatus(EndState::kIncompatible, here + ": value too long");
    }
    const OptionRule* rule = FindOptionRule(scope, option.name);
    if (rule != nullptr && rule->kind == OptionKind::kDropped) {
      const bool unset =
          IsNullObject(option.value) || option.value == "false";
      if (rule->reason != nullptr && !unset) {
        AddNote(notes, here + " was dropped: " + rule->reason);
      }
      continue;
    }
    if (!LinkedOptions::Knows(scope, option.name)) {
      unknown.push_back(option.name);
      continue;
    }
    std::string value = option.value;
    Status s;
    if (rule != nullptr && rule->kind == OptionKind::kObject) {
      std::string id;
      if (IsNullObject(value)) {
        value = "nullptr";
      } else if (!CheckObject(value, *rule, &id, nullptr).ok()) {
        AddNote(notes, here + " was dropped: this RocksDB cannot make " +
                           Quoted(value));
        continue;
      }
    } else if (rule != nullptr) {
      s = CheckScalar(*rule, value);
    }
    if (!s.ok() && rule->kind == OptionKind::kVitalName) {
      return OnlyAsFiles(EndState::kIncompatible,
                         here + ": " + MessageOf(s));
    }
    if (!s.ok()) {
      AddNote(notes, here + " is not used by this process: " + MessageOf(s));
      continue;
    }
    (*accepted)[option.name] = std::move(value);
  }
  NoteUnknown(where, unknown, notes);
  return Status::OK();
}

}  // namespace sstferry
