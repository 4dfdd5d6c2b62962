// Help: the text that --help prints, and its parts.
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

// Returns the groups in the order of help.
const std::vector<OptionGroupName>& OptionGroups();

// Returns the options of a group, in the table's order.
std::vector<OptionSpec> OptionsIn(const Command& command, OptionGroup group);

// Returns "--lanes N", "--json" or "--help[=GROUP]".
std::string OptionForm(const OptionSpec& spec);

struct ExitCodeRow {
  int code;
  const char* states;   // "REFUSED, ..."; empty: none
  const char* meaning;
};
const std::vector<ExitCodeRow>& ExitCodes();

// A kind of value that several options take, and its notation.
struct ValueForm {
  const char* name;
  const char* about;
};
const std::vector<ValueForm>& ValueForms();
// Returns true if an option or an operand of `command` takes such a value.
bool UsesValue(const Command& command, const ValueForm& form);

// Splits `text` into lines of at most `width` characters, without line ends.
std::vector<std::string> WrapText(const std::string& text, size_t width);

// Describes the options of one group: "common", another group of OptionGroups()
// in which the command has options, or "all". Returns false if there is no such
// group.
[[nodiscard]] bool CommandHelp(const Command& command,
                               const std::string& group, std::string* out);

// Returns "common, network, ... or all".
std::string HelpGroupNames(const Command& command);

std::string AboutProgram();  // a paragraph

std::string GeneralHelp();

}  // namespace sstferry
