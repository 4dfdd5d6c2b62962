// Edits OPTIONS files, to imitate another release or a fork.
#pragma once

#include <string>

namespace sstferry::test {

// Returns the path of the newest OPTIONS file of a database, even an open one.
std::string NewestOptions(const std::string& dir);

// Replaces `from`, which the file must contain, in that file.
void EditOptions(const std::string& dir, const std::string& from,
                 const std::string& to);

}  // namespace sstferry::test
