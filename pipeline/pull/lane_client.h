// Runs one lane at the target: asks for parts, receives and checks their
// chunks, and passes them to the chunk store, on the thread that calls Run().
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "format/wire_compression.h"
#include "pipeline/disk/staging_file.h"
#include "pipeline/pull/lane_channel.h"
#include "pipeline/pull/lane_retry.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/part_compare.h"
#include "pipeline/pull/unit_check.h"

namespace sstferry {

// The work of one lane.
//
// If the lane's connection is lost, or bytes are damaged on the way, the lane
// connects again (pull/lane_retry.h says how often) and repeats its requests. A
// unit resumes at the byte where it broke. The source must build chunks and
// deltas again, so they are received again from their first byte; the
// comparison of a part restarts with its first piece. So that a chunk gets
// through in the end, the lane asks for a quarter of the size each time that a
// chunk breaks, and for twice the size after each chunk that is received:
//
//   64 MB  breaks  ->  16 MB  breaks  ->  4 MB  whole  ->  8 MB  whole  -> ...
class LaneClient {
 public:
  // Borrows the state.
  LaneClient(LaneShared* state, uint32_t lane);

  // Works until no part is left. After an error the lane keeps nothing: files
  // in staging that it has not passed on belong to nobody.
  //   kCorrupt   bytes, totals or keys were not what the source announced, in
  //              every try
  //   kDeadPeer  the source was unreachable for too long
  [[nodiscard]] rocksdb::Status Run();

 private:
  // A chunk that has not been received completely.
  struct OpenChunk {
    OpenChunk(LaneShared* state, StagingPlace place, StagingBuffer* buffer,
              std::unique_ptr<OpenUnit> of_clone)
        : unit(std::move(of_clone)),
          file(state->file_system, std::move(place), buffer) {}
    ChunkBegin begin;
    std::unique_ptr<OpenUnit> unit;  // null: not a unit of a clone
    rocksdb::Status damage;          // found in the unit's blocks
    StagingFile file;
    ChunkDigest digest;  // over its frames on this connection
  };

  [[nodiscard]] rocksdb::Status Connect();
  [[nodiscard]] rocksdb::Status Work();
  // A part, or a piece of it, and the answer that is awaited for it.
  struct Asked {
    enum class Awaits {
      kChunks,  // the part is sent, or its keys are looked up
      kGroups,  // to compare with; for later pieces, nothing is sent
      kSifted,
      kDelta,
    };
    uint32_t part_id = 0;
    KeyInterval piece;
    Awaits awaits = Awaits::kChunks;
    // The members below are only for a compared part.
    uint32_t group_entries = 0;
    HowToTell how = HowToTell::kWhatDiffers;
    // Null until the first piece is at the front.
    std::unique_ptr<PartComparison> comparison;
    bool is_later_piece = false;
    bool was_read = false;  // the piece was read
    // Received chunks, which are passed to the store when the part is proven.
    // Until then nobody else uses their files in staging.
    std::vector<StagedChunk> held;
    std::optional<SiftRequest> sift;  // until it is sent
    // Messages that ask for the delta, until they are sent.
    std::vector<DeltaRequest> delta;
    uint64_t counted_bytes = 0;  // already counted in the progress

    bool is_compared() const { return awaits != Awaits::kChunks; }
  };

  [[nodiscard]] rocksdb::Status AskAhead();
  [[nodiscard]] rocksdb::Status AskNext(Asked asked);
  // Sends the next SiftRequest or the next DeltaRequests. Called while the
  // source sends no chunk: otherwise both sides could wait for the other to
  // read.
  [[nodiscard]] rocksdb::Status AskForDelta();
  // Decides whether a new part's chunks are asked for or the part is compared.
  [[nodiscard]] rocksdb::Status ChooseAsked(const Part& part, Asked* asked);
  // Restarts a part as one that is compared from its first piece. Forgets what
  // was received of it.
  void CompareAnew(Asked* asked);
  // Compares the front part's piece: counts it as equal, or asks for a delta.
  [[nodiscard]] rocksdb::Status ComparePart(const Part& part);
  [[nodiscard]] rocksdb::Status ReceiveGroups(GroupReply* reply);
  // Receives the answer to a SiftRequest for the front part, and asks for the
  // delta of the entries that the source does not have.
  [[nodiscard]] rocksdb::Status TakeSifted();
  // Called when all chunks of the front part, or of its piece, have been
  // received. Asks for the next piece, or ends the part.
  [[nodiscard]] rocksdb::Status EndPart(const Part& part);
  // Passes on the chunks of a part that is proven to be equal to the source's.
  [[nodiscard]] rocksdb::Status EndProven();
  // Compares the part once more, or fails with `status`.
  [[nodiscard]] rocksdb::Status EndUnproven(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status RecordEnd(const Part& part,
                                          const Totals& totals);
  // Removes and returns the state of the front part with which the next request
  // for it continues.
  Asked TakeFront();
  // Replaces the front part by `next`, which is asked for after all others.
  [[nodiscard]] rocksdb::Status AskInstead(Asked next);
  // Sends the request for a part. `front`: part of it may have been received.
  [[nodiscard]] rocksdb::Status Ask(const Asked& asked, bool front);
  void StartPart();
  void StartTime();
  [[nodiscard]] rocksdb::Status ReceivePart(const Part& part);
  [[nodiscard]] rocksdb::Status ReceiveChunk(const Part& part,
                                             const ChunkBegin& begin);
  [[nodiscard]] rocksdb::Status OpenForChunk(const Part& part,
                                             const ChunkBegin& begin);
  void DropChunk();
  // Drops data that the source builds again after a lost connection.
  void DropBuilt();
  // Checks the chunk against the entries of this side with which it makes up
  // the part, and keeps it until the whole part is proven.
  [[nodiscard]] rocksdb::Status HoldChunk(StagedChunk chunk);
  // Blocks until `bytes` more may be written.
  [[nodiscard]] rocksdb::Status AwaitPace(uint64_t bytes);
  // Blocks until the disk has room for a chunk.
  [[nodiscard]] rocksdb::Status AwaitSpace(const Part& part,
                                           const ChunkBegin& begin);
  [[nodiscard]] rocksdb::Status StoreChunk(const Part& part, ChunkEnd* end);
  [[nodiscard]] rocksdb::Status BadChunk(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status CheckStored(const Part& part,
                                            StagedChunk* chunk);
  void CountChunk(const StagedChunk& chunk);
  void CountBytes(const Part& part, uint64_t bytes);
  [[nodiscard]] rocksdb::Status Receive(Frame* frame);
  // Receives the next frame. Chunk data is received directly into the file's
  // buffer, or decompressed into it; *data_bytes is its size.
  [[nodiscard]] rocksdb::Status ReceiveInto(StagingFile* file, Frame* frame,
                                            size_t* data_bytes);
  [[nodiscard]] rocksdb::Status RoomForData(size_t bytes, StagingFile* file,
                                            char** room);
  // Writes the contents of a ChunkData frame, decompressed if necessary.
  [[nodiscard]] rocksdb::Status Unpack(const Frame& frame, StagingFile* file,
                                       size_t* data_bytes);

  LaneShared* const state_;
  LaneChannel channel_;
  LaneRetry retry_;
  StageClock clock_;
  StagingBuffer buffer_;
  WireDecompressor decompressor_;
  std::deque<Asked> asked_;     // in the order of the requests
  Clock::time_point until_;     // for the current chunk, on this connection

  // Returns the ordinal of the next chunk.
  uint64_t next_ordinal() const {
    return part_received_.chunks + part_totals_.chunks;
  }

  // Totals of the part being received: received earlier, and received now.
  Totals part_received_;
  Totals part_totals_;
  std::string last_key_;  // last key of its last chunk of entries
  // Kind of the part's last chunk. A chunk of another kind than kRebuilt is the
  // only one of its part.
  PartKind chunk_kind_ = PartKind::kRebuilt;
  uint64_t planned_done_ = 0;
  std::unique_ptr<OpenChunk> open_;
  // Size of chunks to ask for; 0: the transfer's.
  uint64_t chunk_bytes_ = 0;
  // Counts of the answer being received, since the part was asked for.
  Totals answer_totals_;
  PartDigest answer_chain_;
};

}  // namespace sstferry
