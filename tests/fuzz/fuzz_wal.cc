// Input: a complete WAL with number 12, which is also used as one write batch.
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/wal_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  const rocksdb::Slice input(reinterpret_cast<const char*>(data), size);
  LogFollower follower(LogKind::kWal, 12);
  WalFacts facts;
  uint64_t last = 0;
  const auto add = [&](const rocksdb::Slice& record, uint64_t end) {
    if (end <= last || end > size) {
      abort();
    }
    last = end;
    facts.Add(12, record).PermitUncheckedError();
    return rocksdb::Status::OK();
  };
  // Follows the first half first, like a growing log.
  follower.Follow(SliceSource(rocksdb::Slice(input.data(), size / 2)), add)
      .PermitUncheckedError();
  follower.Follow(SliceSource(input), add).PermitUncheckedError();
  if (follower.end() > size) {
    abort();
  }
  WalFacts batch;
  batch.Add(12, input).PermitUncheckedError();
  return 0;
}
