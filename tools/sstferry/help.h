// Makes the text that --help prints. The manuals use its parts.
#pragma once

#include <string>
#include <vector>

#include "tools/sstferry/commands.h"

namespace sstferry {

struct OptionGroupName {
  OptionGroup group;
  const char* word;   // as in --help=WORD
  const char* title;  // "Network and TLS"
};

// Returns the groups of options that help prints, in this order.
const std::vector<OptionGroupName>& OptionGroups();

// Returns the options of `command` that are in `group`.
std::vector<OptionSpec> OptionsIn(const Command& command, OptionGroup group);

// Returns an option with its value, such as "--lanes N" or "--help[=GROUP]". A
// switch has no value: "--json".
std::string OptionForm(const OptionSpec& spec);

struct ExitCodeRow {
  int code;
  const char* states;   // "REFUSED, ..."; empty if there are none
  const char* meaning;
};
const std::vector<ExitCodeRow>& ExitCodes();

// Explains how to write one kind of value, such as BYTES or DURATION.
struct ValueForm {
  const char* name;
  const char* about;
};
const std::vector<ValueForm>& ValueForms();
// Returns true if an option or an operand of `command` has a value of this
// kind.
bool UsesValue(const Command& command, const ValueForm& form);

// Splits `text` into lines of at most `width` characters, without line ends.
std::vector<std::string> WrapText(const std::string& text, size_t width);

// Sets *out to the help for a command and one of its groups of options. `group`
// is a word of OptionGroups(), such as "common", or "all". Returns false if the
// command has no such group.
[[nodiscard]] bool CommandHelp(const Command& command,
                               const std::string& group, std::string* out);

// Returns the groups that CommandHelp() accepts: "common, network, ... or all".
std::string HelpGroupNames(const Command& command);

std::string AboutProgram();  // a paragraph

std::string GeneralHelp();

}  // namespace sstferry
