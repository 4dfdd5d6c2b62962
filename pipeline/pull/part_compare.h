// Compares a part with the source's, piece by piece, and proves the result: the
// interface that refresh/ implements. A pull that makes a new directory has
// nothing to compare.
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

// Compares one part. This side may read it in several pieces:
//
//   Read()          reads the first piece, then the next one
//   Compare()       determines what to ask the source for
//   TakeSifted()      if a SiftRequest was needed first
//   TakeChunk()       if a delta was asked for and its chunk has arrived
//   ...             again, as long as rest() is set
//   Prove()
//
// Threads: the lane's.
class PartComparison {
 public:
  virtual ~PartComparison() = default;

  // Reads the next piece at this side, as much of the part as fits into memory.
  [[nodiscard]] virtual rocksdb::Status Read() = 0;
  // Compares the piece. Sets *sift if a SiftRequest must be sent first, or
  // *delta to the request for the differences, or neither if all entries are
  // equal. `reply` is the source's reply for the whole part; null for later
  // pieces. Returns errors of reading.
  [[nodiscard]] virtual rocksdb::Status Compare(
      const GroupReply* reply, std::optional<SiftRequest>* sift,
      std::vector<DeltaRequest>* delta) = 0;
  // Sets *delta from the answer to *sift.
  virtual void TakeSifted(const SiftReply& reply,
                          std::vector<DeltaRequest>* delta) = 0;
  // Adds the piece's chunk, a checked file in staging.
  //   kCorrupt  the file cannot be read
  [[nodiscard]] virtual rocksdb::Status TakeChunk(const StagedChunk& chunk) = 0;
  // Returns, after Compare(), the key at which the next piece begins; not set
  // after the last piece.
  virtual const std::optional<std::string>& rest() const = 0;
  // Compares the entries that this side will have in the whole part with the
  // source's.
  //   kInternal  they differ
  [[nodiscard]] virtual rocksdb::Status Prove() const = 0;
};

// The way in which the target sends its entries of a part to the source.
enum class HowToTell {
  kWhatDiffers,  // only entries of differing groups, if that is less
  kEverything,   // if kWhatDiffers did not lead to a proof
};

// Compares the parts of one pull. Threads: any.
class PartComparer {
 public:
  virtual ~PartComparer() = default;

  // Returns the number of entries that a group of the source should have.
  virtual uint32_t ChooseGroupEntries(const Part& part) const = 0;
  // Starts the comparison of a part, after the source was asked for groups of
  // `group_entries` entries. Borrows the part.
  virtual std::unique_ptr<PartComparison> Begin(const Part& part,
                                                uint32_t group_entries,
                                                HowToTell how) = 0;
  // Sets *first and *last to the first and last key that this side has in the
  // interval. Resets both if this side has no key there.
  [[nodiscard]] virtual rocksdb::Status FindOutermost(
      const Part& part, const KeyInterval& interval,
      std::optional<std::string>* first, std::optional<std::string>* last) = 0;
};

}  // namespace sstferry
