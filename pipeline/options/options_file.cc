#include "pipeline/options/options_file.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "format/end_state.h"
#include "format/limits.h"
#include "rocksdb/convenience.h"
#include "rocksdb/table.h"

namespace sstferry {
namespace {

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

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Removes a comment: a '#' begins one unless a backslash precedes it.
std::string_view WithoutComment(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '#') {
      return line.substr(0, i);
    }
  }
  return line;
}

std::string Unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    const char c = text[++i];
    out.push_back(c == 'n' ? '\n' : c == 'r' ? '\r' : c);
  }
  return out;
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
    section.title = Trim(line.substr(1, first - 1));
    section.argument = Unescape(line.substr(first + 1, last - first - 1));
  } else {
    section.title = Trim(line.substr(1, line.size() - 2));
  }
  return section;
}

Status ParseStatement(std::string_view line, size_t number, NamedValue* out) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return BadLine(number, "expected name=value, found " +
                               Quoted(Slice(line.data(), line.size())));
  }
  out->name = Trim(line.substr(0, equals));
  out->value = Trim(line.substr(equals + 1));
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
    const std::string_view line = Trim(WithoutComment(raw));
    if (line.empty()) {
      return Status::OK();
    }
    if (line.front() == '[' && line.back() == ']' && line.size() > 1) {
      return BeginSection(ParseSection(line), number);
    }
    NamedValue option;
    Status s = ParseStatement(line, number, &option);
    if (!s.ok()) {
      return s;
    }
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
          "OPTIONS: expected a section of family default, found none");
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
                                 Quoted(section.argument) + ", found another");
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
      return BadLine(number, "expected a family before its table, found " +
                                 Quoted(section.argument));
    }
    family_ = it->second;
    // The section's name is that of the family that the following options are
    // for.
    FamilyDescription& family = out_->families[family_];
    family.table_factory = section.title.substr(kTablePrefix.size());
    if (family.table_factory.size() > kMaxIdentifierBytes) {
      return BadLine(number, "expected a short table factory, found a long one");
    }
    where_ = Where::kTable;
    return Status::OK();
  }

  Status AddOption(NamedValue option, size_t number) {
    if (where_ == Where::kNowhere) {
      return BadLine(number, "expected a section first, found " +
                                 Quoted(option.name));
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
  std::unordered_set<std::string> seen_;   // sections so far
  std::unordered_set<std::string> names_;  // options of the current section
};

// Passes the lines to a parser, numbered from 1.
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
    Status s = parser->Add(line, number);
    if (!s.ok()) {
      return s;
    }
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
  Status s = ParseLines(text, &parser);
  return s.ok() ? parser.Finish() : s;
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

Status DescribeDatabase(const rocksdb::DBOptions& options,
                        std::vector<NamedValue>* out) {
  std::string text;
  Status s = rocksdb::GetStringFromDBOptions(LinesConfig(), options, &text);
  if (!s.ok()) {
    return WithContext(s, EndState::kInternal, "database options");
  }
  DatabaseDescription description;
  std::vector<std::string> notes;
  OptionsTextParser parser(&description, &notes);
  s = ParseLines("[DBOptions]\n" + text + "\n", &parser);
  if (s.ok()) {
    *out = std::move(description.options);
  }
  return s;
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
