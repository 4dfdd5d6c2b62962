// Serves one connection of a lane at the source. The thread that calls Run()
// answers the requests for parts, digests and entries in the order of arrival.
// If the lane already has a connection, Run() first closes that connection
// (serve/lane_port.h).
//
//   for each request:
//     a part      send its bytes from the part store: file, builder or spool
//     groups      send digests of groups of entries, if the target compares
//     a delta     send the entries of the part that the target does not have
//     a digest    of a part or a unit, for a verify; of a piece of a file, for
//                 a push
//   until the target ends the lane, the connection is lost, or the transfer
//   ends. After a lost connection, the target connects again and repeats its
//   requests.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/parts/part_store.h"
#include "pipeline/serve/lane_compressor.h"
#include "pipeline/serve/lane_sink.h"
#include "pipeline/serve/refresh_at_source.h"
#include "pipeline/serve/transfer.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Serves one connection of a lane.
class LaneSession {
 public:
  // Borrows the channel, which must outlive Run().
  LaneSession(std::shared_ptr<Transfer> transfer, Channel* channel,
              uint32_t lane);

  // Serves until the target closes the lane, the connection is lost, or the
  // transfer ends. After Run(), the channel is not used any more. If the lane
  // fails, tells the target and ends the whole transfer. A lost connection is
  // not a failure.
  void Run();

 private:
  [[nodiscard]] rocksdb::Status Serve();
  [[nodiscard]] rocksdb::Status Answer(const LaneRequest& request, bool* done);
  [[nodiscard]] rocksdb::Status CountRequest();
  [[nodiscard]] rocksdb::Status SendPart(const PartRequest& request);
  // Sets in *read the functions that build the chunks of the part.
  void SetBuild(const PartRequest& request, PartRead* read) const;
  // Returns the options for building chunks. `chunk_bytes` is the size of a
  // chunk in the PartRequest; 0: as in the OpenRequest.
  ChunkBuilderOptions BuilderOptions(const TransferFamily& family,
                                     uint64_t chunk_bytes) const;
  // Returns a function that adds a number of entries to the transfer's
  // counters.
  OnProgress Counter();
  // Sets *part to the part `part_id` of a refresh, for a comparison. Returns
  // kCorrupt if the plan has no such part, or if the transfer is not a refresh.
  [[nodiscard]] rocksdb::Status FindCompared(uint32_t part_id,
                                             const Part** part);
  [[nodiscard]] rocksdb::Status SendGroups(const GroupRequest& request);
  [[nodiscard]] rocksdb::Status SendSifted(const SiftRequest& request);
  // Handles one of the messages that together request a delta. After the last
  // message, builds and sends the delta.
  [[nodiscard]] rocksdb::Status SendDelta(DeltaRequest request);
  // Makes the entries of an interval readable, for example by fetching their
  // files. See Snapshot::Fetch().
  [[nodiscard]] rocksdb::Status Fetch(const TransferFamily& family,
                                      const KeyInterval& interval);
  [[nodiscard]] rocksdb::Status SendDigest(const DigestRequest& request);
  [[nodiscard]] rocksdb::Status SendUnitDigest(
      const UnitDigestRequest& request);
  [[nodiscard]] rocksdb::Status SendFileDigest(
      const FileDigestRequest& request);
  [[nodiscard]] rocksdb::Status SendEntries(const EntriesRequest& request);
  [[nodiscard]] rocksdb::Status FindFamily(uint32_t index,
                                           const TransferFamily** family);
  // Sleeps if the lane must slow down for the source's application, and then
  // returns stopped(). Loops that read or build on the lane's thread call this
  // often.
  bool PacedStop();
  // Returns true if the target no longer waits for answers on this connection.
  bool stopped() const { return transfer_->ended() || port_->replaced(); }

  const std::shared_ptr<Transfer> transfer_;
  const uint32_t lane_;
  LaneLink link_;
  StageClock clock_;
  LaneCompressor compressor_;
  HoldBack::Worker worker_;
  LaneSink sink_;
  std::unique_ptr<LaneDeltas> deltas_;  // null until a part is compared
  std::vector<char> unit_buffer_;
  LanePort* port_ = nullptr;
  uint64_t requests_ = 0;  // number of requests for parts and digests
};

}  // namespace sstferry
