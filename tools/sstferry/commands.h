// The commands and their options: tables that define the command line, help,
// manual pages, docs/commands.md and completions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sstferry/archive.h"
#include "tools/sstferry/arguments.h"

namespace sstferry {

// A command line for a manual.
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
const Command* FindCommand(const std::string& name);  // null: unknown

// Returns the options of every command.
const std::vector<OptionSpec>& CommonOptions();

// Returns the command's own options, then CommonOptions().
std::vector<OptionSpec> AllOptions(const Command& command);
// Returns `plan JOB` as a command: the options of `job` (pull, refresh or
// swap), and those that only a plan has.
Command Planned(const Command& job);
// Returns `status --all` as a command: its --config names the host file.
Command StatusOfAll();

// Returns the archive actions that accept each option. All actions accept an
// option that is missing here.
const std::map<std::string, std::set<ArchiveAction>>& ArchiveOptionUses();
// Returns one action of archive as a command with the action's own options;
// nullopt: no such action.
std::optional<Command> FindArchiveAction(const std::string& name);
// Returns the actions of a command, in the order of help; empty: it has none.
std::vector<std::string> ActionsOf(const std::string& command);
// Returns `command action` for the pages of help and for completions, without
// the action among its operands: an action of archive, a command that plan
// plans, or cert for each of its actions; nullopt: no such action.
std::optional<Command> FindAction(const std::string& command,
                                  const std::string& action);

// Returns "serve, pull, verify, ... or release".
std::string CommandNames();

}  // namespace sstferry
