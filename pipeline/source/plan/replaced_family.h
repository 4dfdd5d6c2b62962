// What the chunks of a refresh clear.
#pragma once

#include <optional>
#include <string>

namespace sstferry {

// Chunks clear everything in their intervals; where a range has no bound, all
// between the outermost keys of both sides.
struct ReplacedFamily {
  std::optional<std::string> first;  // of the target's keys; absent: it has none
  std::optional<std::string> last;
};

}  // namespace sstferry
