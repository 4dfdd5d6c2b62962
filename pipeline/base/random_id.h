// Random 128-bit ids for transfers and findings.
#pragma once

#include "format/types.h"

namespace sstferry {

// Returns an id that cannot be guessed.
TransferId RandomId();

}  // namespace sstferry
