#include "format/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace sstferry {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;
using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the effect of byte b followed by k zero bytes.
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
#define SSTFERRY_CRC32C_TARGET __attribute__((target("sse4.2")))
SSTFERRY_CRC32C_TARGET inline uint64_t AddWord(uint64_t crc, uint64_t word) {
  return _mm_crc32_u64(crc, word);
}
SSTFERRY_CRC32C_TARGET inline uint32_t AddByte(uint32_t crc, uint8_t byte) {
  return _mm_crc32_u8(crc, byte);
}
bool HasInstruction() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") != 0;
}
#elif defined(__aarch64__) && defined(__linux__)
#define SSTFERRY_CRC32C_TARGET __attribute__((target("+crc")))
SSTFERRY_CRC32C_TARGET inline uint64_t AddWord(uint64_t crc, uint64_t word) {
  return __crc32cd(static_cast<uint32_t>(crc), word);
}
SSTFERRY_CRC32C_TARGET inline uint32_t AddByte(uint32_t crc, uint8_t byte) {
  return __crc32cb(crc, byte);
}
bool HasInstruction() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#endif

#if defined(SSTFERRY_CRC32C_TARGET)
// The instruction takes three cycles but may begin anew in each: three lanes
// side by side keep it busy.
constexpr size_t kLaneBytes = 1024;
using LaneTables = std::array<std::array<uint32_t, 256>, 4>;

// tables[k][b]: what kLaneBytes zero bytes make of a checksum whose byte k is
// b and whose others are 0.
constexpr LaneTables MakeLaneTables() {
  LaneTables tables{};
  for (size_t bit = 0; bit < 32; ++bit) {
    uint32_t crc = uint32_t{1} << bit;
    for (size_t i = 0; i < kLaneBytes; ++i) {
      crc = (crc >> 8) ^ kTables[0][crc & 0xff];
    }
    for (size_t byte = 0; byte < 256; ++byte) {
      if ((byte >> (bit % 8) & 1) != 0) {
        tables[bit / 8][byte] ^= crc;
      }
    }
  }
  return tables;
}

constexpr LaneTables kLaneTables = MakeLaneTables();

uint64_t SkipLane(uint64_t crc) {
  return kLaneTables[0][crc & 0xff] ^ kLaneTables[1][(crc >> 8) & 0xff] ^
         kLaneTables[2][(crc >> 16) & 0xff] ^
         kLaneTables[3][(crc >> 24) & 0xff];
}

uint64_t LoadWord(const char* data) {
  uint64_t word;
  memcpy(&word, data, sizeof(word));
  return word;
}

SSTFERRY_CRC32C_TARGET uint32_t ExtendHardware(uint32_t crc, const char* data,
                                               size_t n) {
  // Wide variables hold 32 bits: no conversion stands between two steps.
  uint64_t wide = static_cast<uint32_t>(~crc);
  for (; n >= 3 * kLaneBytes; n -= 3 * kLaneBytes, data += 3 * kLaneBytes) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kLaneBytes; i += sizeof(uint64_t)) {
      wide = AddWord(wide, LoadWord(data + i));
      second = AddWord(second, LoadWord(data + kLaneBytes + i));
      third = AddWord(third, LoadWord(data + 2 * kLaneBytes + i));
    }
    wide = SkipLane(SkipLane(wide) ^ second) ^ third;
  }
  for (; n >= sizeof(uint64_t);
       n -= sizeof(uint64_t), data += sizeof(uint64_t)) {
    wide = AddWord(wide, LoadWord(data));
  }
  crc = static_cast<uint32_t>(wide);
  for (; n > 0; --n, ++data) {
    crc = AddByte(crc, static_cast<uint8_t>(*data));
  }
  return ~crc;
}
#endif

using ExtendFunction = uint32_t (*)(uint32_t, const char*, size_t);

ExtendFunction Choose() {
#if defined(SSTFERRY_CRC32C_TARGET)
  if (HasInstruction()) {
    return ExtendHardware;
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
