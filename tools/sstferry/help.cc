#include "tools/sstferry/help.h"

#include <algorithm>
#include <functional>

namespace sstferry {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kTextColumn = 26;

// Wraps the lines of a text. An empty line separates its paragraphs.
std::string Paragraph(const std::string& text) {
  const size_t end = text.find("\n\n");
  if (end != std::string::npos) {
    return Paragraph(text.substr(0, end)) + "\n" +
           Paragraph(text.substr(end + 2));
  }
  std::string wrapped;
  for (const std::string& line : WrapText(text, kColumns)) {
    wrapped += line + "\n";
  }
  return wrapped;
}

// Returns "  NAME    TEXT". The text is wrapped and begins at `column`. If the
// name is too long, the text begins on the next line.
std::string Row(const std::string& name, const std::string& text,
                size_t column) {
  std::string row = "  " + name;
  bool first = true;
  for (const std::string& line : WrapText(text, kColumns - column)) {
    const bool beside = first && row.size() + 2 <= column;
    if (beside) {
      row.append(column - row.size(), ' ');
    } else {
      row += "\n" + std::string(column, ' ');
    }
    row += line;
    first = false;
  }
  return row + "\n";
}

void AppendGroup(const Command& command, const OptionGroupName& group,
                 std::string* out) {
  const std::vector<OptionSpec> specs = OptionsIn(command, group.group);
  if (specs.empty()) {
    return;
  }
  *out += std::string("\n") + group.title + ":\n";
  for (const OptionSpec& spec : specs) {
    *out += Row(OptionForm(spec), HelpText(spec), kTextColumn);
  }
}

std::string ExitCodeTable() {
  std::string text = "Exit codes:\n";
  for (const ExitCodeRow& row : ExitCodes()) {
    const std::string states = row.states;
    text += Row(std::to_string(row.code),
                row.meaning + (states.empty() ? "" : ": " + states), 6);
  }
  return text;
}

// Returns the section "Values:" with the forms for which `used` returns true,
// or "" if there are none.
std::string ValueTable(const std::function<bool(const ValueForm&)>& used) {
  std::string rows;
  for (const ValueForm& form : ValueForms()) {
    rows += used(form) ? Row(form.name, form.about, 15) : "";
  }
  return rows.empty() ? "" : "\nValues:\n" + rows;
}

}  // namespace

const std::vector<OptionGroupName>& OptionGroups() {
  static const std::vector<OptionGroupName> groups = {
      {OptionGroup::kCommon, "common", "Common options"},
      {OptionGroup::kNetwork, "network", "Network and TLS"},
      {OptionGroup::kLimits, "limits", "Limits"},
      {OptionGroup::kOutput, "output", "Output"},
      {OptionGroup::kAdvanced, "advanced", "Advanced"},
      {OptionGroup::kEvery, "every", "Options of every command"},
  };
  return groups;
}

std::vector<OptionSpec> OptionsIn(const Command& command, OptionGroup group) {
  std::vector<OptionSpec> found;
  for (const OptionSpec& spec : AllOptions(command)) {
    if (spec.group == group) {
      found.push_back(spec);
    }
  }
  return found;
}

std::string OptionForm(const OptionSpec& spec) {
  const std::string name = std::string("--") + spec.name;
  if (spec.value == nullptr) {
    return name;
  }
  const std::string value = spec.value;
  return name + (value.compare(0, 2, "[=") == 0 ? "" : " ") + value;
}

const std::vector<ExitCodeRow>& ExitCodes() {
  static const std::vector<ExitCodeRow> rows = {
      {0, "", "OK"},
      {1, "REFUSED, INCOMPATIBLE, DENIED, CORRUPT, SOURCE_ERROR, INTERNAL",
       "failed; remove the cause before you run it again"},
      {2, "", "wrong usage; nothing was changed"},
      {3, "DIFFERENT, CHANGED_SINCE",
       "verify found differences (CHANGED_SINCE: writes since the pull can "
       "explain them)"},
      {4, "CANCELLED, DEADLINE, DEAD_PEER, TOO_SLOW, SNAPSHOT_GONE, NO_SPACE",
       "interrupted; run the same command again to resume or start over"},
      {5, "BUSY",
       "another process has the target open, so nothing was done; run it again "
       "later"},
  };
  return rows;
}

const std::vector<ValueForm>& ValueForms() {
  static const std::vector<ValueForm> forms = {
      {"BYTES",
       "64M, 1.5G or 64MiB: K M G T are powers of 1000, Ki Mi Gi Ti of "
       "1024"},
      {"DURATION", "90s, 1h30m or 1d: numbers with d, h, m, s or ms"},
      {"ADDRESS",
       "HOST[:PORT] or unix:/PATH; without PORT: 7420; an IPv6 HOST in []"},
      {"KEY", "text, or 0x and an even number of hex digits"},
      {"SOURCE",
       "a directory, HOST:/DIR, ssh://HOST/DIR, sst://HOST[:PORT]/NAME or "
       "unix:/PATH:NAME; without PORT: 7420; an IPv6 HOST in []"},
      {"LEFT, RIGHT",
       "each as SOURCE: a directory, HOST:/DIR, ssh://HOST/DIR, "
       "sst://HOST[:PORT]/NAME or unix:/PATH:NAME"},
  };
  return forms;
}

bool UsesValue(const Command& command, const ValueForm& form) {
  const std::string name = form.name;
  const std::string first_word = name.substr(0, name.find(','));
  for (const OptionSpec& spec : AllOptions(command)) {
    if (spec.value != nullptr && name == spec.value) {
      return true;
    }
  }
  const std::string synopsis = command.synopsis;
  const size_t at = synopsis.find(first_word);
  const size_t end = at + first_word.size();
  const bool begins =
      at == 0 || (at != std::string::npos && synopsis[at - 1] == ' ');
  return begins && (end == synopsis.size() || synopsis[end] == ' ' ||
                    synopsis[end] == '|');
}

std::vector<std::string> WrapText(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  if (!line.empty()) {
    lines.push_back(line);
  }
  return lines;
}

bool CommandHelp(const Command& command, const std::string& group,
                 std::string* out) {
  const std::string program = std::string("sstferry ") + command.name;
  *out = Paragraph("Usage: " + program + " " + command.synopsis) + "\n" +
         Paragraph(command.about);
  bool known = group == "all";
  for (const OptionGroupName& name : OptionGroups()) {
    if (group == "all") {
      if (name.group != OptionGroup::kEvery) AppendGroup(command, name, out);
    } else if (group == name.word && !OptionsIn(command, name.group).empty()) {
      AppendGroup(command, name, out);
      known = true;
    }
  }
  *out += ValueTable([&](const ValueForm& form) {
            return UsesValue(command, form);
          }) + "\n";
  if (group == "all") {
    *out += ExitCodeTable() + "\n" +
            Paragraph("Options of every command: " + program +
                      " --help=every.");
  } else {
    *out += Paragraph("Exit codes: 0 OK, 1 failed, 2 wrong usage, 3 "
                      "DIFFERENT, 4 interrupted (run it again), 5 BUSY; see "
                      "sstferry help.");
    *out += Paragraph("More options: " + program + " --help=GROUP, where "
                      "GROUP is " + HelpGroupNames(command) + ".");
  }
  return known;
}

std::string HelpGroupNames(const Command& command) {
  std::string names;
  for (const OptionGroupName& name : OptionGroups()) {
    if (!OptionsIn(command, name.group).empty()) {
      names += std::string(name.word) + ", ";
    }
  }
  names.resize(names.size() - 2);
  return names + " or all";
}

std::string AboutProgram() {
  return "sstferry makes replicas of RocksDB databases: it copies a database "
         "to another machine while a process has it open, checks every block, "
         "and later sends only what changed. It never writes to the source.";
}

std::string GeneralHelp() {
  std::string text = Paragraph(AboutProgram()) +
                     "\nUsage: sstferry COMMAND [options]\n\nCommands:\n";
  for (const Command& command : Commands()) {
    text += Row(command.name, std::string(command.summary) + ".", 12);
  }
  return text + "\n" + ExitCodeTable() + "\n" +
         Paragraph("sstferry help COMMAND shows the common options of a "
                   "command, sstferry help COMMAND all shows all of them, "
                   "sstferry -V prints versions.");
}

}  // namespace sstferry
