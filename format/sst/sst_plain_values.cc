#include "format/sst/sst_plain_values.h"

#include <cstdint>

#include "format/sst/sst_coding.h"
#include "format/sst/sst_reader.h"

namespace sstferry {

using rocksdb::Slice;

namespace {

constexpr uint32_t kMaxRestarts = (1u << 28) - 1;

}  // namespace

bool HoldsOnlyPlainValues(const Slice& contents) {
  if (contents.size() < sizeof(uint32_t)) {
    return false;
  }
  const size_t body = contents.size() - sizeof(uint32_t);
  const uint32_t restarts = sst::DecodeLittle32(contents.data() + body);
  // The upper bits mark formats that this function does not know.
  if (restarts > kMaxRestarts || restarts > body / sizeof(uint32_t)) {
    return false;
  }
  Slice rest(contents.data(), body - restarts * sizeof(uint32_t));
  while (!rest.empty()) {
    uint32_t shared = 0;
    uint32_t unshared = 0;
    uint32_t value = 0;
    if (!sst::GetVarint32(&rest, &shared) ||
        !sst::GetVarint32(&rest, &unshared) ||
        !sst::GetVarint32(&rest, &value) ||
        uint64_t{unshared} + value > rest.size() ||
        unshared < kSstKeyTrailerBytes) {
      return false;
    }
    if (sst::DecodeLittle64(rest.data() + unshared - kSstKeyTrailerBytes) !=
        kSstTypeValue) {
      return false;
    }
    rest.remove_prefix(size_t{unshared} + value);
  }
  return true;
}

}  // namespace sstferry
