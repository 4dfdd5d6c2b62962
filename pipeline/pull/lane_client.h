// One lane at the target: asks for parts, receives their chunks, checks them
// and hands them to the chunk store, on the thread that calls Run().
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

// When the lane's connection is lost, or its bytes are damaged on the way, it
// connects again (pull/lane_retry.h says how often) and repeats its requests. A
// unit resumes at the byte where it broke. The source builds a chunk and a
// delta again, so they come from their first byte; a part that is compared is
// begun at its first piece. So that a chunk comes through
// in the end, the lane asks for a quarter of its size each time it breaks, and
// for twice as much after each that came:
//
//   64 MB  breaks  ->  16 MB  breaks  ->  4 MB  whole  ->  8 MB  whole  -> ...
class LaneClient {
 public:
  // Borrows the state.
  LaneClient(LaneShared* state, uint32_t lane);

  // Works until no part is left. On error the lane holds nothing that was not
  // handed over; what lies in staging belongs to nobody.
  //   kCorrupt   bytes, totals or keys are not what the source announced, as
  //              often as they were asked for
  //   kDeadPeer  the source was not there for too long
  [[nodiscard]] rocksdb::Status Run();

 private:
  // A chunk of which not everything has come.
  struct OpenChunk {
    OpenChunk(LaneShared* state, StagingPlace place, StagingBuffer* buffer,
              std::unique_ptr<OpenUnit> of_clone)
        : unit(std::move(of_clone)),
          file(state->file_system, std::move(place), buffer) {}
    ChunkBegin begin;
    std::unique_ptr<OpenUnit> unit;  // null: it is none of a clone's
    rocksdb::Status damage;          // what the unit's blocks showed
    StagingFile file;
    ChunkDigest digest;  // of its frames on this connection
  };

  [[nodiscard]] rocksdb::Status Connect();
  [[nodiscard]] rocksdb::Status Work();
  // A part, or a piece of it, and what is awaited of it.
  struct Asked {
    enum class Awaits {
      kChunks,  // of a part that is sent, or whose keys are looked up
      kGroups,  // to be compared; of all pieces but the first one, nothing
      kSifted,
      kDelta,
    };
    uint32_t part_id = 0;
    KeyInterval piece;
    Awaits awaits = Awaits::kChunks;
    // These are for a part that is compared.
    uint32_t group_entries = 0;
    HowToTell how = HowToTell::kWhatDiffers;
    // Null until the first piece is at hand.
    std::unique_ptr<PartComparison> comparison;
    bool is_later_piece = false;
    bool was_read = false;  // the piece
    // Came, and go to the store once the part is proven. What lies in staging
    // belongs to nobody until then.
    std::vector<StagedChunk> held;
    std::optional<SiftRequest> sift;  // until it is sent
    // Until they are sent: the messages that ask for the delta.
    std::vector<DeltaRequest> delta;
    uint64_t counted_bytes = 0;  // in the progress already

    bool is_compared() const { return awaits != Awaits::kChunks; }
  };

  [[nodiscard]] rocksdb::Status AskAhead();
  [[nodiscard]] rocksdb::Status AskNext(Asked asked);
  // Sends what is to be asked for a delta, and before it, while the source
  // sends no chunk: both could else wait for each other to read.
  [[nodiscard]] rocksdb::Status AskForDelta();
  // Fills what a new part is asked for: its chunks, or to be compared.
  [[nodiscard]] rocksdb::Status ChooseAsked(const Part& part, Asked* asked);
  // Makes a part one that is compared from its first piece on. Forgets what
  // came of it.
  void CompareAnew(Asked* asked);
  // The front part's: counts its piece as equal, or asks for a delta.
  [[nodiscard]] rocksdb::Status ComparePart(const Part& part);
  [[nodiscard]] rocksdb::Status ReceiveGroups(GroupReply* reply);
  // The front part's: asks for the delta of what the source does not have.
  [[nodiscard]] rocksdb::Status TakeSifted();
  // All chunks of the front part, or of its piece, have come: asks for the next
  // piece, or ends the part.
  [[nodiscard]] rocksdb::Status EndPart(const Part& part);
  // Hands over what came of a part that is proven to be the source's.
  [[nodiscard]] rocksdb::Status EndProven();
  // Compares the part once more, or fails with `status`.
  [[nodiscard]] rocksdb::Status EndUnproven(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status RecordEnd(const Part& part,
                                          const Totals& totals);
  // Returns what goes on of the front part, which has to be asked for instead
  // of it.
  Asked TakeFront();
  // Puts `next` in the place of the front part, after all others.
  [[nodiscard]] rocksdb::Status AskInstead(Asked next);
  // The request for a part of which this lane may have a piece.
  [[nodiscard]] rocksdb::Status Ask(const Asked& asked, bool front);
  void StartPart();
  void StartTime();
  [[nodiscard]] rocksdb::Status ReceivePart(const Part& part);
  [[nodiscard]] rocksdb::Status ReceiveChunk(const Part& part,
                                             const ChunkBegin& begin);
  [[nodiscard]] rocksdb::Status OpenForChunk(const Part& part,
                                             const ChunkBegin& begin);
  void DropChunk();
  // Drops what the source builds anew after a lost connection.
  void DropBuilt();
  // Checks with which entries of this side the chunk makes its part, and keeps
  // it until that is known of the whole part.
  [[nodiscard]] rocksdb::Status HoldChunk(StagedChunk chunk);
  // Waits until so many bytes more may be written.
  [[nodiscard]] rocksdb::Status AwaitPace(uint64_t bytes);
  // Waits until the disk has room for a chunk.
  [[nodiscard]] rocksdb::Status AwaitSpace(const Part& part,
                                           const ChunkBegin& begin);
  [[nodiscard]] rocksdb::Status StoreChunk(const Part& part, ChunkEnd* end);
  [[nodiscard]] rocksdb::Status BadChunk(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status CheckStored(const Part& part,
                                            StagedChunk* chunk);
  void CountChunk(const StagedChunk& chunk);
  void CountBytes(const Part& part, uint64_t bytes);
  [[nodiscard]] rocksdb::Status Receive(Frame* frame);
  // The next frame; a chunk's data goes straight into the file's buffer, or is
  // decompressed there: *data_bytes of them.
  [[nodiscard]] rocksdb::Status ReceiveInto(StagingFile* file, Frame* frame,
                                            size_t* data_bytes);
  [[nodiscard]] rocksdb::Status RoomForData(size_t bytes, StagingFile* file,
                                            char** room);
  // Writes what a ChunkData frame holds, decompressed where it says so.
  [[nodiscard]] rocksdb::Status Unpack(const Frame& frame, StagingFile* file,
                                       size_t* data_bytes);

  LaneShared* const state_;
  LaneChannel channel_;
  LaneRetry retry_;
  StageClock clock_;
  StagingBuffer buffer_;
  WireDecompressor decompressor_;
  std::deque<Asked> asked_;     // in the order asked
  Clock::time_point until_;     // of the chunk at hand, on this connection

  // Returns the ordinal of the chunk that comes next.
  uint64_t next_ordinal() const {
    return part_received_.chunks + part_totals_.chunks;
  }

  // Count the part being received: what was held before, what came.
  Totals part_received_;
  Totals part_totals_;
  std::string last_key_;  // of its last chunk of entries
  // The kind of its last chunk; one that is not rebuilt is the only one that is
  // asked for.
  PartKind chunk_kind_ = PartKind::kRebuilt;
  uint64_t planned_done_ = 0;
  std::unique_ptr<OpenChunk> open_;
  // The size of chunks to ask for; 0: the transfer's.
  uint64_t chunk_bytes_ = 0;
  // Count the answer being received: what came since the part was asked for.
  Totals answer_totals_;
  PartDigest answer_chain_;
};

}  // namespace sstferry
