// Counts the bytes that operator new allocates on this thread.
#pragma once

#include <cstddef>

namespace sstferry {

// Returns the bytes allocated on this thread since it started. Never decreases.
size_t AllocatedBytes();

}  // namespace sstferry
