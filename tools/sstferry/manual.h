// Generates the manuals from the tables of options: docs/commands.md and the
// manual pages.
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

// Returns sstferry(1), a page per command, sstferry.toml(5), and a page per
// systemd unit.
std::vector<ManualPage> ManualPages(const std::string& version);

}  // namespace sstferry
