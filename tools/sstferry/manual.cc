#include "tools/sstferry/manual.h"

#include <algorithm>
#include <cctype>

#include "tools/sstferry/help.h"

namespace sstferry {
namespace {

constexpr size_t kManualColumns = 80;

std::string Wrapped(const std::string& text, const std::string& first,
                    const std::string& rest) {
  std::string wrapped;
  for (const std::string& line : WrapText(text, kManualColumns - rest.size())) {
    wrapped += (wrapped.empty() ? first : rest) + line + "\n";
  }
  return wrapped;
}

// A line of a Markdown list.
std::string Item(const std::string& text) { return Wrapped(text, "- ", "  "); }

std::string CodeBlock(const std::string& text) {
  return "```sh\n" + text + "\n```\n";
}

std::string Anchor(const std::string& command) {
  return "#sstferry-" + command;
}

std::string ExitCodesMarkdown() {
  std::string text = "\n## Exit codes\n\n| code | end states | meaning |\n"
                     "|---|---|---|\n";
  for (const ExitCodeRow& row : ExitCodes()) {
    text += "| " + std::to_string(row.code) + " | " + row.states + " | " +
            row.meaning + " |\n";
  }
  return text;
}

std::string CommandMarkdown(const Command& command) {
  const std::string program = std::string("sstferry ") + command.name;
  std::string text = "\n## " + program + "\n\n" +
                     CodeBlock(program + " " + command.synopsis) + "\n" +
                     Wrapped(command.about, "", "");
  for (const CommandExample& example : command.examples) {
    text += "\n" + Wrapped(std::string(example.about) + ":", "", "") + "\n" +
            CodeBlock(example.line);
  }
  for (const OptionGroupName& group : OptionGroups()) {
    std::string items;
    for (const OptionSpec& spec : command.options) {
      items += spec.group == group.group
                   ? Item("`" + OptionForm(spec) + "`: " + HelpText(spec))
                   : "";
    }
    text += items.empty() ? ""
                          : std::string("\n### ") + group.title + "\n\n" +
                                items;
  }
  return text;
}

// Text between roff macros: no line begins with a macro, no dash is a hyphen.
std::string Roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    const bool starts_line = escaped.empty() || escaped.back() == '\n';
    if (starts_line && (c == '.' || c == '\'')) {
      escaped += "\\&";
    }
    escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return escaped;
}

std::string Tagged(const std::string& tag, const std::string& text) {
  return ".TP\n\\fB" + Roff(tag) + "\\fR\n" + Roff(text) + "\n";
}

std::string Title(const std::string& name, const std::string& section,
                  const std::string& version, const std::string& summary) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return ".TH \"" + Roff(upper) + "\" " + section + " \"\" \"sstferry " +
         version + "\" \"sstferry manual\"\n.nh\n.ad l\n.SH NAME\n" +
         Roff(name) + " \\- " + Roff(summary) + "\n";
}

std::string LowerFirst(std::string text) {
  text[0] =
      static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string ExitCodesRoff() {
  std::string text = ".SH \"EXIT STATUS\"\n";
  for (const ExitCodeRow& row : ExitCodes()) {
    const std::string states = row.states;
    text += Tagged(std::to_string(row.code),
                   std::string(row.meaning) +
                       (states.empty() ? "" : ": " + states));
  }
  return text;
}

// ".BR sstferry-pull (1)", with a comma where more follow.
std::string SeeAlso(const std::vector<std::pair<std::string, std::string>>&
                        pages) {
  std::string text = ".SH \"SEE ALSO\"\n";
  for (size_t i = 0; i < pages.size(); ++i) {
    text += ".BR " + Roff(pages[i].first) + " (" + pages[i].second + ")" +
            (i + 1 < pages.size() ? ",\n" : "\n");
  }
  return text;
}

std::string CommandRoff(const Command& command, const std::string& version) {
  const std::string name = std::string("sstferry-") + command.name;
  std::string text =
      Title(name, "1", version, LowerFirst(command.summary)) +
      ".SH SYNOPSIS\n\\fBsstferry " + Roff(command.name) + "\\fR " +
      Roff(command.synopsis) + "\n.SH DESCRIPTION\n" +
      Roff(command.about) + "\n.SH OPTIONS\n";
  for (const OptionGroupName& group : OptionGroups()) {
    const std::vector<OptionSpec> specs = OptionsIn(command, group.group);
    text += specs.empty() ? "" : std::string(".SS \"") + group.title + "\"\n";
    for (const OptionSpec& spec : specs) {
      text += Tagged(OptionForm(spec), HelpText(spec));
    }
  }
  std::string values;
  for (const ValueForm& form : ValueForms()) {
    values += UsesValue(command, form) ? Tagged(form.name, form.about) : "";
  }
  text += values.empty() ? "" : ".SH VALUES\n" + values;
  text += ExitCodesRoff() + ".SH EXAMPLES\n";
  for (const CommandExample& example : command.examples) {
    const bool first = &example == &command.examples.front();
    text += (first ? "" : ".PP\n") + Roff(example.about) + ":\n.PP\n.RS 4\n" +
            Roff(example.line) + "\n.RE\n";
  }
  std::vector<std::pair<std::string, std::string>> pages = {{"sstferry", "1"}};
  if (name == "sstferry-serve") {
    pages.emplace_back("sstferry-serve.service", "8");
  }
  return text + SeeAlso(pages);
}

std::string ProgramRoff(const std::string& version) {
  std::string text =
      Title("sstferry", "1", version,
            "copy RocksDB databases between machines") +
      ".SH SYNOPSIS\n\\fBsstferry\\fR COMMAND [options]\n.br\n"
      "\\fBsstferry help\\fR [COMMAND [GROUP]]\n.br\n"
      "\\fBsstferry \\-V\\fR\n.SH DESCRIPTION\n" +
      Roff(AboutProgram()) + "\n.SH COMMANDS\n";
  std::vector<std::pair<std::string, std::string>> pages;
  for (const Command& command : Commands()) {
    const std::string page = std::string("sstferry-") + command.name;
    text += Tagged(command.name,
                   std::string(command.summary) + ": see " + page + "(1).");
    pages.emplace_back(page, "1");
  }
  return text + ExitCodesRoff() + SeeAlso(pages);
}

std::string ServiceRoff(const std::string& version) {
  return Title("sstferry-serve.service", "8", version,
               "serve RocksDB databases to their replicas") +
         ".SH SYNOPSIS\nsystemctl enable \\-\\-now sstferry\\-serve.service\n"
         ".SH DESCRIPTION\n" +
         Roff(
             "The service runs sstferry serve with the options in "
             "/etc/sstferry/serve.toml, for instance:\n") +
         ".PP\n.RS 4\n.nf\n"
         "db = \"users=/data/users\"\nlisten = \"0.0.0.0:7420\"\n"
         "tls = \"/etc/sstferry/tls\"\n.fi\n.RE\n.PP\n" +
         Roff(
             "systemctl reload makes it read max-rate, log-level, certificates "
             "and the allow list again. "
             "Where one account owns all databases, "
             "sstferry-serve@ACCOUNT.service runs as that account, without "
             "capabilities, with /etc/sstferry/serve-ACCOUNT.toml. "
             "systemd restarts it after a failure, but not after wrong usage "
             "(exit code 2). Log lines go to the journal: journalctl -u "
             "sstferry-serve.\n") +
         ".SH FILES\n" +
         Tagged("/etc/sstferry/serve.toml",
                "Options of sstferry serve by their names, as TOML.") +
         SeeAlso({{"sstferry-serve", "1"}, {"systemctl", "1"}});
}

}  // namespace

std::string CommandsMarkdown() {
  std::string text =
      "# Commands\n\n"
      "<!-- Made from the tables of options: cmake --build BUILD_DIR --target "
      "commands_md -->\n\n" +
      Wrapped("Every command also shows this with `sstferry COMMAND "
              "--help=all`. An option's value follows after a space or `=`.",
              "", "") +
      "\n";
  for (const Command& command : Commands()) {
    text += Item("[sstferry " + std::string(command.name) + "](" +
                 Anchor(command.name) + "): " + command.summary + ".");
  }
  for (const Command& command : Commands()) {
    text += CommandMarkdown(command);
  }
  text += "\n## Options of every command\n\n";
  for (const OptionSpec& spec : CommonOptions()) {
    text += Item("`" + OptionForm(spec) + "`: " + HelpText(spec));
  }
  text += "\n## Values\n\n";
  for (const ValueForm& form : ValueForms()) {
    text += Item(std::string(form.name) + ": " + form.about + ".");
  }
  return text + ExitCodesMarkdown();
}

std::vector<ManualPage> ManualPages(const std::string& version) {
  std::vector<ManualPage> pages = {{"sstferry.1", ProgramRoff(version)}};
  for (const Command& command : Commands()) {
    pages.push_back({std::string("sstferry-") + command.name + ".1",
                     CommandRoff(command, version)});
  }
  pages.push_back({"sstferry-serve.service.8", ServiceRoff(version)});
  return pages;
}

}  // namespace sstferry
