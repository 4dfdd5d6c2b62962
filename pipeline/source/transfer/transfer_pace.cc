#include "pipeline/source/transfer/transfer_pace.h"

namespace sstferry {
namespace {

// Level if the target leaves the choice to the source. Tables that shrink to
// 1/4.00 at level 1 shrink to 1/4.10 at level 3, at half the speed (111 against
// 237 MB/s).
constexpr int kDefaultCompressionLevel = 1;

}  // namespace

void TransferPace::Set(const OpenRequest& request, const Hello& target) {
  const WireCompression compression =
      (target.features & kFeatureWireCompression) != 0 ? request.compression
                                                       : WireCompression::kNone;
  rate_bucket_.SetRate(request.max_rate_bytes_per_sec);
  compression_ = compression;
  compression_level_ = request.compression_level == 0
                           ? kDefaultCompressionLevel
                           : static_cast<int>(request.compression_level);
  compressing_ = compression == WireCompression::kZstd;
}

}  // namespace sstferry
