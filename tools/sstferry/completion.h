// Completions for shells, made from the tables of options.
#pragma once

#include <string>

namespace sstferry {

// Return a script for bash, which needs no completion package, and a function
// file for zsh. Both complete commands, options, the values of enumerations,
// files and directories, and after sst://HOST/ the names that the server
// serves; they wait at most one second for its answer.
std::string BashCompletion();
std::string ZshCompletion();

}  // namespace sstferry
