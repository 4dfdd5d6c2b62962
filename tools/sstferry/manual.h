// Generates docs/commands.md and the manual pages from the tables of options
// (commands.h).
#pragma once

#include <string>
#include <vector>

#include "tools/sstferry/commands.h"

namespace sstferry {

// Returns the complete text of docs/commands.md.
std::string CommandsMarkdown();

struct ManualPage {
  std::string file;  // "sstferry-pull.1"
  std::string text;  // roff with the man macros
};

// Returns all manual pages: sstferry(1), one page for each command,
// sstferry.toml(5), and one page for each systemd unit.
std::vector<ManualPage> ManualPages(const std::string& version);

}  // namespace sstferry
