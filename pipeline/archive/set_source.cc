#include "pipeline/archive/set_source.h"

#include <algorithm>
#include <thread>

#include "format/part.h"
#include "pipeline/archive/store.h"
#include "pipeline/base/start_thread.h"

namespace sstferry {

using rocksdb::Slice;

uint64_t UploadPartBytes(uint64_t file_bytes) {
  const uint64_t most = kUploadPartBytes * kMaxUploadParts;
  return kUploadPartBytes * (file_bytes / most + (file_bytes % most != 0));
}

void RunInLanes(int lanes, const std::function<void()>& work) {
  std::vector<std::thread> threads(
      static_cast<size_t>(std::max(lanes, 1)) - 1);
  for (std::thread& thread : threads) {
    // Fewer lanes do as well.
    StartThread([&work] { work(); }, &thread).PermitUncheckedError();
  }
  work();
  for (std::thread& thread : threads) {
    if (thread.joinable()) {
      thread.join();
    }
  }
}

FileDigester::FileDigester(const CloneFile& file, uint64_t unit_bytes)
    : part_bytes_(UploadPartBytes(file.bytes)), file_bytes_(file.bytes) {
  std::vector<Part> units;
  // The plan of all files was cut before: one of them is not too large.
  CutIntoUnits({file}, unit_bytes, &units).PermitUncheckedError();
  for (const Part& unit : units) {
    unit_ends_.push_back(unit.offset + unit.bytes);
  }
}

void FileDigester::Add(Slice bytes) {
  whole_.Update(bytes);
  while (!bytes.empty()) {
    const uint64_t unit_end = unit_ends_[digests_.units.size()];
    const uint64_t part_end =
        std::min((digests_.parts.size() + 1) * part_bytes_, file_bytes_);
    const size_t count = static_cast<size_t>(
        std::min<uint64_t>(bytes.size(), std::min(unit_end, part_end) - at_));
    if (unit_ == nullptr) unit_ = std::make_unique<Digest128Stream>();
    if (part_ == nullptr) part_ = std::make_unique<Sha256>();
    unit_->Add(Slice(bytes.data(), count));
    part_->Update(Slice(bytes.data(), count));
    bytes.remove_prefix(count);
    at_ += count;
    if (at_ == unit_end) {
      digests_.units.push_back(unit_->Finish());
      unit_.reset();
    }
    if (at_ == part_end) {
      digests_.parts.push_back(part_->Finish());
      part_.reset();
    }
  }
}

FileDigests FileDigester::Finish() {
  digests_.sha256 = whole_.Finish();
  return std::move(digests_);
}

}  // namespace sstferry
