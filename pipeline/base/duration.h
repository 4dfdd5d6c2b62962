// Formats a duration like FormatMillis().
#pragma once

#include <chrono>
#include <string>

#include "format/quantity.h"

namespace sstferry {

inline std::string FormatDuration(std::chrono::milliseconds duration) {
  return FormatMillis(duration.count());
}

}  // namespace sstferry
