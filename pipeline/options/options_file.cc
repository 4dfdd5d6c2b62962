#include "pipeline/options/options_file.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/options_line.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/convenience.h"
#include "rocksdb/env.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/options_util.h"

namespace sstferry {
namespace {

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::DBOptions;
using rocksdb::Slice;
using rocksdb::Status;

constexpr std::string_view kTablePrefix = "TableOptions/";
constexpr size_t kMaxLineBytes =
    std::max(kMaxOptionValueBytes, 2 * kMaxFamilyNameBytes) +
    kMaxIdentifierBytes;

Status BadLine(size_t line, const std::string& what) {
  return MakeStatus(EndState::kCorrupt,
                    "OPTIONS line " + std::to_string(line) + ": " + what);
}

struct Section {
  std::string title;
  std::string argument;
};

Section ParseSection(std::string_view line) {
  Section section;
  const size_t first = line.find('"');
  const size_t last = line.rfind('"');
  if (first != std::string_view::npos && first != last) {
    section.title = TrimOptionText(std::string(line.substr(1, first - 1)));
    section.argument =
        UnescapeOptionText(line.substr(first + 1, last - first - 1));
  } else {
    section.title =
        TrimOptionText(std::string(line.substr(1, line.size() - 2)));
  }
  return section;
}

Status ParseStatement(std::string_view line, size_t number, NamedValue* out) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return BadLine(number, "expected name=value, found " +
                               Quoted(Slice(line.data(), line.size())));
  }
  out->name = TrimOptionText(std::string(line.substr(0, equals)));
  out->value = TrimOptionText(std::string(line.substr(equals + 1)));
  if (out->name.empty() || out->name.size() > kMaxIdentifierBytes) {
    return BadLine(number, "expected an option name of 1 to " +
                               std::to_string(kMaxIdentifierBytes) +
                               " bytes, found " +
                               std::to_string(out->name.size()));
  }
  if (out->value.size() > kMaxOptionValueBytes) {
    return BadLine(number, "expected a value of at most " +
                               std::to_string(kMaxOptionValueBytes) +
                               " bytes, found " +
                               std::to_string(out->value.size()));
  }
  if (line.find('\0') != std::string_view::npos) {
    return BadLine(number, "expected text, found a NUL byte");
  }
  return Status::OK();
}

// Parses the lines of an OPTIONS text, section by section.
class OptionsTextParser {
 public:
  OptionsTextParser(DatabaseDescription* out, std::vector<std::string>* notes)
      : out_(out), notes_(notes) {}

  [[nodiscard]] Status Add(std::string_view raw, size_t number) {
    const std::string line = OptionLineText(std::string(raw));
    if (line.empty()) {
      return Status::OK();
    }
    if (line.front() == '[' && line.back() == ']' && line.size() > 1) {
      return BeginSection(ParseSection(line), number);
    }
    NamedValue option;
    RETURN_IF_ERROR(ParseStatement(line, number, &option));
    return AddOption(std::move(option), number);
  }

  [[nodiscard]] Status Finish() const {
    if (!seen_.contains("DBOptions")) {
      return MakeStatus(EndState::kCorrupt,
                        "OPTIONS: expected a section DBOptions, found none");
    }
    if (!families_.contains("default")) {
      return MakeStatus(
          EndState::kCorrupt,
          "OPTIONS: expected a section of the column family default, found "
          "none");
    }
    return Status::OK();
  }

 private:
  enum class Where { kNowhere, kIgnored, kVersion, kDatabase, kFamily, kTable };

  Status BeginSection(Section section, size_t number) {
    names_.clear();
    const bool is_table = section.title.compare(0, kTablePrefix.size(),
                                                kTablePrefix) == 0;
    const bool is_family = section.title == "CFOptions";
    if ((is_table || is_family) &&
        section.argument.size() > kMaxFamilyNameBytes) {
      return BadLine(number, "expected a family name of at most " +
                                 std::to_string(kMaxFamilyNameBytes) +
                                 " bytes, found " +
                                 std::to_string(section.argument.size()));
    }
    if (!is_table && !is_family && section.title != "DBOptions" &&
        section.title != "Version") {
      where_ = Where::kIgnored;
      AddNote(notes_, "OPTIONS: section " + Quoted(section.title) +
                          " is not known and was left out");
      return Status::OK();
    }
    if (!seen_.insert(is_table ? "Table " + section.argument
                      : is_family ? "Family " + section.argument
                                  : section.title)
             .second) {
      return BadLine(number, "expected one section " + section.title + " " +
                                 Quoted(section.argument) +
                                 ", found a second one");
    }
    if (is_table) {
      return BeginTable(section, number);
    }
    if (is_family) {
      return BeginFamily(section, number);
    }
    where_ = section.title == "Version" ? Where::kVersion : Where::kDatabase;
    return Status::OK();
  }

  Status BeginFamily(const Section& section, size_t number) {
    if (out_->families.size() == kMaxFamilies) {
      return BadLine(number, "expected at most " +
                                 std::to_string(kMaxFamilies) +
                                 " families, found more");
    }
    families_[section.argument] = out_->families.size();
    family_ = out_->families.size();
    out_->families.emplace_back();
    out_->families.back().name = section.argument;
    where_ = Where::kFamily;
    return Status::OK();
  }

  Status BeginTable(const Section& section, size_t number) {
    const auto it = families_.find(section.argument);
    if (it == families_.end()) {
      return BadLine(number, "expected the column family's section before the "
                             "section of its tables, found no family " +
                                 Quoted(section.argument));
    }
    family_ = it->second;
    // The title contains the name of the table factory, as in
    // TableOptions/BlockBasedTable.
    FamilyDescription& family = out_->families[family_];
    family.table_factory = section.title.substr(kTablePrefix.size());
    if (family.table_factory.size() > kMaxIdentifierBytes) {
      return BadLine(number, "expected a table factory's name of at most " +
                                 std::to_string(kMaxIdentifierBytes) +
                                 " bytes, found " +
                                 std::to_string(family.table_factory.size()));
    }
    where_ = Where::kTable;
    return Status::OK();
  }

  Status AddOption(NamedValue option, size_t number) {
    if (where_ == Where::kNowhere) {
      return BadLine(number, "expected a section before its options, found " +
                                 Quoted(option.name));
    }
    if (where_ == Where::kVersion && option.name == "rocksdb_version" &&
        !ParseRelease(option.value, &out_->release)) {
      out_->release = RocksDbRelease();
    }
    if (where_ == Where::kIgnored || where_ == Where::kVersion) {
      return Status::OK();
    }
    if (!names_.insert(option.name).second) {
      return BadLine(number, "expected option " + Quoted(option.name) +
                                 " once, found it again");
    }
    if (names_.size() > kMaxOptionCount) {
      return BadLine(number, "expected at most " +
                                 std::to_string(kMaxOptionCount) +
                                 " options in a section, found more");
    }
    if (where_ == Where::kDatabase) {
      out_->options.push_back(std::move(option));
      return Status::OK();
    }
    FamilyDescription& family = out_->families[family_];
    if (where_ == Where::kTable) {
      family.table_options.push_back(std::move(option));
      return Status::OK();
    }
    std::string* named = option.name == "comparator" ? &family.comparator
                         : option.name == "merge_operator"
                             ? &family.merge_operator
                         : option.name == "table_factory"
                             ? &family.table_factory
                             : nullptr;
    if (named == nullptr) {
      family.options.push_back(std::move(option));
      return Status::OK();
    }
    if (option.value.size() > kMaxIdentifierBytes) {
      return BadLine(number, "expected a name of at most " +
                                 std::to_string(kMaxIdentifierBytes) +
                                 " bytes, found " +
                                 std::to_string(option.value.size()));
    }
    *named = IsNullObject(option.value) ? "" : std::move(option.value);
    return Status::OK();
  }

  DatabaseDescription* const out_;
  std::vector<std::string>* const notes_;
  Where where_ = Where::kNowhere;
  size_t family_ = 0;  // index of the family of the current section
  std::unordered_map<std::string, size_t> families_;
  std::unordered_set<std::string> seen_;   // sections parsed so far
  std::unordered_set<std::string> names_;  // options of the current section
};

// Passes each line to the parser, with its number. The first line has number 1.
Status ParseLines(const Slice& text, OptionsTextParser* parser) {
  std::string_view rest(text.data(), text.size());
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    if (line.size() > kMaxLineBytes) {
      return BadLine(number, "expected at most " +
                                 std::to_string(kMaxLineBytes) +
                                 " bytes, found " +
                                 std::to_string(line.size()));
    }
    RETURN_IF_ERROR(parser->Add(line, number));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return Status::OK();
}

rocksdb::ConfigOptions LinesConfig() {
  rocksdb::ConfigOptions config;
  config.delimiter = "\n";
  return config;
}

}  // namespace

Status ParseOptionsText(const Slice& text, DatabaseDescription* out,
                        std::vector<std::string>* notes) {
  *out = DatabaseDescription();
  if (text.size() > kMaxOptionsTextBytes) {
    return MakeStatus(EndState::kCorrupt,
                      "OPTIONS: expected at most " +
                          std::to_string(kMaxOptionsTextBytes) +
                          " bytes, found " + std::to_string(text.size()));
  }
  OptionsTextParser parser(out, notes);
  RETURN_IF_ERROR(ParseLines(text, &parser));
  return parser.Finish();
}

Status DescribeFamily(const std::string& name,
                      const rocksdb::ColumnFamilyOptions& options,
                      FamilyDescription* out) {
  std::string text;
  Status s = rocksdb::GetStringFromColumnFamilyOptions(LinesConfig(), options,
                                                       &text);
  std::string table;
  if (s.ok() && options.table_factory != nullptr) {
    s = options.table_factory->GetOptionString(LinesConfig(), &table);
  }
  if (!s.ok()) {
    return WithContext(s, EndState::kInternal,
                       "column family " + Quoted(name));
  }
  std::string whole = "[CFOptions \"x\"]\n" + text + "\n";
  if (options.table_factory != nullptr) {
    whole += "[" + std::string(kTablePrefix) + options.table_factory->Name() +
             " \"x\"]\n" + table + "\n";
  }
  DatabaseDescription description;
  std::vector<std::string> notes;
  OptionsTextParser parser(&description, &notes);
  s = ParseLines(whole, &parser);
  if (!s.ok()) {
    return WithContext(s, EndState::kCorrupt, "column family " + Quoted(name));
  }
  *out = std::move(description.families.front());
  out->name = name;
  return Status::OK();
}

namespace {

// Escapes a family's name in the same way as RocksDB does in section titles.
std::string Escape(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c == '\n' || c == '\r') {
      out += c == '\n' ? "\\n" : "\\r";
      continue;
    }
    if (c == '\\' || c == ':' || c == '#') {
      out.push_back('\\');
    }
    out.push_back(c);
  }
  return out;
}

Status AppendOption(const std::string& name, const std::string& value,
                    std::string* text) {
  const auto is_line = [](const std::string& part) {
    return part.find_first_of(std::string("\n\r\0", 3)) == std::string::npos;
  };
  if (!is_line(name) || !is_line(value) || name.empty() ||
      name.find_first_of("=#[]\\") != std::string::npos) {
    return MakeStatus(EndState::kCorrupt,
                      "options: expected one line of text, found " +
                          Quoted(name) + "=" + Quoted(value));
  }
  *text += "  " + name + "=" + value + "\n";
  return Status::OK();
}

Status AppendOptions(const std::vector<NamedValue>& options,
                     std::string* text) {
  for (const NamedValue& option : options) {
    RETURN_IF_ERROR(AppendOption(option.name, option.value, text));
  }
  return Status::OK();
}

Status AppendFamily(const FamilyDescription& family, std::string* text) {
  const std::string name = "\"" + Escape(family.name) + "\"]\n";
  *text += "\n[CFOptions " + name;
  RETURN_IF_ERROR(AppendOptions(family.options, text));
  if (!family.comparator.empty()) {
    RETURN_IF_ERROR(AppendOption("comparator", family.comparator, text));
  }
  RETURN_IF_ERROR(AppendOption(
      "merge_operator",
      family.merge_operator.empty() ? "nullptr" : family.merge_operator, text));
  const std::string table = family.table_factory.empty()
                                ? "BlockBasedTable"
                                : family.table_factory;
  RETURN_IF_ERROR(AppendOption("table_factory", table, text));
  *text += "\n[" + std::string(kTablePrefix) + table + " " + name;
  return AppendOptions(family.table_options, text);
}

}  // namespace

Status WriteOptionsText(const DatabaseDescription& description,
                        std::string* text) {
  *text = "# This is a RocksDB option file.\n\n[Version]\n  rocksdb_version=" +
          ReleaseNumbers(description.release) +
          "\n  options_file_version=1.1\n\n[DBOptions]\n";
  RETURN_IF_ERROR(AppendOptions(description.options, text));
  const auto is_default = [](const FamilyDescription& family) {
    return family.name == rocksdb::kDefaultColumnFamilyName;
  };
  FamilyDescription first;
  first.name = rocksdb::kDefaultColumnFamilyName;
  const auto found = std::find_if(description.families.begin(),
                                  description.families.end(), is_default);
  RETURN_IF_ERROR(AppendFamily(
      found != description.families.end() ? *found : first, text));
  for (const FamilyDescription& family : description.families) {
    if (!is_default(family)) RETURN_IF_ERROR(AppendFamily(family, text));
  }
  return Status::OK();
}

namespace {

// Changes the text of an OPTIONS file so that the linked RocksDB can load it.
// Sets a version above all releases, so that RocksDB ignores unknown names.
// Lowers a format_version that is too high. Removes sections of unknown kinds,
// because RocksDB would fail on them.
std::string Loadable(const std::string& text) {
  std::string out;
  bool is_known = true;
  ForEachLine(text, [&](const std::string& line) {
    std::string name;
    std::string value;
    const std::string bare = OptionLineText(line);
    if (bare.size() > 1 && bare.front() == '[') {
      const std::string title = ParseSection(bare).title;
      is_known = title == "Version" || title == "DBOptions" ||
                 title == "CFOptions" || title.starts_with(kTablePrefix);
    }
    if (!is_known) {
      return;
    }
    const bool is_option = SplitOptionLine(line, &name, &value);
    if (is_option && name == "rocksdb_version") {
      out += "  rocksdb_version=99.0.0\n";
    } else if (is_option && name == "format_version" &&
               std::strtoull(value.c_str(), nullptr, 10) >
                   kMaxTableFormatVersion) {
      out +=
          "  format_version=" + std::to_string(kMaxTableFormatVersion) + "\n";
    } else {
      out += line + "\n";
    }
  });
  return out;
}

}  // namespace

Status LoadOptionsText(const std::string& text, DBOptions* database,
                       std::vector<ColumnFamilyDescriptor>* families,
                       std::shared_ptr<rocksdb::Cache>* cache) {
  constexpr char kPath[] = "/OPTIONS-000001";
  const std::unique_ptr<rocksdb::Env> memory(
      rocksdb::NewMemEnv(rocksdb::Env::Default()));
  rocksdb::ConfigOptions config;
  config.ignore_unknown_options = true;
  config.ignore_unsupported_options = true;
  config.env = memory.get();
  Status s = rocksdb::WriteStringToFile(memory.get(), Loadable(text), kPath);
  if (s.ok()) {
    s = rocksdb::LoadOptionsFromFile(config, kPath, database, families, cache);
  }
  database->env = rocksdb::Env::Default();  // because `memory` is deleted here
  return s;
}

std::optional<std::string> FamilyOfSection(const std::string& line) {
  const std::string bare = OptionLineText(line);
  return bare.starts_with('[') ? std::optional(ParseSection(bare).argument)
                               : std::nullopt;
}

bool IsNullObject(const Slice& value) {
  return value.empty() || value == "nullptr" || value == "{}";
}

std::string Quoted(const Slice& text) {
  constexpr size_t kShownBytes = 64;
  std::string out = "'";
  for (size_t i = 0; i < std::min(text.size(), kShownBytes); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x7f) {
      out.push_back(static_cast<char>(c));
    } else {
      char hex[5];
      snprintf(hex, sizeof(hex), "\\x%02x", c);
      out += hex;
    }
  }
  return out + (text.size() > kShownBytes ? "'..." : "'");
}

void AddNote(std::vector<std::string>* notes, const std::string& note) {
  if (notes->size() + 1 < kMaxNotes) {
    notes->push_back(note);
  } else if (notes->size() + 1 == kMaxNotes) {
    notes->push_back("further notes were left out");
  }
}

}  // namespace sstferry
