// One lane at the target: asks for ranges, receives their chunks, checks them
// and hands them to the ingestor, on the thread that calls Run().
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "format/wire_compression.h"
#include "pipeline/target/pull_state.h"
#include "pipeline/target/staging_file.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

class LaneClient {
 public:
  // Borrows the state and the channel.
  LaneClient(PullState* state, Channel* channel, uint32_t lane);

  // Works until no range is left. On error the lane holds nothing that was not
  // handed over; what lies in staging belongs to nobody.
  //   kCorrupt   bytes, totals or keys are not what the source announced
  [[nodiscard]] rocksdb::Status Run();

 private:
  [[nodiscard]] rocksdb::Status AskAhead();
  [[nodiscard]] rocksdb::Status ReceiveRange(const Range& range);
  [[nodiscard]] rocksdb::Status ReceiveChunk(const Range& range,
                                             const ChunkBegin& begin);
  [[nodiscard]] rocksdb::Status StoreChunk(const Range& range,
                                           const std::string& path,
                                           ChunkEnd* end);
  [[nodiscard]] rocksdb::Status CheckStored(const Range& range,
                                            const std::string& path,
                                            StagedChunk* chunk);
  [[nodiscard]] rocksdb::Status CheckTurn(const Range& range,
                                          const ChunkBegin& begin) const;
  void CountChunk(const StagedChunk& chunk);
  [[nodiscard]] rocksdb::Status CheckBounds(const Range& range,
                                            const ChunkEnd& end) const;
  [[nodiscard]] rocksdb::Status CheckRangeEnd(const Range& range,
                                              const RangeEnd& end);
  void CountBytes(const Range& range, uint64_t bytes);
  [[nodiscard]] rocksdb::Status Receive(Frame* frame);
  [[nodiscard]] rocksdb::Status ReceiveInto(StagingFile* file, Frame* frame,
                                            size_t* data_bytes);
  [[nodiscard]] rocksdb::Status RoomForData(size_t bytes, StagingFile* file,
                                            char** room);
  // What a ChunkData frame holds, decompressed where it says so.
  [[nodiscard]] rocksdb::Status Unpack(const Frame& frame, StagingFile* file,
                                       size_t* data_bytes);

  PullState* const state_;
  Channel* const channel_;
  const uint32_t lane_;
  StageClock clock_;
  StagingBuffer buffer_;
  WireDecompressor decompressor_;
  std::deque<uint32_t> asked_;  // range ids in the order asked

  // Of the range being received.
  Totals range_totals_;
  RangeDigest range_chain_;
  std::string last_key_;
  bool range_carried_ = false;  // its one chunk has come
  uint64_t planned_done_ = 0;
};

}  // namespace sstferry
