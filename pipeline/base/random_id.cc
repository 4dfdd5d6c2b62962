#include "pipeline/base/random_id.h"

#include <random>

namespace sstferry {

TransferId RandomId() {
  std::random_device device;
  TransferId id;
  for (size_t i = 0; i < id.size(); i += 4) {
    const uint32_t word = device();
    for (size_t j = 0; j < 4; ++j) {
      id[i + j] = static_cast<uint8_t>(word >> (8 * j));
    }
  }
  return id;
}

}  // namespace sstferry
