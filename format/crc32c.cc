#include "format/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace sstferry {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;
using Tables = std::array<std::array<uint32_t, 256>, 8>;

// Computes tables[k][b], the effect of byte b followed by k zero bytes.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    }
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t shorter = tables[k - 1][byte];
      tables[k][byte] = (shorter >> 8) ^ tables[0][shorter & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t Little32(const char* p) {
  uint32_t word = 0;
  for (int i = 3; i >= 0; --i) {
    word = (word << 8) | static_cast<unsigned char>(p[i]);
  }
  return word;
}

uint32_t ExtendPortable(uint32_t crc, const char* data, size_t n) {
  crc = ~crc;
  for (; n >= 8; n -= 8, data += 8) {
    const uint32_t low = crc ^ Little32(data);
    const uint32_t high = Little32(data + 4);
    crc = kTables[7][low & 0xff] ^ kTables[6][(low >> 8) & 0xff] ^
          kTables[5][(low >> 16) & 0xff] ^ kTables[4][low >> 24] ^
          kTables[3][high & 0xff] ^ kTables[2][(high >> 8) & 0xff] ^
          kTables[1][(high >> 16) & 0xff] ^ kTables[0][high >> 24];
  }
  for (; n > 0; --n, ++data) {
    crc = (crc >> 8) ^
          kTables[0][(crc ^ static_cast<unsigned char>(*data)) & 0xff];
  }
  return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendSse42(uint32_t crc,
                                                       const char* data,
                                                       size_t n) {
  uint64_t wide = static_cast<uint32_t>(~crc);
  for (; n >= 8; n -= 8, data += 8) {
    uint64_t word;
    memcpy(&word, data, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
  }
  uint32_t narrow = static_cast<uint32_t>(wide);
  for (; n > 0; --n, ++data) {
    narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(*data));
  }
  return ~narrow;
}
#endif

using ExtendFunction = uint32_t (*)(uint32_t, const char*, size_t);

ExtendFunction Choose() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2")) {
    return ExtendSse42;
  }
#endif
  return ExtendPortable;
}

}  // namespace

uint32_t Crc32cExtend(uint32_t crc, const char* data, size_t n) {
  static const ExtendFunction chosen = Choose();
  return chosen(crc, data, n);
}

uint32_t TEST_Crc32cExtendPortable(uint32_t crc, const char* data, size_t n) {
  return ExtendPortable(crc, data, n);
}

}  // namespace sstferry
