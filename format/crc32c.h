// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78, RFC 3720 B.4), as
// table files and WALs use it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sstferry {

// The checksum of a + data, where `crc` is the checksum of a. Uses the CPU's
// instruction where it has one. Safe from any thread.
uint32_t Crc32cExtend(uint32_t crc, const char* data, size_t n);

inline uint32_t Crc32c(const char* data, size_t n) {
  return Crc32cExtend(0, data, n);
}

// The form stored in files: a checksum of bytes that themselves hold
// checksums would be weak. Rotates right by 15 and adds 0xa282ead8.
inline uint32_t MaskCrc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

inline uint32_t UnmaskCrc32c(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// The portable path, whatever the CPU can do; equal to Crc32cExtend.
uint32_t TEST_Crc32cExtendPortable(uint32_t crc, const char* data, size_t n);

}  // namespace sstferry
