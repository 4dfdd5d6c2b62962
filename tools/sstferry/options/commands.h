// The sub-commands: their options and their help.
#pragma once

#include <string>
#include <vector>

#include "tools/sstferry/options/arguments.h"

namespace sstferry {

struct Command {
  const char* name;
  const char* synopsis;  // "SOURCE TARGET_DIR [options]"
  const char* about;     // whole sentences, wrapped
  std::vector<OptionSpec> options;  // the common ones follow in --help
  std::vector<std::string> operands;
};

// In the order --help lists them.
const std::vector<Command>& Commands();
const Command* FindCommand(const std::string& name);  // null: unknown

// Options of every command.
const std::vector<OptionSpec>& CommonOptions();

std::string CommandHelp(const Command& command);
std::string GeneralHelp();
std::string VersionText();
std::string RocksdbVersion();  // "7.8.3"

}  // namespace sstferry
