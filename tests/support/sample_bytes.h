// Bytes for tests: of what compresses and what does not, and of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>

namespace sstferry::test {

// Incompressible, the same for the same seed.
std::string RandomBytes(size_t bytes, uint64_t seed);
// A quarter of it is RandomBytes(bytes, bytes).
std::string ShrinkingBytes(size_t bytes);
// Reads `in` to its end. Here, since this file is optimised.
std::string BytesIn(std::istream& in);

}  // namespace sstferry::test
