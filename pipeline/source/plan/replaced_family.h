// The keys that the chunks of a refresh clear.
#pragma once

#include <optional>
#include <string>

namespace sstferry {

// Outermost keys of a family at the target. Chunks clear everything in their
// replacement intervals; if a range has no bound, everything between the
// outermost keys of both sides.
struct ReplacedFamily {
  std::optional<std::string> first;  // target's; absent: family is empty
  std::optional<std::string> last;
};

}  // namespace sstferry
