// One lane at the source: answers range, digest and entries requests in the
// order they arrive, on the thread that calls Run().
#pragma once

#include <memory>

#include "pipeline/source/chunk_builder.h"
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
  [[nodiscard]] rocksdb::Status SendRange(const RangeRequest& request);
  [[nodiscard]] rocksdb::Status SendDigest(const DigestRequest& request);
  [[nodiscard]] rocksdb::Status SendEntries(const EntriesRequest& request);
  [[nodiscard]] rocksdb::Status FindFamily(uint32_t index,
                                           const TransferFamily** family);

  const std::shared_ptr<Transfer> transfer_;
  Channel* const channel_;
  const uint32_t lane_;
  StageClock clock_;
};

}  // namespace sstferry
