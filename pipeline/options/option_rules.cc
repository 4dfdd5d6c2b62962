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
constexpr size_t kMaxListItems = 64;  // RocksDB's maximum of levels

std::span<const OptionRule> RulesOf(OptionScope scope) {
  switch (scope) {
    case OptionScope::kDatabase:
      return option_table::kDatabaseRules;
    case OptionScope::kFamily:
      return option_table::kFamilyRules;
    default:
      return option_table::kTableRules;
  }
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

// True if `text` can be a name of an enumeration, which RocksDB then looks up
// in its own table.
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

// Names of the compressions that the linked RocksDB supports.
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

Status CheckList(const OptionRule& rule, const std::string& value) {
  if (value.empty()) {
    return Status::OK();
  }
  if (static_cast<size_t>(std::count(value.begin(), value.end(), ':')) >=
      kMaxListItems) {
    return Unexpected("at most " + std::to_string(kMaxListItems) + " items",
                      value);
  }
  for (std::string_view item : SplitAt(value, ':')) {
    if (rule.kind == OptionKind::kCompressions) {
      Status s = CheckCompression(item);
      if (!s.ok()) {
        return s;
      }
    } else if (!IsIntegerWithin(item, rule.low, rule.high)) {
      return Unexpected("integers of " + Bounds(rule), value);
    }
  }
  return Status::OK();
}

// Names of options, and of members of structs, that the linked RocksDB knows,
// taken from the text that it writes for its default options.
class LinkedOptions {
 public:
  static const LinkedOptions& Get() {
    static const LinkedOptions linked;
    return linked;
  }

  bool Knows(OptionScope scope, const std::string& name) const {
    return names_[static_cast<size_t>(scope)].contains(name);
  }
  bool KnowsMember(const std::string& name, const std::string& member) const {
    return members_.contains(name + "." + member);
  }

 private:
  LinkedOptions() {
    std::vector<NamedValue> database;
    FamilyDescription family;
    DescribeDatabase(rocksdb::DBOptions(), &database).PermitUncheckedError();
    rocksdb::ColumnFamilyOptions options;
    options.compression_per_level = {rocksdb::kNoCompression};  // else omitted
    DescribeFamily("", options, &family)
        .PermitUncheckedError();  // a failure leaves no names: tests find it
    Add(OptionScope::kDatabase, database);
    Add(OptionScope::kFamily, family.options);
    Add(OptionScope::kTable, family.table_options);
  }

  void Add(OptionScope scope, const std::vector<NamedValue>& options) {
    for (const NamedValue& option : options) {
      names_[static_cast<size_t>(scope)].insert(option.name);
      const OptionRule* rule = FindOptionRule(scope, option.name);
      std::vector<NamedValue> members;
      if (rule != nullptr && rule->kind == OptionKind::kStruct &&
          SplitMembers(option.value, &members).ok()) {
        for (const NamedValue& member : members) {
          members_.insert(option.name + "." + member.name);
        }
      }
    }
  }

  NameSet names_[3];
  NameSet members_;
};

Status CheckScalar(const OptionRule& rule, const std::string& value) {
  switch (rule.kind) {
    case OptionKind::kBool:
      return IsBool(value) ? Status::OK() : Unexpected("true or false", value);
    case OptionKind::kInteger:
      return IsIntegerWithin(value, rule.low, rule.high)
                 ? Status::OK()
                 : Unexpected("an integer of " + Bounds(rule), value);
    case OptionKind::kReal:
      return IsRealWithin(value, rule.low, rule.high)
                 ? Status::OK()
                 : Unexpected("a number of " + Bounds(rule), value);
    case OptionKind::kName:
    case OptionKind::kVitalName:
      return IsName(value) ? Status::OK() : Unexpected("a name", value);
    case OptionKind::kCompression:
      // "As the other levels" is valid only for this option.
      return value == "kDisableCompressionOption" &&
                     rule.name == std::string_view("bottommost_compression")
                 ? Status::OK()
                 : CheckCompression(value);
    default:
      return CheckList(rule, value);
  }
}

// Splits compression options in the form of old versions:
// "bits:level:strategy:...".
std::vector<NamedValue> MembersOfColonList(const std::string& value) {
  static constexpr const char* kNames[] = {
      "window_bits",          "level",
      "strategy",             "max_dict_bytes",
      "zstd_max_train_bytes", "parallel_threads",
      "enabled",              "max_dict_buffer_bytes",
      "use_zstd_dict_trainer"};
  const std::vector<std::string_view> parts = SplitAt(value, ':');
  std::vector<NamedValue> members;
  for (size_t i = 0; i < std::min(parts.size(), std::size(kNames)); ++i) {
    // In a list of six parts the last one is "enabled".
    const char* name = parts.size() == 6 && i == 5 ? "enabled" : kNames[i];
    members.push_back({name, std::string(parts[i])});
  }
  return members;
}

// Rebuilds a struct from its allowed and known members.
Status CheckStruct(const OptionRule& rule, const std::string& where,
                   std::string* value, std::vector<std::string>* notes) {
  std::vector<NamedValue> members;
  const bool colon_list = value->find('=') == std::string::npos &&
                          value->find(':') != std::string::npos;
  if (colon_list && rule.members == option_table::kCompressionMembers) {
    members = MembersOfColonList(*value);
  } else {
    Status s = SplitMembers(*value, &members);
    if (!s.ok()) {
      return s;
    }
  }
  std::string rebuilt = "{";
  NameSet seen;
  for (const NamedValue& member : members) {
    const OptionRule* known =
        FindIn({rule.members, rule.member_count}, member.name);
    if (!seen.insert(member.name).second) {
      return Unexpected("each member once", member.name);
    }
    if (known == nullptr || known->kind == OptionKind::kDropped ||
        !LinkedOptions::Get().KnowsMember(rule.name, member.name)) {
      if (!IsNullObject(member.value)) {
        AddNote(notes, where + ": " + rule.name + "." + Quoted(member.name) +
                           " is not known to this RocksDB and was dropped");
      }
      continue;
    }
    Status s = CheckScalar(*known, member.value);
    if (!s.ok()) {
      return WithContext(s, EndState::kIncompatible, member.name);
    }
    rebuilt += member.name + "=" + member.value + ";";
  }
  *value = rebuilt + "}";
  return Status::OK();
}

bool IsArgument(std::string_view text, const OptionRule& rule) {
  return IsBool(text) || IsRealWithin(text, rule.low, rule.high);
}

// True if `text` is a list of arguments behind an id: ":1:true" or ".8".
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

// Adds one note for all of them: a newer RocksDB has some twenty more.
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
    AddNote(notes, where + ": not known to this RocksDB and dropped:" + list);
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
    Status s = SplitMembers(value, &parts);
    if (!s.ok()) {
      return s;
    }
    if (parts.empty() || parts.front().name != "id") {
      return Unexpected("an object's id first", value);
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
                        here + ": expected once, found again");
    }
    if (option.value.size() > kMaxOptionValueBytes) {
      return MakeStatus(EndState::kIncompatible, here + ": value too long");
    }
    const OptionRule* rule = FindOptionRule(scope, option.name);
    if (rule != nullptr && rule->kind == OptionKind::kDropped) {
      const bool unset = IsNullObject(option.value) ||
                         option.value == "false" ||
                         option.value == "__hostname__";
      if (rule->reason != nullptr && !unset) {
        AddNote(notes, here + " was dropped: " + rule->reason);
      }
      continue;
    }
    if (rule == nullptr || !LinkedOptions::Get().Knows(scope, option.name)) {
      unknown.push_back(option.name);
      continue;
    }
    std::string value = option.value;
    Status s;
    if (rule->kind == OptionKind::kObject) {
      std::string id;
      if (IsNullObject(value)) {
        value = "nullptr";
      } else if (!CheckObject(value, *rule, &id, nullptr).ok()) {
        AddNote(notes, here + " was dropped: this RocksDB cannot make " +
                           Quoted(value));
        continue;
      }
    } else if (rule->kind == OptionKind::kStruct) {
      s = CheckStruct(*rule, where, &value, notes);
    } else {
      s = CheckScalar(*rule, value);
    }
    if (!s.ok()) {
      return WithContext(s, EndState::kIncompatible, here);
    }
    (*accepted)[option.name] = std::move(value);
  }
  NoteUnknown(where, unknown, notes);
  return Status::OK();
}

}  // namespace sstferry
