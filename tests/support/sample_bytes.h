// Bytes for tests of what compresses, and what does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sstferry::test {

// Incompressible, the same for the same seed.
std::string RandomBytes(size_t bytes, uint64_t seed);
// A quarter of it is RandomBytes(bytes, bytes).
std::string ShrinkingBytes(size_t bytes);

}  // namespace sstferry::test
