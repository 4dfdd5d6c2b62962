// OPTIONS files as another release or a fork would have written them.
#pragma once

#include <string>

namespace sstferry::test {

// Path of the newest OPTIONS file of a database, which may be open.
std::string NewestOptions(const std::string& dir);

// Replaces `from`, which stands there, in that file.
void EditOptions(const std::string& dir, const std::string& from,
                 const std::string& to);

}  // namespace sstferry::test
