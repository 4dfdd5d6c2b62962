// Makes bytes for tests, compressible or not, and reads files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>

namespace sstferry::test {

// Returns incompressible bytes, which are the same for the same seed.
std::string RandomBytes(size_t bytes, uint64_t seed);
// Returns compressible bytes; a quarter of them is from RandomBytes().
std::string ShrinkingBytes(size_t bytes);
// Reads `in` to its end. Defined in this file because it is compiled with more
// optimization than other test code.
std::string BytesIn(std::istream& in);

}  // namespace sstferry::test
