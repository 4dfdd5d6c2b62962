// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78, RFC 3720 B.4), used by
// table files and WALs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sstferry {

// Returns the checksum of some bytes followed by `data`. `crc` is the checksum
// of the bytes before `data`. Uses the CPU's CRC instruction if available. Safe
// from any thread.
uint32_t Crc32cExtend(uint32_t crc, const char* data, size_t n);

inline uint32_t Crc32c(const char* data, size_t n) {
  return Crc32cExtend(0, data, n);
}

// Masks a checksum before it is stored: rotates it right by 15 and adds
// 0xa282ead8. Without the mask, a checksum over bytes that contain checksums
// would be weak.
inline uint32_t MaskCrc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

inline uint32_t UnmaskCrc32c(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// Computes Crc32cExtend() without the CPU's CRC instruction.
uint32_t TEST_Crc32cExtendPortable(uint32_t crc, const char* data, size_t n);

}  // namespace sstferry
