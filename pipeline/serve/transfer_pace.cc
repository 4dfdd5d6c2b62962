#include "pipeline/serve/transfer_pace.h"

#include <algorithm>

namespace sstferry {
namespace {

// Compression level if the target does not choose one. Compared with level 1,
// level 3 makes tables only slightly smaller (1/4.10 instead of 1/4.00 of their
// size), at half the speed (111 instead of 237 MB/s).
constexpr int kDefaultCompressionLevel = 1;

}  // namespace

void TransferPace::Set(const OpenRequest& request, const Hello& target) {
  const WireCompression compression =
      (target.features & kFeatureWireCompression) != 0 ? request.compression
                                                       : WireCompression::kNone;
  rate_bucket_.SetRate(request.max_rate_bytes_per_sec);
  hold_back_->Allow(!request.full_rate && !shares_->full_rate());
  compression_ = compression;
  compression_level_ = request.compression_level == 0
                           ? kDefaultCompressionLevel
                           : static_cast<int>(request.compression_level);
  compressing_ = compression == WireCompression::kZstd;
}

rocksdb::Status TransferPace::TakeFromAll(uint64_t bytes) {
  rocksdb::Status status;
  std::lock_guard<std::mutex> lock(turn_mu_);
  while (status.ok() && bytes > 0) {
    const uint64_t part = std::min(bytes, kTurnBytes);
    status = shares_->wire_bucket()->Take(part);
    bytes -= part;
  }
  return status;
}

}  // namespace sstferry
