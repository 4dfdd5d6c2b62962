#include "pipeline/serve/transfer_plan.h"

#include "format/end_state.h"

namespace sstferry {

Digest128 TransferPlan::Digest() const {
  RangeDigest digest;
  const auto add = [&digest](const std::string& bytes) {
    digest.AddChunk(DigestOf(bytes));
  };
  for (const TransferFamily& family : families) {
    add(family.wire.description.name);
    add(std::to_string(family.wire.format_version));
  }
  for (const Range& range : ranges) {
    Range exact = range;
    exact.estimated_bytes = 0;
    Ranges one;
    one.ranges.push_back(exact);
    std::string bytes;
    one.EncodeTo(&bytes);
    add(bytes);
  }
  if (clone.has_value()) {
    std::string bytes;
    clone->set.EncodeTo(&bytes);
    CloneFiles{clone->files}.EncodeTo(&bytes);
    add(bytes);
  }
  return digest.Finish();
}

rocksdb::Status ReleaseAsked(const OpenRequest& request, RocksDbRelease* release) {
  *release = RocksDbRelease();
  return request.application.empty() ||
                 ParseRelease(request.application, release)
             ? rocksdb::Status::OK()
             : MakeStatus(EndState::kRefused,
                          "expected a release of RocksDB such as 8.11.4, found "
                          "'" + request.application.substr(0, 32) + "'");
}

}  // namespace sstferry
