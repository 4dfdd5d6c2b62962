// One lane at the source: answers range, digest and entries requests in the
// order they arrive, on the thread that calls Run().
#pragma once

#include <memory>
#include <vector>

#include "pipeline/source/chunk_builder.h"
#include "pipeline/source/lane_compressor.h"
#include "pipeline/source/transfer.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

class LaneSession {
 public:
  // Borrows the channel, which must outlive Run().
  LaneSession(std::shared_ptr<Transfer> transfer, Channel* channel,
              uint32_t lane);

  // Serves until the target closes the lane or the transfer ends. A failure is
  // told to the target on this lane and ends the whole transfer.
  void Run();

 private:
  [[nodiscard]] rocksdb::Status Serve();
  [[nodiscard]] rocksdb::Status CountRequest();
  [[nodiscard]] rocksdb::Status SendRange(const RangeRequest& request);
  [[nodiscard]] rocksdb::Status BuildRange(const Range& range,
                                           const RangeRequest& request,
                                           ChunkSink* sink, RangeEnd* end);
  [[nodiscard]] rocksdb::Status CarryRange(const Range& range,
                                           const RangeRequest& request,
                                           ChunkSink* sink, RangeEnd* end);
  // Books entries as they are sent, for the timeline.
  std::function<void(uint64_t entries, uint64_t bytes)> Counter();
  [[nodiscard]] rocksdb::Status SendDigest(const DigestRequest& request);
  [[nodiscard]] rocksdb::Status SendEntries(const EntriesRequest& request);
  [[nodiscard]] rocksdb::Status FindFamily(uint32_t index,
                                           const TransferFamily** family);

  const std::shared_ptr<Transfer> transfer_;
  Channel* const channel_;
  const uint32_t lane_;
  StageClock clock_;
  std::vector<char> carry_buffer_;
  LaneCompressor compressor_;
  bool lost_ = false;  // no frame came
  uint64_t requests_ = 0;  // for what is read and sent in large
};

}  // namespace sstferry
