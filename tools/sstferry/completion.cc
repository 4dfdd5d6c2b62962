#include "tools/sstferry/completion.h"

#include <algorithm>

#include "tools/sstferry/help.h"

namespace sstferry {
namespace {

// The candidates by which a shell completes a value: a list of words, paths of
// one kind, or the names of databases.
struct Completion {
  enum Kind { kNothing, kWords, kDirectory, kFile, kDatabase };
  Kind kind = kNothing;
  std::vector<std::string> words = {};
};

// Returns the candidates for the value of an option. For example, if the value
// is "auto|none|zstd[:LEVEL]", returns auto, none and zstd.
Completion CompletionOf(const Command& command, const OptionSpec& spec) {
  const std::string value = spec.value == nullptr ? "" : spec.value;
  if (std::string(spec.name) == "help") {
    Completion groups = {Completion::kWords, {"all"}};
    for (const OptionGroupName& group : OptionGroups()) {
      if (!OptionsIn(command, group.group).empty()) {
        groups.words.push_back(group.word);
      }
    }
    return groups;
  }
  if (value.find('|') == std::string::npos) {
    return {value == "DIR" || value.ends_with("]DIR") ? Completion::kDirectory
            : value.starts_with("FILE")               ? Completion::kFile
                                                      : Completion::kNothing};
  }
  Completion words = {Completion::kWords};
  for (size_t at = 0; at <= value.size();) {
    const size_t end = std::min(value.find('|', at), value.size());
    const std::string word = value.substr(at, end - at);
    words.words.push_back(word.substr(0, word.find('[')));
    at = end + 1;
  }
  return words;
}

Completion CompletionOfOperand(const std::string& operand) {
  return {operand == "target"                    ? Completion::kDirectory
          : operand == "id" || operand == "host" || operand == "set"
              ? Completion::kNothing
                                                 : Completion::kDatabase};
}

std::vector<OptionSpec> ShownOptions(const Command& command) {
  std::vector<OptionSpec> specs = AllOptions(command);
  std::erase_if(specs, [](const OptionSpec& spec) {
    return spec.group == OptionGroup::kHidden;
  });
  return specs;
}

// The words of a command, such as "pull", or of a command and its action, such
// as "archive push". `command` has the options and operands that can follow.
struct Completed {
  std::string words;
  Command command;
};

// Returns all commands, each followed by one entry per action.
std::vector<Completed> CompletedCommands() {
  std::vector<Completed> all;
  for (const Command& command : Commands()) {
    all.push_back({command.name, command});
    for (const std::string& action : ActionsOf(command.name)) {
      all.push_back({std::string(command.name) + " " + action,
                     *FindAction(command.name, action)});
    }
  }
  return all;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) {
    joined += (joined.empty() ? "" : " ") + word;
  }
  return joined;
}

std::string BashWord(const Completion& completion) {
  switch (completion.kind) {
    case Completion::kWords:
      return Joined(completion.words);
    case Completion::kDirectory:
      return "@directory";
    case Completion::kFile:
      return "@file";
    case Completion::kDatabase:
      return "@database";
    case Completion::kNothing:
      break;
  }
  return "@nothing";
}

std::string CommandWords() {
  std::vector<std::string> words;
  for (const Command& command : Commands()) {
    words.push_back(command.name);
  }
  words.push_back("help");
  return Joined(words);
}

// Returns the rows of a shell's case statement. Each row prints the options of
// one command.
std::string BashOptionRows() {
  std::string rows;
  for (const auto& [words, command] : CompletedCommands()) {
    std::vector<std::string> names;
    for (const OptionSpec& spec : ShownOptions(command)) {
      names.push_back(std::string("--") + spec.name);
    }
    rows += "    '" + words + "') echo '" + Joined(names) + "' ;;\n";
  }
  return rows;
}

std::string BashActionRows() {
  std::string rows;
  for (const Command& command : Commands()) {
    const std::vector<std::string> actions = ActionsOf(command.name);
    rows += actions.empty() ? ""
                            : std::string("    ") + command.name + ") echo '" +
                                  Joined(actions) + "' ;;\n";
  }
  return rows;
}

std::string BashValueRows() {
  std::string rows;
  for (const auto& [words, command] : CompletedCommands()) {
    for (const OptionSpec& spec : ShownOptions(command)) {
      if (spec.value != nullptr) {
        rows += "    '" + words + " --" + spec.name + "') echo '" +
                BashWord(CompletionOf(command, spec)) + "' ;;\n";
      }
    }
    for (size_t i = 0; i < command.operands.size(); ++i) {
      rows += "    '" + words + " " + std::to_string(i) + "') echo '" +
              BashWord(CompletionOfOperand(command.operands[i])) + "' ;;\n";
    }
  }
  return rows;
}

constexpr char kBashHead[] =
    R"shell(# bash completion of sstferry; made from its tables of options
# shellcheck shell=bash

)shell";

// A shell function that prints the names of the databases of a server. Its
// first argument is the server's address, sst://HOST[:PORT]/ or unix:/PATH:.
// The other arguments are the TLS options of the command line.
constexpr char kServed[] = R"shell(_sstferry_served() {
  local address=${1%[/:]}
  shift
  timeout -s KILL 1 sstferry plan "$address" "$@" --log-level error \
    --progress never 2>/dev/null </dev/null |
    sed -nE 's#^  (sst://[^/]*/|unix:[^:]*:)##p'
}

)shell";

constexpr char kBashBody[] =
    R"shell(# Candidates that begin with $1; $2: words, or @KIND.
_sstferry_candidates() {
  local cur=$1
  case $2 in
    @nothing) ;;
    @directory) compgen -d -- "$cur" ;;
    @file) compgen -f -- "$cur" ;;
    @database)
      if [[ $cur == sst://*/* || $cur == unix:/*:* ]]; then
        local address=${cur%/*}/ name
        [[ $cur == unix:* ]] && address=${cur%:*}:
        while read -r name; do
          [[ $address$name == "$cur"* ]] && printf '%s\n' "$address$name"
        done < <(_sstferry_served "$address" "${_sstferry_tls[@]}")
      elif [[ $cur == unix:/* ]]; then
        compgen -P unix: -f -- "${cur#unix:}"
      else
        compgen -d -- "$cur"
      fi
      ;;
    *) compgen -W "$2" -- "$cur" ;;
  esac
}

_sstferry() {
  local line=${COMP_LINE:0:COMP_POINT} cur command='' i operand=0 prefix=''
  local -a words _sstferry_tls=()
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  cur=${words[-1]}
  command=${words[1]-}
  COMPREPLY=()
  if ((${#words[@]} <= 2)); then
    mapfile -t COMPREPLY < <(compgen -W "$(_sstferry_commands)" -- "$cur")
    return
  fi
  local actions first=2
  actions=$(_sstferry_actions "$command")
  if [[ -n $actions ]] && ((${#words[@]} == 3)) && [[ $cur != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$actions" -- "$cur")
    # plan also accepts a source without an action.
    [[ $command != plan || ${#COMPREPLY[@]} -gt 0 ]] && return
  elif [[ -n $actions && " $actions " == *" ${words[2]} "* ]]; then
    command+=" ${words[2]}"
    first=3
  fi
  local kind=''
  for ((i = first; i < ${#words[@]} - 1; ++i)); do
    kind=''
    if [[ ${words[i]} == --*=* ]]; then
      [[ ${words[i]} == --tls* ]] && _sstferry_tls+=("${words[i]}")
    elif [[ ${words[i]} == --* ]]; then
      kind=$(_sstferry_values "$command ${words[i]}")
      [[ ${words[i]} == --help ]] && kind=''
      if [[ -n $kind && $((i + 1)) -lt $((${#words[@]} - 1)) ]]; then
        [[ ${words[i]} == --tls* ]] &&
          _sstferry_tls+=("${words[i]}" "${words[i + 1]}")
        ((++i))
        kind=''
      fi
    else
      ((++operand))
    fi
  done
  local value=$cur
  if [[ -z $kind && $cur == --*=* ]]; then
    kind=$(_sstferry_values "$command ${cur%%=*}")
    prefix=${cur%%=*}=
    value=${cur#*=}
  elif [[ -z $kind && $cur == -* ]]; then
    kind=$(_sstferry_options "$command")
  elif [[ -z $kind && $command == help ]]; then
    kind=$(_sstferry_commands)
  elif [[ -z $kind ]]; then
    kind=$(_sstferry_values "$command $operand")
  fi
  [[ -n $kind ]] || return 0
  mapfile -t COMPREPLY < <(_sstferry_candidates "$value" "$kind")
  case $kind in
    @directory | @file | @database) compopt -o filenames 2>/dev/null ;;
  esac
  # readline replaces only the text after the last character that is in
  # COMP_WORDBREAKS.
  COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
  local breaks=${COMP_WORDBREAKS//[^:=]/}
  if [[ -n $breaks && $cur == *["$breaks"]* ]]; then
    local kept=${cur%"${cur##*["$breaks"]}"}
    COMPREPLY=("${COMPREPLY[@]#"$kept"}")
  fi
}

complete -F _sstferry sstferry
)shell";

// Escapes text for an argument of zsh's _arguments, where it is inside single
// quotes and brackets.
std::string ZshText(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '\''                         ? "'\\''"
               : c == ':' || c == '[' || c == ']' ? std::string("\\") + c
                                                 : std::string(1, c);
  }
  return escaped;
}

std::string ZshAction(const Completion& completion) {
  switch (completion.kind) {
    case Completion::kWords:
      return "(" + Joined(completion.words) + ")";
    case Completion::kDirectory:
      return "_files -/";
    case Completion::kFile:
      return "_files";
    case Completion::kDatabase:
      return "_sstferry_database";
    case Completion::kNothing:
      break;
  }
  return " ";
}

// Returns an option as an argument of zsh's _arguments, for example
// "'--lanes=[Move N parts at once]:N: '". The text in brackets is the first
// sentence of the help.
std::string ZshOption(const Command& command, const OptionSpec& spec) {
  const std::string help = spec.help;
  std::string text = "'";
  text += spec.repeatable ? "*" : "";
  text += std::string("--") + spec.name;
  const bool optional = spec.value != nullptr && spec.value[0] == '[' &&
                        spec.value[1] == '=';
  text += spec.value == nullptr ? "" : optional ? "=-" : "=";
  text += "[" + ZshText(help.substr(0, help.find(". "))) + "]";
  if (spec.value != nullptr) {
    text += std::string(optional ? "::" : ":") + ZshText(spec.value) + ":" +
            ZshAction(CompletionOf(command, spec));
  }
  return text + "'";
}

// Returns the call of zsh's _arguments for a command. Each line begins with
// `indent`.
std::string ZshArguments(const Command& command, const std::string& indent) {
  std::string row = indent + "_arguments";
  for (const OptionSpec& spec : ShownOptions(command)) {
    row += " \\\n" + indent + "  " + ZshOption(command, spec);
  }
  for (const std::string& operand : command.operands) {
    row += " \\\n" + indent + "  ':" + operand + ":" +
           ZshAction(CompletionOfOperand(operand)) + "'";
  }
  return row + "\n";
}

// Returns the rows of zsh's case statement. Each row completes one command.
std::string ZshCommandRows() {
  std::string rows;
  for (const Command& command : Commands()) {
    const std::vector<std::string> actions = ActionsOf(command.name);
    rows += std::string("      ") + command.name + ")\n";
    if (!actions.empty()) {
      rows += "        if ((CURRENT == 2)) && [[ $PREFIX != -* ]]; then\n"
              "          compadd -- " + Joined(actions) + "\n";
      rows += std::string(command.name) == "plan"
                  ? "          _sstferry_database\n"
                  : "";
      rows += "          return\n        fi\n        case $words[2] in\n";
      for (const std::string& action : actions) {
        rows += "          " + action +
                ")\n            shift words\n            ((CURRENT--))\n" +
                ZshArguments(*FindAction(command.name, action),
                             "            ") +
                "            return\n            ;;\n";
      }
      rows += "        esac\n";
    }
    rows += ZshArguments(command, "        ") + "        ;;\n";
  }
  return rows;
}

constexpr char kZshDatabase[] = R"shell(_sstferry_database() {
  if [[ $PREFIX == sst://*/* || $PREFIX == unix:/*:* ]]; then
    local address=${PREFIX%/*}/ i
    [[ $PREFIX == unix:* ]] && address=${PREFIX%:*}:
    local -a tls names
    for ((i = 2; i < CURRENT; ++i)); do
      case $words[i] in
        --tls*=*) tls+=($words[i]) ;;
        --tls*) tls+=($words[i] $words[i+1]) ;;
      esac
    done
    names=(${(f)"$(_sstferry_served $address $tls)"})
    compadd -p $address -- $names
  elif compset -P unix:; then
    _files
  else
    _files -/
  fi
}

)shell";

}  // namespace

std::string BashCompletion() {
  return std::string(kBashHead) + "_sstferry_commands() {\n  echo '" +
         CommandWords() + "'\n}\n\n_sstferry_actions() {\n  case $1 in\n" +
         BashActionRows() +
         "  esac\n}\n\n_sstferry_options() {\n  case $1 in\n" +
         BashOptionRows() +
         "  esac\n}\n\n# Prints the words or the @KIND for $1, \"COMMAND "
         "--OPTION\" or\n# \"COMMAND OPERAND_INDEX\".\n"
         "_sstferry_values() {\n  case $1 in\n" +
         BashValueRows() + "  esac\n}\n\n" + kServed + kBashBody;
}

std::string ZshCompletion() {
  std::string text =
      "#compdef sstferry\n# zsh completion of sstferry; made from its tables "
      "of options\n\n";
  text += std::string(kServed) + kZshDatabase +
          "_sstferry() {\n  local curcontext=$curcontext state line\n"
          "  _arguments -C '1:command:->command' '*::argument:->argument'\n"
          "  case $state in\n    command)\n      local -a commands=(\n";
  for (const Command& command : Commands()) {
    text += std::string("        '") + command.name + ":" +
            ZshText(command.summary) + "'\n";
  }
  text += "        'help:Show the options of a command'\n      )\n"
          "      _describe command commands\n      ;;\n    argument)\n"
          "      case $line[1] in\n";
  text += ZshCommandRows();
  text += "      help)\n        compadd -- " + CommandWords() +
          "\n        ;;\n      esac\n      ;;\n  esac\n}\n\n_sstferry \"$@\"\n";
  return text;
}

}  // namespace sstferry
