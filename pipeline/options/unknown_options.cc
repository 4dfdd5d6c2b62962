#include "pipeline/options/unknown_options.h"

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "format/limits.h"
#include "format/options_line.h"
#include "format/rocksdb/known.h"
#include "pipeline/options/option_rules.h"
#include "pipeline/options/options_file.h"

namespace sstferry {
namespace {

// Maximum size of the list of options in a note. The difference leaves room for
// the other parts of the note, and for one more option whose bytes are all
// written as \xNN.
constexpr size_t kMaxListBytes = kMaxNoteBytes - 180;

// Finds unknown names line by line.
class UnknownFinder {
 public:
  void Add(const std::string& line) {
    std::string name;
    std::string value;
    if (line.size() > 1 && line.front() == '[' && line.back() == ']') {
      Begin(line);
    } else if (!is_version_ && SplitOptionLine(line, &name, &value)) {
      if (!kind_.has_value() || FindKnown(*kind_, name) == nullptr) {
        Take(name, value);
      } else if (HasKnownMembers(name)) {
        LookAtMembers(name, value);
      }
    }
  }

  UnknownOptions Found() && { return std::move(found_); }

 private:
  void Begin(const std::string& line) {
    const std::string title =
        TrimOptionText(line.substr(1, line.find_first_of("\"]", 1) - 1));
    is_version_ = title == "Version";
    kind_ = OptionsOfSection(title);
    if (kind_ == KnownKind::kDatabaseOption) {
      where_ = "the database";
    } else if (kind_.has_value()) {
      where_ = "column family " + Quoted(FamilyOfSection(line).value_or(""));
    } else {
      where_ = "section " + Quoted(title);
    }
  }

  // Searches a struct for unknown members. Values that are no structs have no
  // members.
  void LookAtMembers(const std::string& name, const std::string& value) {
    std::vector<NamedValue> members;
    if (!value.starts_with('{') || !SplitMembers(value, &members).ok()) {
      return;
    }
    for (const NamedValue& member : members) {
      if (FindKnown(KnownKind::kOptionMember, member.name) == nullptr) {
        Take(name + "." + member.name, member.value);
      }
    }
  }

  void Take(const std::string& name, const std::string& value) {
    if (names_.size() == kMaxUnknownOptions || !names_.insert(name).second) {
      return;
    }
    found_.count = names_.size();
    if (found_.first.size() < kToldUnknownOptions) {
      found_.first.push_back({where_, name, value});
    }
  }

  bool is_version_ = true;  // true before the first section, too
  std::optional<KnownKind> kind_;
  std::string where_;
  std::set<std::string> names_;
  UnknownOptions found_;
};

}  // namespace

UnknownOptions FindUnknownOptions(const std::string& options_text) {
  UnknownFinder finder;
  ForEachLine(options_text, [&finder](const std::string& line) {
    finder.Add(OptionLineText(line));
  });
  return std::move(finder).Found();
}

std::string UnknownOptionsNote(const UnknownOptions& unknown) {
  if (unknown.count == 0) {
    return "";
  }
  std::string list;
  uint64_t listed = 0;
  for (const UnknownOption& option : unknown.first) {
    const std::string one = (list.empty() ? " " : ", ") + Quoted(option.name) +
                            " = " + Quoted(option.value) + " (" +
                            option.where + ")";
    if (list.size() + one.size() > kMaxListBytes) {
      break;
    }
    list += one;
    ++listed;
  }
  if (unknown.count > listed) {
    list += " and " + std::to_string(unknown.count - listed) + " more";
  }
  return "OPTIONS: this sstferry does not know " +
         std::to_string(unknown.count) +
         (unknown.count == 1 ? " option, nor what it changes:"
                             : " options, nor what they change:") +
         list +
         "; a newer sstferry may know them";
}

void NoteUnknownOptions(const std::string& options_text,
                        std::vector<std::string>* notes) {
  const std::string note = UnknownOptionsNote(FindUnknownOptions(options_text));
  if (!note.empty()) {
    AddNote(notes, note);
  }
}

}  // namespace sstferry
