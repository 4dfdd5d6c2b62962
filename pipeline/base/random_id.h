// Random 128-bit ids, of transfers and findings.
#pragma once

#include "format/types.h"

namespace sstferry {

// Returns an id that nobody can guess.
TransferId RandomId();

}  // namespace sstferry
