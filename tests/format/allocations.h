// Counts what operator new hands out on this thread.
#pragma once

#include <cstddef>

namespace sstferry {

// Bytes allocated on this thread since it began (never decreases).
size_t AllocatedBytes();

}  // namespace sstferry
