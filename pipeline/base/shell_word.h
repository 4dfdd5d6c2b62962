// A text as one word of a command that a person can paste into a shell.
#pragma once

#include <string>

namespace sstferry {

std::string ShellWord(const std::string& text);

}  // namespace sstferry
