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
// unit resumes at the byte where it was interrupted. Chunks and deltas start
// over at their first byte, because the source must build them again; the
// comparison of a part restarts with its first piece. To get a chunk through,
// the lane requests a quarter of the chunk size after each interrupted chunk,
// and twice the size after each received chunk:
//
//   64 MB lost  ->  16 MB lost  ->  4 MB received  ->  8 MB received  -> ...
class LaneClient {
 public:
  // Borrows the state.
  LaneClient(LaneShared* state, uint32_t lane);

  // Works until no part is left. After an error, no code uses the files in
  // staging that the lane has not passed to the store.
  //   kCorrupt   in every try, bytes, totals or keys differed from what the
  //              source announced
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
  // A requested part, or a piece of it, and the answer that is awaited.
  struct Asked {
    enum class Awaits {
      kChunks,  // the chunks of the part
      kGroups,  // the source's groups; for later pieces, no answer
      kSifted,
      kDelta,
    };
    uint32_t part_id = 0;
    KeyInterval piece;
    Awaits awaits = Awaits::kChunks;
    // The members below are only for a compared part.
    uint32_t group_entries = 0;
    HowToTell how = HowToTell::kWhatDiffers;
    // Null until the first piece is at the front of asked_.
    std::unique_ptr<PartComparison> comparison;
    bool is_later_piece = false;
    bool was_read = false;  // this side has read the piece
    // Received chunks, which are passed to the store when the part is proven.
    // Until then no other code uses their files in staging.
    std::vector<StagedChunk> held;
    std::optional<SiftRequest> sift;  // not sent yet
    // Requests for the delta that are not sent yet.
    std::vector<DeltaRequest> delta;
    uint64_t counted_bytes = 0;  // already counted in the progress

    bool is_compared() const { return awaits != Awaits::kChunks; }
  };

  [[nodiscard]] rocksdb::Status AskAhead();
  [[nodiscard]] rocksdb::Status AskNext(Asked asked);
  // Sends the next SiftRequest or the next DeltaRequests. Called only while the
  // source sends no chunk: otherwise each side could wait for the other to
  // read.
  [[nodiscard]] rocksdb::Status AskForDelta();
  // Decides whether to request a new part's chunks or to compare the part.
  [[nodiscard]] rocksdb::Status ChooseAsked(const Part& part, Asked* asked);
  // Restarts a part, to be compared from its first piece. Drops the chunks that
  // were received for it.
  void CompareAnew(Asked* asked);
  // Compares the piece of the front part. Counts it as equal, or asks for a
  // delta.
  [[nodiscard]] rocksdb::Status ComparePart(const Part& part);
  [[nodiscard]] rocksdb::Status ReceiveGroups(GroupReply* reply);
  // Receives the answer to a SiftRequest for the front part, and asks for the
  // delta of the entries that the source does not have.
  [[nodiscard]] rocksdb::Status TakeSifted();
  // Called when all chunks of the front part, or of its piece, have been
  // received. Asks for the next piece, or ends the part.
  [[nodiscard]] rocksdb::Status EndPart(const Part& part);
  // Passes the chunks of the front part, which is proven to be equal to the
  // source's, to the store.
  [[nodiscard]] rocksdb::Status EndProven();
  // Starts a second comparison of the part. Fails with `status` if this was
  // already the second one.
  [[nodiscard]] rocksdb::Status EndUnproven(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status RecordEnd(const Part& part,
                                          const Totals& totals);
  // Moves out the state of the front part, with which the next request for the
  // part continues. AskInstead() then removes the front part.
  Asked TakeFront();
  // Replaces the front part by `next`, which is requested after all other parts
  // in asked_.
  [[nodiscard]] rocksdb::Status AskInstead(Asked next);
  // Sends the request for a part. `front`: the part is at the front, so some of
  // it may have been received.
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
  // Adds the chunk to the proof of the front part, and keeps it until the whole
  // part is proven.
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
  Clock::time_point until_;     // limit of the current chunk on this connection

  // Returns the ordinal of the next chunk.
  uint64_t next_ordinal() const {
    return part_received_.chunks + part_totals_.chunks;
  }

  // Totals of the front part: chunks that were received before its current
  // request, and since.
  Totals part_received_;
  Totals part_totals_;
  std::string last_key_;  // last key of the part's last chunk of entries
  // Kind of the part's last chunk. A chunk of another kind than kRebuilt is the
  // only chunk of its part.
  PartKind chunk_kind_ = PartKind::kRebuilt;
  uint64_t planned_done_ = 0;
  std::unique_ptr<OpenChunk> open_;
  // Chunk size to request; 0: the transfer's chunk size.
  uint64_t chunk_bytes_ = 0;
  // Totals and chain of the chunks since the last request for the front part.
  Totals answer_totals_;
  PartDigest answer_chain_;
};

}  // namespace sstferry
