// Defines the commands and their options as tables. The command line's parser,
// help, the manual pages, docs/commands.md and completions use these tables.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sstferry/archive.h"
#include "tools/sstferry/arguments.h"

namespace sstferry {

// An example of a command line, for help and the manuals.
struct CommandExample {
  const char* about;
  const char* line;
};

struct Command {
  const char* name;
  const char* synopsis;  // "SOURCE TARGET_DIR [options]"
  const char* summary;   // one line without a full stop
  const char* about;     // paragraphs, separated by an empty line; not wrapped
  std::vector<OptionSpec> options;  // without CommonOptions()
  std::vector<std::string> operands;
  std::vector<CommandExample> examples;
};

// Returns all commands, in the order of help.
const std::vector<Command>& Commands();
// Returns the command `name`, or null if there is no such command.
const Command* FindCommand(const std::string& name);

// Returns the options that all commands have, such as --json.
const std::vector<OptionSpec>& CommonOptions();

// Returns the command's own options, then CommonOptions().
std::vector<OptionSpec> AllOptions(const Command& command);
// Returns a description of `plan JOB`, where `job` is pull, refresh or swap.
// Its options are the options of `job` and --summary.
Command Planned(const Command& job);
// Returns a description of `status --all`, whose --config is the host file.
Command StatusOfAll();

// Returns the names of archive's options, each with the actions that accept the
// option. All actions accept an option that is not in the map.
const std::map<std::string, std::set<ArchiveAction>>& ArchiveOptionUses();
// Returns an action of archive, such as push, as a command that has only the
// options of this action. Returns nullopt if there is no such action.
std::optional<Command> FindArchiveAction(const std::string& name);
// Returns the actions of a command, in the order of help. For example, those of
// plan are pull, refresh and swap. Most commands have no actions.
std::vector<std::string> ActionsOf(const std::string& command);
// Returns `command action`, such as "archive push", as a command for help and
// completions. Its operands do not contain the action. Returns nullopt if the
// command has no such action.
std::optional<Command> FindAction(const std::string& command,
                                  const std::string& action);

// Returns the names of all commands: "serve, pull, verify, ... or release".
std::string CommandNames();

}  // namespace sstferry
