// Runs one lane at the target, on the thread that calls Run(). Requests parts,
// receives and checks their chunks, and passes them to the chunk store.
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

// Receives parts over one connection (a lane).
//
// If the connection is lost, or bytes are damaged on the way, the lane connects
// again and repeats its requests. (pull/lane_retry.h says how often.) A unit
// resumes at the byte where it was interrupted. A chunk or a delta starts over
// at its first byte, because the source must build it again. The comparison of
// a part starts over at its first piece. A smaller chunk arrives more easily
// over a connection that breaks often. So the lane requests a quarter of the
// chunk size after each interrupted chunk, and twice the size after each
// received chunk:
//
//   64 MB lost  ->  16 MB lost  ->  4 MB received  ->  8 MB received  -> ...
class LaneClient {
 public:
  // Borrows `state`.
  LaneClient(LaneShared* state, uint32_t lane);

  // Works until no part is left. After an error, staging may still have files
  // that the lane has not passed to the store. No code uses these files.
  //   kCorrupt   in every try, bytes, totals or keys differed from what the
  //              source had announced
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
    std::unique_ptr<OpenUnit> unit;  // null if the pull is not a clone
    rocksdb::Status damage;          // found in the unit's blocks
    StagingFile file;
    ChunkDigest digest;  // of its frames on this connection
  };

  [[nodiscard]] rocksdb::Status Connect();
  [[nodiscard]] rocksdb::Status Work();
  // A request for a part, or for a piece of it, and the answer for which the
  // lane waits.
  struct Asked {
    enum class Awaits {
      kChunks,  // the chunks of the part
      kGroups,  // the source's groups; for a later piece, no answer
      kSifted,
      kDelta,
    };
    uint32_t part_id = 0;
    KeyInterval piece;
    Awaits awaits = Awaits::kChunks;
    // The following members are used only if the part is compared.
    uint32_t group_entries = 0;
    HowToTell how = HowToTell::kWhatDiffers;
    // Null until the lane compares the first piece.
    std::unique_ptr<PartComparison> comparison;
    bool is_later_piece = false;
    bool was_read = false;  // this side has read the piece
    // Received chunks that are not in the store yet. They are passed to it when
    // the part is proven equal to the source's. Until then, no other code uses
    // their files in staging.
    std::vector<StagedChunk> held;
    std::optional<SiftRequest> sift;  // not sent yet; nullopt: none
    // Requests for the delta that were not sent yet.
    std::vector<DeltaRequest> delta;
    uint64_t counted_bytes = 0;  // already counted in the progress

    bool is_compared() const { return awaits != Awaits::kChunks; }
  };

  [[nodiscard]] rocksdb::Status AskAhead();
  [[nodiscard]] rocksdb::Status AskNext(Asked asked);
  // Sends the next SiftRequest or the next DeltaRequests. Called only while the
  // source is not sending a chunk. Otherwise both sides could block while they
  // send, each waiting for the other to read.
  [[nodiscard]] rocksdb::Status AskForDelta();
  // Decides whether to request a new part's chunks or to compare the part.
  [[nodiscard]] rocksdb::Status ChooseAsked(const Part& part, Asked* asked);
  // Resets *asked, so that its part is compared again from the first piece.
  // Drops the chunks that were received for the part.
  void CompareAnew(Asked* asked);
  // Compares the current piece of the front part. Ends the piece if it is
  // equal; otherwise requests a delta.
  [[nodiscard]] rocksdb::Status ComparePart(const Part& part);
  [[nodiscard]] rocksdb::Status ReceiveGroups(GroupReply* reply);
  // Receives the answer to a SiftRequest for the front part, and requests the
  // delta. The request contains the entries that the source does not have.
  [[nodiscard]] rocksdb::Status TakeSifted();
  // Called when the front part, or its current piece, has been received
  // completely. Requests the next piece, or ends the part.
  [[nodiscard]] rocksdb::Status EndPart(const Part& part);
  // Passes the chunks of the front part to the store. REQUIRES: the part is
  // proven equal to the source's.
  [[nodiscard]] rocksdb::Status EndProven();
  // Starts a second comparison of the front part, because the first one did not
  // prove it equal. Fails if this was already the second comparison. `status`
  // says how the part differs.
  [[nodiscard]] rocksdb::Status EndUnproven(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status RecordEnd(const Part& part,
                                          const Totals& totals);
  // Moves the state of the front part out of asked_, and returns the state. The
  // front part itself stays in asked_ until the caller passes the state, with
  // changes, to AskInstead().
  Asked TakeFront();
  // Removes the front part, and requests `next` after all other parts in
  // asked_.
  [[nodiscard]] rocksdb::Status AskInstead(Asked next);
  // Sends the request for a part. `front` is true if the part is the front
  // part, of which some chunks may have been received.
  [[nodiscard]] rocksdb::Status Ask(const Asked& asked, bool front);
  void StartPart();
  void StartTime();
  [[nodiscard]] rocksdb::Status ReceivePart(const Part& part);
  [[nodiscard]] rocksdb::Status ReceiveChunk(const Part& part,
                                             const ChunkBegin& begin);
  [[nodiscard]] rocksdb::Status OpenForChunk(const Part& part,
                                             const ChunkBegin& begin);
  void DropChunk();
  // Drops the open chunk after a lost connection if the source must build it
  // again.
  void DropBuilt();
  // Adds the chunk to the comparison of the front part, and keeps it until the
  // whole part is proven.
  [[nodiscard]] rocksdb::Status HoldChunk(StagedChunk chunk);
  // Blocks until the rate limit allows writing `bytes` more bytes.
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
  // Receives the next frame. If it contains chunk data, receives or
  // decompresses the data directly into the buffer of `file`, and sets
  // *data_bytes to its size.
  [[nodiscard]] rocksdb::Status ReceiveInto(StagingFile* file, Frame* frame,
                                            size_t* data_bytes);
  [[nodiscard]] rocksdb::Status RoomForData(size_t bytes, StagingFile* file,
                                            char** room);
  // Decompresses the contents of a ChunkData frame into the buffer of `file`.
  [[nodiscard]] rocksdb::Status Unpack(const Frame& frame, StagingFile* file,
                                       size_t* data_bytes);

  LaneShared* const state_;
  LaneChannel channel_;
  LaneRetry retry_;
  StageClock clock_;
  StagingBuffer buffer_;
  WireDecompressor decompressor_;
  std::deque<Asked> asked_;     // in the order of the requests
  Clock::time_point until_;     // time limit of the current chunk

  // Returns the ordinal of the next chunk.
  uint64_t next_ordinal() const {
    return part_received_.chunks + part_totals_.chunks;
  }

  // Totals of the front part: of the chunks that were received before its
  // current request, and of those that were received since.
  Totals part_received_;
  Totals part_totals_;
  std::string last_key_;  // last key of the part's last chunk of entries
  // Kind of the latest chunk of the front part. A chunk of another kind than
  // kRebuilt is the only chunk that answers its request.
  PartKind chunk_kind_ = PartKind::kRebuilt;
  uint64_t planned_done_ = 0;
  std::unique_ptr<OpenChunk> open_;
  // Chunk size to request; 0: the transfer's chunk size.
  uint64_t chunk_bytes_ = 0;
  // Totals and digest chain of the chunks that answer the latest request for
  // the front part.
  Totals answer_totals_;
  PartDigest answer_chain_;
};

}  // namespace sstferry
