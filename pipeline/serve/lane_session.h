// Serves one connection of a lane at the source: answers requests for parts,
// digests and entries in the order of arrival, on the thread that calls Run().
// If the lane has another connection, that one is closed first
// (serve/lane_port.h).
//
//   for each request:
//     a part      send its bytes from the part store: file, builder or spool
//     groups      send digests of groups of entries, if the target compares
//     a delta     send the entries of the part that the target does not have
//     a digest    of a part or a unit, for a verify; of a piece of a file, for
//                 a push
//   until the target ends the lane, the connection is lost, or the transfer
//   ends. Nothing is kept for a lost connection: the target asks again.
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

  // Serves until the target closes the lane or the transfer ends; returns when
  // the channel is no longer needed. A failure on this lane is reported to the
  // target and ends the whole transfer; a lost connection is no failure.
  void Run();

 private:
  [[nodiscard]] rocksdb::Status Serve();
  [[nodiscard]] rocksdb::Status Answer(const LaneRequest& request, bool* done);
  [[nodiscard]] rocksdb::Status CountRequest();
  [[nodiscard]] rocksdb::Status SendPart(const PartRequest& request);
  // Sets the functions that build the chunks of a part.
  void SetBuild(const PartRequest& request, PartRead* read) const;
  // `chunk_bytes`: as in a PartRequest.
  ChunkBuilderOptions BuilderOptions(const TransferFamily& family,
                                     uint64_t chunk_bytes) const;
  // Returns a function that adds a number of built entries to the transfer's
  // counters.
  OnProgress Counter();
  // Sets *part to the part with this id. kCorrupt: the plan has no such part,
  // or the transfer is not a refresh, so the target must not compare parts.
  [[nodiscard]] rocksdb::Status FindCompared(uint32_t part_id,
                                             const Part** part);
  [[nodiscard]] rocksdb::Status SendGroups(const GroupRequest& request);
  [[nodiscard]] rocksdb::Status SendSifted(const SiftRequest& request);
  // Adds one message of a request, and sends the delta after the last one.
  [[nodiscard]] rocksdb::Status SendDelta(DeltaRequest request);
  // Makes the entries of an interval readable (Snapshot::Fetch()).
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
  // Returns stopped(), after throttling for the source's application. Called
  // often by loops that read or build on the lane's thread.
  bool PacedStop();
  // Returns true if no target waits for an answer any more.
  bool stopped() const { return transfer_->ended() || port_->replaced(); }

  const std::shared_ptr<Transfer> transfer_;
  const uint32_t lane_;
  LaneLink link_;
  StageClock clock_;
  LaneCompressor compressor_;
  HoldBack::Worker worker_;
  LaneSink sink_;
  std::unique_ptr<LaneDeltas> deltas_;  // null: no part was compared yet
  std::vector<char> unit_buffer_;
  LanePort* port_ = nullptr;
  uint64_t requests_ = 0;  // for parts and digests
};

}  // namespace sstferry
