// One lane at the source: answers part, digest and entries requests in the
// order of arrival, on the thread that calls Run(). If the lane already has
// another connection, closes it, and the thread that served it continues with
// this one (serve/lane_port.h).
#pragma once

#include <memory>
#include <vector>

#include "pipeline/parts/chunk_cache.h"
#include "pipeline/serve/lane_compressor.h"
#include "pipeline/serve/lane_deltas.h"
#include "pipeline/serve/lane_sink.h"
#include "pipeline/serve/transfer.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

class LaneSession {
 public:
  // Borrows the channel, which must outlive Run().
  LaneSession(std::shared_ptr<Transfer> transfer, Channel* channel,
              uint32_t lane);

  // Serves until the target closes the lane or the transfer ends; returns once
  // the channel is no longer needed. Tells the target of a failure on this lane
  // and ends the whole transfer; a lost connection is no failure.
  void Run();

 private:
  void ServeLane(LanePort* port);
  [[nodiscard]] rocksdb::Status Serve(LanePort* port);
  [[nodiscard]] rocksdb::Status Answer(const LaneRequest& request,
                                       LanePort* port, bool* done);
  [[nodiscard]] rocksdb::Status CountRequest();
  [[nodiscard]] rocksdb::Status SendPart(const PartRequest& request);
  [[nodiscard]] rocksdb::Status BuildPart(const Part& part,
                                           const PartRequest& request);
  [[nodiscard]] rocksdb::Status SendCached(const Part& part,
                                           const TransferFamily& family,
                                           CachedRead* read);
  ChunkBuilderOptions BuilderOptions(const TransferFamily& family);
  [[nodiscard]] rocksdb::Status SendGroups(const GroupRequest& request,
                                           LanePort* port);
  // Takes one message of a request, and sends the delta after the last one.
  [[nodiscard]] rocksdb::Status SendDelta(DeltaRequest request);
  [[nodiscard]] rocksdb::Status ClonePart(const Part& part,
                                           const PartRequest& request);
  // Counts entries as they are sent, for the progress.
  std::function<void(uint64_t entries)> Counter();
  [[nodiscard]] rocksdb::Status SendDigest(const DigestRequest& request,
                                           LanePort* port);
  [[nodiscard]] rocksdb::Status SendUnitDigest(
      const UnitDigestRequest& request, LanePort* port);
  [[nodiscard]] rocksdb::Status SendEntries(const EntriesRequest& request);
  [[nodiscard]] rocksdb::Status FindFamily(uint32_t index,
                                           const TransferFamily** family);

  const std::shared_ptr<Transfer> transfer_;
  Channel* const channel_;  // of this thread; link_ may use a later one
  LaneLink* link_ = nullptr;
  LaneSink* sink_ = nullptr;
  const uint32_t lane_;
  StageClock clock_;
  std::vector<char> unit_buffer_;
  LaneCompressor compressor_;
  LaneDeltas deltas_;
  uint64_t requests_ = 0;  // for parts and digests
};

}  // namespace sstferry
