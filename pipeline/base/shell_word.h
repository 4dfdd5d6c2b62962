// Quotes a text as one word of a shell command.
#pragma once

#include <string>

namespace sstferry {

std::string ShellWord(const std::string& text);

}  // namespace sstferry
