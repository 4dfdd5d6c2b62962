// Makes the scripts by which shells complete sstferry's command lines.
#pragma once

#include <string>

namespace sstferry {

// Return a script for bash and a function file for zsh. The bash script does
// not need the package bash-completion. Both complete commands, options, option
// values such as "auto", and paths. After sst://HOST/ they ask the server for
// the names of its databases, and wait at most one second for the answer.
std::string BashCompletion();
std::string ZshCompletion();

}  // namespace sstferry
