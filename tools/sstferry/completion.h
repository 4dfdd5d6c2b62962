// Completions for shells, made from the tables of options.
#pragma once

#include <string>

namespace sstferry {

// A script for bash, which needs no package of completions, and a function
// file for zsh. Both complete commands, options, the values of enumerations,
// files and directories, and behind sst://HOST/ the names that are served
// there, for which they wait at most one second.
std::string BashCompletion();
std::string ZshCompletion();

}  // namespace sstferry
