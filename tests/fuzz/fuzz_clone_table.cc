// Input: two bytes that choose a part, then a table of a clone. A check of
// blocks while a part arrives, with the other blocks read later, must have the
// same result as a check of all blocks at once.
#include <algorithm>
#include <cstdlib>

#include "format/rocksdb/sst_file_check.h"
#include "format/rocksdb/sst_part_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  using rocksdb::Slice;
  if (size < 2) {
    return 0;
  }
  const uint64_t bytes = size - 2;
  const Slice table(reinterpret_cast<const char*>(data) + 2,
                    static_cast<size_t>(bytes));
  const SliceSource source{table};
  SstFileFacts facts;
  const bool is_sound = CheckSstFile(source, {}, &facts).ok();
  const bool is_unchecked = facts.unchecked;

  ByteSpan part;
  part.begin = bytes * std::min(data[0], data[1]) / 256;
  part.end = bytes * std::max(data[0], data[1]) / 256;
  const auto check = SstPartCheck::Make(source, part.end, part);
  if (check == nullptr) {
    return 0;
  }
  const Slice arriving(table.data() + part.begin,
                       static_cast<size_t>(part.end - part.begin));
  const size_t cut = arriving.size() / 3;
  bool arrived = check->Add(Slice(arriving.data(), cut)).ok();
  arrived = arrived && check->Add(Slice(arriving.data() + cut,
                                        arriving.size() - cut)).ok();
  if (arrived) {
    const ByteSpan checked = check->checked();
    if (checked.begin < part.begin || checked.end > part.end) {
      abort();
    }
    arrived = CheckSstFile(source, {checked}, &facts).ok();
  }
  if (arrived != is_sound || (arrived && facts.unchecked != is_unchecked)) {
    abort();
  }
  return 0;
}
