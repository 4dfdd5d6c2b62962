#include "tools/sstferry/manual.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

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

// Formats text as an item of a Markdown list.
std::string Item(const std::string& text) { return Wrapped(text, "- ", "  "); }

std::string CodeBlock(const std::string& text) {
  return "```sh\n" + text + "\n```\n";
}

// Returns the anchor of a Markdown heading, such as "#exit-codes".
std::string Anchor(std::string heading) {
  for (char& c : heading) {
    c = c == ' ' ? '-'
                 : static_cast<char>(
                       std::tolower(static_cast<unsigned char>(c)));
  }
  return "#" + heading;
}

std::string Link(const std::string& text, const std::string& heading) {
  return "[" + text + "](" + Anchor(heading) + ")";
}

using Names = std::vector<std::string>;

std::string CommaSeparated(const Names& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// A section of docs/commands.md with options that several commands have. An
// option is in the section if only these commands have it.
struct SharedSection {
  const char* whose;  // the heading is "Options of " and this text
  Names commands;     // if empty, any commands may have the options
};

const std::vector<SharedSection>& SharedSections() {
  static const std::vector<SharedSection> sections = {
      {"pulls", {"pull", "refresh", "swap", "plan"}},
      {"jobs",
       {"pull", "refresh", "swap", "verify", "plan", "archive", "follow"}},
      {"several commands", {}},
  };
  return sections;
}

std::string HeadingOf(const SharedSection& section) {
  return std::string("Options of ") + section.whose;
}

// Returns the section for an option that `commands` have: the first section
// whose commands include all of them.
const SharedSection& SectionOf(const Names& commands) {
  return *std::find_if(
      SharedSections().begin(), SharedSections().end() - 1,
      [&](const SharedSection& section) {
        return std::all_of(
            commands.begin(), commands.end(), [&](const std::string& name) {
              return std::find(section.commands.begin(),
                               section.commands.end(),
                               name) != section.commands.end();
            });
      });
}

// Returns the names of commands, such as "pull, swap". If the text is shorter,
// names the commands that are not in the list: "all but serve, ls".
std::string CommandList(const Names& commands) {
  Names others;
  for (const Command& command : Commands()) {
    if (std::find(commands.begin(), commands.end(), command.name) ==
        commands.end()) {
      others.emplace_back(command.name);
    }
  }
  return others.size() + 2 < commands.size()
             ? "all but " + CommaSeparated(others)
             : CommaSeparated(commands);
}

// Returns the list item for an option. Adds the text `commands`, which names
// the commands that have the option, unless it is empty.
std::string OptionItem(const OptionSpec& spec,
                       const std::string& commands = "") {
  return Item("`" + OptionForm(spec) + "`" +
              (commands.empty() ? "" : " (" + commands + ")") + ": " +
              HelpText(spec));
}

// Maps the list item of an option to the names of the commands that have this
// item. The same option may have different items in two commands.
using OptionUses = std::map<std::string, Names>;

OptionUses FindUses() {
  OptionUses uses;
  for (const Command& command : Commands()) {
    std::set<std::string> items;
    for (const OptionSpec& spec : command.options) {
      if (spec.group != OptionGroup::kHidden) items.insert(OptionItem(spec));
    }
    for (const std::string& item : items) {
      uses[item].emplace_back(command.name);
    }
  }
  return uses;
}

// Returns links to the shared sections that contain options of `command`.
std::string SharedOptions(const Command& command, const OptionUses& uses) {
  std::string links;
  for (const SharedSection& section : SharedSections()) {
    const bool has = std::any_of(
        command.options.begin(), command.options.end(),
        [&](const OptionSpec& spec) {
          const auto found = uses.find(OptionItem(spec));
          return found != uses.end() && found->second.size() > 1 &&
                 &SectionOf(found->second) == &section;
        });
    if (has) {
      links += (links.empty() ? "" : ", ") +
               Link(section.whose, HeadingOf(section));
    }
  }
  return links.empty() ? "" : "\nMore options: " + links + ".\n";
}

// Returns the options that only `command` has.
std::string OwnOptions(const Command& command, const OptionUses& uses) {
  std::string items;
  for (const OptionGroupName& group : OptionGroups()) {
    for (const OptionSpec& spec : command.options) {
      const std::string item = OptionItem(spec);
      items += spec.group == group.group && uses.at(item).size() == 1 ? item
                                                                      : "";
    }
  }
  return items.empty() ? "" : "\n" + items;
}

// Returns the description of a command, or a link to the page that describes
// the command.
std::string AboutMarkdown(const Command& command) {
  static const std::map<std::string, std::string> pages = {
      {"refresh", "refresh.md"},
      {"swap", "refresh.md#by-exchange-sstferry-swap"},
      {"verify", "verify.md#comparing-two-databases"},
      {"archive", "archive.md"},
      {"follow", "follow.md"},
      {"promote", "follow.md#take-over"},
      {"view", "follow.md#look-at-a-standby"},
      {"units", "operations.md#one-file-for-a-host"},
      {"cert", "security.md#tls"},
  };
  const auto page = pages.find(command.name);
  return page == pages.end() ? Wrapped(command.about, "", "")
                             : std::string(command.summary) + " ([more](" +
                                   page->second + ")).\n";
}

std::string CommandMarkdown(const Command& command, const OptionUses& uses) {
  const std::string program = std::string("sstferry ") + command.name;
  return "\n## " + program + "\n\n" +
         CodeBlock(program + " " + command.synopsis) + "\n" +
         AboutMarkdown(command) + OwnOptions(command, uses) +
         SharedOptions(command, uses);
}

std::string SharedMarkdown(const SharedSection& section,
                           const OptionUses& uses) {
  std::string text = "\n## " + HeadingOf(section) + "\n\n";
  if (!section.commands.empty()) {
    text += Wrapped("Options of " + CommaSeparated(section.commands) +
                        ", or of the commands in parentheses.",
                    "", "") +
            "\n";
  }
  std::set<std::string> said;
  for (const OptionGroupName& group : OptionGroups()) {
    for (const Command& command : Commands()) {
      for (const OptionSpec& spec : command.options) {
        const std::string item = OptionItem(spec);
        if (spec.group != group.group || uses.at(item).size() == 1 ||
            &SectionOf(uses.at(item)) != &section ||
            !said.insert(item).second) {
          continue;
        }
        const Names& commands = uses.at(item);
        text += OptionItem(spec, commands == section.commands
                                     ? ""
                                     : CommandList(commands));
      }
    }
  }
  return text;
}

// Escapes text for roff. roff would read a line that begins with a dot as a
// macro, and print a dash as a hyphen.
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

// Returns the section SEE ALSO, with ".BR sstferry-pull (1)" for each page.
std::string SeeAlso(const std::vector<std::pair<std::string, std::string>>&
                        pages) {
  std::string text = ".SH \"SEE ALSO\"\n";
  for (size_t i = 0; i < pages.size(); ++i) {
    text += ".BR " + Roff(pages[i].first) + " (" + pages[i].second + ")" +
            (i + 1 < pages.size() ? ",\n" : "\n");
  }
  return text;
}

// Formats text as indented lines that roff does not wrap.
std::string Literal(const std::string& text) {
  return ".PP\n.RS 4\n.nf\n" + Roff(text) + "\n.fi\n.RE\n";
}

// Breaks a long command line into lines that end in a backslash, so that a user
// can paste it into a shell. Breaks between words, but not inside quotes.
std::string Pasteable(const std::string& line) {
  constexpr size_t kTableColumns = 66;
  std::string text;
  std::string row;
  std::string word;
  bool quoted = false;
  for (const char c : line + " ") {
    quoted = quoted != (c == '\'');
    if (c != ' ' || quoted) {
      word += c;
      continue;
    }
    if (!row.empty() && row.size() + 1 + word.size() > kTableColumns) {
      text += row + " \\\n";
      row = "   ";
    }
    row += (row.empty() ? "" : " ") + word;
    word.clear();
  }
  return text + row;
}

struct NamedRow {
  const char* name;
  const char* about;
  const char* commands;  // commands whose pages have the row: " pull refresh "
};

constexpr const char* kJobs = " pull refresh swap ";

std::string RowsOf(const char* heading, const std::vector<NamedRow>& rows,
                   const std::string& command) {
  std::string text;
  for (const NamedRow& row : rows) {
    const bool has = command.empty() ||
                     std::string(row.commands).find(" " + command + " ") !=
                         std::string::npos;
    text += has ? Tagged(row.name, row.about) : "";
  }
  return text.empty() ? "" : std::string(".SH ") + heading + "\n" + text;
}

// Returns the section FILES for the page of `command`. If `command` is empty,
// returns the files of all commands.
std::string FilesRoff(const std::string& command) {
  static const std::vector<NamedRow> rows = {
      {"TARGET_DIR.sstferry/",
       "The workspace of an unfinished pull: journal, staged data, the new "
       "database. It stays after a failure, so that the same command resumes, "
       "and is removed after success.",
       kJobs},
      {"TARGET_DIR/last_transfer.json",
       "The summary of the last transfer, the object that --json prints.",
       " pull refresh swap status "},
      {"TARGET_DIR/sstferry.files",
       "The application's files that this transfer copied, for the next one.",
       kJobs},
      {"TARGET_DIR/sstferry.health",
       "Exists while the replica is known to be damaged or different. A "
       "refresh, a swap or a verify that finds it equal removes it.",
       " pull refresh swap verify status "},
      {"SOURCE_DIR.sstferry-snapshot-*/",
       "A private snapshot: hard links to the source's tables, and copies of "
       "its WALs, MANIFEST and OPTIONS. An interrupted pull leaves it for "
       "--snapshot-ttl; sstferry status shows it and sstferry release removes "
       "it.",
       " serve status release pull refresh swap "},
      {"/etc/sstferry/*.toml",
       "Options of the systemd units: see sstferry.toml(5).",
       " serve pull refresh swap "},
      {"/etc/sstferry/tls/",
       "cert.pem, key.pem and ca.pem for --tls, as sstferry cert issue makes "
       "them.",
       " serve pull refresh swap verify plan status ls cert "},
  };
  return RowsOf("FILES", rows, command);
}

std::string EnvironmentRoff(const std::string& command) {
  static const std::vector<NamedRow> rows = {
      {"NO_COLOR", "If set and not empty, log lines have no colours.",
       " serve pull refresh swap plan verify status ls release cert "},
      {"TERM", "If it is dumb, log lines have no colours.",
       " serve pull refresh swap plan verify status ls release cert "},
      {"TMPDIR",
       "Directory of the private snapshot of a database on a read-only file "
       "system, if nothing can be made beside the database. Default: /tmp.",
       " serve pull refresh swap plan verify "},
      {"SSTFERRY_TARGET_DIR, SSTFERRY_TRANSFER_ID, SSTFERRY_EXCHANGED",
       "Set for the commands of a swap: the directory, the transfer, and, for "
       "--after-swap, whether the directories were exchanged (yes or no).",
       " swap "},
      {"JOURNAL_STREAM, NOTIFY_SOCKET",
       "Set by systemd: log lines carry their priority, and serve says when it "
       "is ready.",
       " serve pull refresh swap "},
  };
  return RowsOf("ENVIRONMENT", rows, command);
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
  text += ExitCodesRoff() + EnvironmentRoff(command.name) +
          FilesRoff(command.name) + ".SH EXAMPLES\n";
  for (const CommandExample& example : command.examples) {
    const bool first = &example == &command.examples.front();
    text += (first ? "" : ".PP\n") + Roff(example.about) + ":\n" +
            Literal(Pasteable(example.line));
  }
  std::vector<std::pair<std::string, std::string>> pages = {{"sstferry", "1"}};
  if (name == "sstferry-serve") {
    pages.emplace_back("sstferry-serve.service", "8");
    pages.emplace_back("sstferry.toml", "5");
  }
  if (name == "sstferry-refresh" || name == "sstferry-swap") {
    pages.emplace_back(name + "@.service", "8");
    pages.emplace_back("sstferry.toml", "5");
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
  pages.emplace_back("sstferry.toml", "5");
  pages.emplace_back("sstferry-serve.service", "8");
  pages.emplace_back("sstferry-refresh@.service", "8");
  pages.emplace_back("sstferry-swap@.service", "8");
  return text + ExitCodesRoff() + EnvironmentRoff("") + FilesRoff("") +
         ".SH EXAMPLES\n" + Roff("A replica from nothing, through ssh, and the "
                                  "same replica a day later:\n") +
         Literal("sstferry pull db1:/var/lib/app/orders /srv/orders --verify\n"
                 "sstferry refresh db1:/var/lib/app/orders /srv/orders") +
         SeeAlso(pages);
}

std::string ConfigRoff(const std::string& version) {
  return Title("sstferry.toml", "5", version,
               "options of sstferry commands in a file") +
         ".SH DESCRIPTION\n" +
         Roff("sstferry COMMAND --config FILE reads options from FILE, which "
              "is TOML. The systemd units read files in /etc/sstferry. A line "
              "has the name of an option of COMMAND without its dashes, and "
              "its value: text in quotes, true or false for a switch, an array "
              "for an option that may be repeated. The operands have the names "
              "source and target; of verify left and right, of follow source "
              "and dir, of archive source, archive and set, of release source "
              "and id, of status place, of promote dir, of view dir and view. "
              "The command line wins over the file. An unknown name is refused "
              "with its line and the nearest name.\n") +
         ".PP\n" +
         Roff("sstferry-serve(1), sstferry-pull(1) and the pages of the other "
              "commands list the options.\n") +
         ".SS Tables of serve\n" +
         Roff("A [[database]] table may say for one database what --db, "
              "--allow and --wal-dir say:\n") +
         Tagged("name", "The name after sst://HOST/.") +
         Tagged("directory", "The database.") +
         Tagged("allow", "An array of the certificate names that may read it. "
                         "Default: all.") +
         Tagged("wal-dir",
                "The directory of its WALs, if they are elsewhere.") +
         ".SS Reload\n" +
         Roff("On SIGHUP, serve, pull, refresh and swap read max-rate and "
              "log-level again. serve also reads its certificates and the "
              "lists of allow again. Everything else needs a restart. A wrong "
              "file changes nothing, and the log says so.\n") +
         ".SH EXAMPLES\n" +
         Roff("A source with two databases, /etc/sstferry/serve-app.toml:\n") +
         Literal("listen = \"0.0.0.0:7420\"\n"
                 "tls = \"/etc/sstferry/tls\"\n\n"
                 "[[database]]\nname = \"orders\"\n"
                 "directory = \"/var/lib/app/orders\"\n"
                 "allow = [\"replica-1\", \"replica-2\"]\n\n"
                 "[[database]]\nname = \"users\"\n"
                 "directory = \"/var/lib/app/users\"") +
         Roff("A replica, /etc/sstferry/orders.toml:\n") +
         Literal("source = \"sst://db1/orders\"\n"
                 "target = \"/srv/orders\"\n"
                 "tls = \"/etc/sstferry/tls\"\n"
                 "verify = true") +
         SeeAlso({{"sstferry", "1"},
                  {"sstferry-serve.service", "8"},
                  {"sstferry-refresh@.service", "8"},
                  {"sstferry-swap@.service", "8"}});
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
                "Options of sstferry serve: see sstferry.toml(5).") +
         Tagged("/run/sstferry-serve/",
                "For a Unix socket: listen = "
                "\"unix:/run/sstferry-serve/socket\".") +
         SeeAlso({{"sstferry-serve", "1"},
                  {"sstferry.toml", "5"},
                  {"systemctl", "1"}});
}

// Returns the page of sstferry-refresh@.service or sstferry-swap@.service.
// `job`: "refresh" or "swap".
std::string JobServiceRoff(const std::string& job,
                           const std::string& version) {
  const std::string unit = "sstferry-" + job + "@";
  const bool swaps = job == "swap";
  return Title(unit + ".service", "8", version,
               swaps ? "replace a replica every night"
                     : "make a replica current every night") +
         ".SH SYNOPSIS\n" +
         Roff("systemctl enable --now " + unit + "NAME.timer\n") +
         ".br\n" + Roff("systemctl start " + unit + "NAME\n") +
         ".SH DESCRIPTION\n" +
         Roff("The timer starts sstferry " + job +
              " at 02:00, up to 15 minutes later, with the options in "
              "/etc/sstferry/NAME.toml. It starts the unit later if the "
              "machine was off at that time. After exit code 4 (interrupted), "
              "5 (BUSY) or a kill, the unit runs again five minutes later, at "
              "most twelve times in six hours. After 1, 2 or 3 it has failed: "
              "watch it with OnFailure= or your monitoring.\n") +
         ".PP\n" +
         Roff("The unit passes --max-age 20h and --timeout 5m. For another "
              "hour or other options, add a drop-in: systemctl edit " + unit +
              "NAME.timer. To change max-rate in a running " + job +
              ", edit the file and run systemctl kill --kill-whom=main -s HUP " +
              unit + "NAME.\n") +
         ".SH FILES\n" +
         Tagged("/etc/sstferry/NAME.toml",
                "Options of sstferry " + job + ": see sstferry.toml(5).") +
         ".SH EXAMPLES\n" +
         Roff("A nightly " + job + " of the replica orders, with this "
              "/etc/sstferry/orders.toml:\n") +
         Literal(std::string("source = \"sst://db1/orders\"\n"
                             "target = \"/var/lib/app/orders\"\n"
                             "tls = \"/etc/sstferry/tls\"\n") +
                 (swaps ? "before-swap = \"systemctl stop app\"\n"
                          "after-swap = \"systemctl start app\"\n"
                        : "") +
                 "metrics-file = \"/var/lib/prometheus/node-exporter/"
                 "sstferry-orders.prom\"") +
         Roff("See what would happen, run it once by hand, then every "
              "night:\n") +
         Literal("sstferry plan " + job +
                 " --config /etc/sstferry/orders.toml\n"
                 "systemctl start " + unit + "orders\n"
                 "systemctl enable --now " + unit + "orders.timer") +
         Roff("The next morning, the journal has four lines, which begin with "
              "the age of the replica:\n") +
         Literal("journalctl -u " + unit +
                 "orders --since today\n"
                 "replica is as of 2026-11-25T02:00:03Z, 6,950 keys changed,\n"
                 "14.0 MB sent" +
                 (swaps ? ", application down 0.05 s" : "")) +
         Roff("If it failed, the last line has the status and the next "
              "command; sstferry status /var/lib/app/orders shows the "
              "same.\n") +
         SeeAlso({{"sstferry-" + job, "1"},
                  {"sstferry.toml", "5"},
                  {"systemd.timer", "5"}});
}

}  // namespace

std::string CommandsMarkdown() {
  std::string text =
      "# Commands\n\n"
      "<!-- Made from the tables of options: cmake --build BUILD_DIR --target "
      "commands_md -->\n\n"
      "An option's value follows after a space or `=`. `sstferry COMMAND "
      "--help=all` prints the same, with examples. [Operations]"
      "(operations.md#exit-codes) has the exit codes.\n\n";
  std::string commands;
  for (const Command& command : Commands()) {
    commands += (commands.empty() ? "" : ", ") +
                Link(command.name, std::string("sstferry ") + command.name);
  }
  text += "Commands: " + commands + ".\n";
  const OptionUses uses = FindUses();
  for (const Command& command : Commands()) {
    text += CommandMarkdown(command, uses);
  }
  for (const SharedSection& section : SharedSections()) {
    text += SharedMarkdown(section, uses);
  }
  text += "\n## Options of every command\n\n";
  for (const OptionSpec& spec : CommonOptions()) {
    text += spec.group == OptionGroup::kHidden ? "" : OptionItem(spec);
  }
  text += "\n## Values\n\n";
  for (const ValueForm& form : ValueForms()) {
    text += Item(std::string(form.name) + ": " + form.about + ".");
  }
  return text;
}

std::vector<ManualPage> ManualPages(const std::string& version) {
  std::vector<ManualPage> pages = {{"sstferry.1", ProgramRoff(version)}};
  for (const Command& command : Commands()) {
    pages.push_back({std::string("sstferry-") + command.name + ".1",
                     CommandRoff(command, version)});
  }
  pages.push_back({"sstferry.toml.5", ConfigRoff(version)});
  pages.push_back({"sstferry-serve.service.8", ServiceRoff(version)});
  for (const char* job : {"refresh", "swap"}) {
    pages.push_back({std::string("sstferry-") + job + "@.service.8",
                     JobServiceRoff(job, version)});
  }
  return pages;
}

}  // namespace sstferry
