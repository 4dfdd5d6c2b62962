// Compares a part with the source's, piece by piece, and proves what came of
// it. refresh/ implements it; a pull that makes a new directory has nothing to
// compare.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/status.h"

namespace sstferry {

struct StagedChunk;

// Compares one part, of which this side may read several pieces:
//
//   Read()        the first piece, then the next one
//   Compare()     what it needs of the source
//   TakeSifted()    where a SiftRequest was needed first
//   TakeChunk()     where a delta was asked for and its chunk came
//   ...           again, as long as rest() is set
//   Prove()
//
// Threads: the lane's.
class PartComparison {
 public:
  virtual ~PartComparison() = default;

  // Reads the next piece at this side, as much as fits into memory.
  [[nodiscard]] virtual rocksdb::Status Read() = 0;
  // Sets *sift to what has to be asked first, or *delta to the request for what
  // differs, or neither where all is equal. `reply` is the source's, of the
  // whole part; null for all pieces but the first one. Errors: of reading.
  [[nodiscard]] virtual rocksdb::Status Compare(
      const GroupReply* reply, std::optional<SiftRequest>* sift,
      std::vector<DeltaRequest>* delta) = 0;
  // Sets *delta by the answer to *sift.
  virtual void TakeSifted(const SiftReply& reply,
                          std::vector<DeltaRequest>* delta) = 0;
  // Takes the chunk of the piece, which lies in staging and was checked.
  //   kCorrupt  it cannot be read
  [[nodiscard]] virtual rocksdb::Status TakeChunk(const StagedChunk& chunk) = 0;
  // Returns, after Compare(), where the next piece begins; not set: this was
  // the last one.
  virtual const std::optional<std::string>& rest() const = 0;
  // Compares what this side will hold of the whole part with what the source
  // holds.
  //   kInternal  another thing
  [[nodiscard]] virtual rocksdb::Status Prove() const = 0;
};

// Says how a part tells the source what this side has.
enum class HowToTell {
  kWhatDiffers,  // of groups that differ, where that is less
  kEverything,   // after what differs was not proven to be all
};

// Compares the parts of one pull. Threads: any.
class PartComparer {
 public:
  virtual ~PartComparer() = default;

  // Returns how many entries the source's groups should have.
  virtual uint32_t ChooseGroupEntries(const Part& part) const = 0;
  // Begins to compare a part. `group_entries` are those that the source was
  // asked for. Borrows the part.
  virtual std::unique_ptr<PartComparison> Begin(const Part& part,
                                                uint32_t group_entries,
                                                HowToTell how) = 0;
  // Sets the first and the last key that this side has in the interval; not
  // set: it has none.
  [[nodiscard]] virtual rocksdb::Status FindOutermost(
      const Part& part, const KeyInterval& interval,
      std::optional<std::string>* first, std::optional<std::string>* last) = 0;
};

}  // namespace sstferry
