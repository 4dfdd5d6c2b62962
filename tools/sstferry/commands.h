// The commands and their options: the tables from which the command line is
// read, and help, manual pages, docs/commands.md and completions are made.
#pragma once

#include <string>
#include <vector>

#include "tools/sstferry/arguments.h"

namespace sstferry {

// A command line that a manual shows.
struct CommandExample {
  const char* about;
  const char* line;
};

struct Command {
  const char* name;
  const char* synopsis;  // "SOURCE TARGET_DIR [options]"
  const char* summary;   // one line without a full stop
  const char* about;     // paragraphs, parted by an empty line; not wrapped
  std::vector<OptionSpec> options;  // without CommonOptions()
  std::vector<std::string> operands;
  std::vector<CommandExample> examples;
};

// In the order in which help lists them.
const std::vector<Command>& Commands();
const Command* FindCommand(const std::string& name);  // null: unknown

// Options of every command.
const std::vector<OptionSpec>& CommonOptions();

// The command's own options, then CommonOptions().
std::vector<OptionSpec> AllOptions(const Command& command);
// Returns pull, refresh or swap with what a plan of it has, too.
Command Planned(const Command& job);

// "serve, pull, verify, ... or release".
std::string CommandNames();

}  // namespace sstferry
