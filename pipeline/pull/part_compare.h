// Defines how a lane compares a part of this side's database with the same part
// at the source, piece by piece, and proves the result. refresh/ implements the
// interface. A pull that makes a new directory compares nothing.
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

// Compares one part with the source's. This side may read the part in several
// pieces. The lane calls these functions in this order:
//
//   Read()          reads the first piece, then the next one
//   Compare()       determines what to request from the source
//   TakeSifted()      if Compare() set a SiftRequest
//   TakeChunk()       if a delta was requested, and its chunk has arrived
//   ...             from Read() again, as long as rest() is set
//   Prove()
//
// Threads: the lane's.
class PartComparison {
 public:
  virtual ~PartComparison() = default;

  // Reads the next piece of the part from this side's database. A piece is as
  // much of the part as fits into memory.
  [[nodiscard]] virtual rocksdb::Status Read() = 0;
  // Compares the piece with the source's. Sets *sift if a SiftRequest must be
  // sent first, or *delta to the requests for the differences. Sets neither if
  // all entries are equal. `reply` is the source's reply for the whole part; it
  // is null for later pieces. Returns errors of reading.
  [[nodiscard]] virtual rocksdb::Status Compare(
      const GroupReply* reply, std::optional<SiftRequest>* sift,
      std::vector<DeltaRequest>* delta) = 0;
  // Sets *delta from `reply`, the source's answer to *sift.
  virtual void TakeSifted(const SiftReply& reply,
                          std::vector<DeltaRequest>* delta) = 0;
  // Adds the chunk that the source sent for the piece: a checked file in
  // staging.
  //   kCorrupt  the file cannot be read
  [[nodiscard]] virtual rocksdb::Status TakeChunk(const StagedChunk& chunk) = 0;
  // Returns the key at which the next piece begins; nullopt after the last
  // piece. Valid after Compare().
  virtual const std::optional<std::string>& rest() const = 0;
  // Compares the whole part with the source's: all entries that this side will
  // have after the received chunks are ingested.
  //   kInternal  they differ
  [[nodiscard]] virtual rocksdb::Status Prove() const = 0;
};

// The ways in which the target sends the source its entries of a part.
enum class HowToTell {
  kWhatDiffers,  // entries of groups that differ, if that is less
  kEverything,   // all entries, if kWhatDiffers proved nothing
};

// Compares the parts of one pull. Threads: any.
class PartComparer {
 public:
  virtual ~PartComparer() = default;

  // Returns the number of entries that a group of the source should have.
  virtual uint32_t ChooseGroupEntries(const Part& part) const = 0;
  // Starts the comparison of a part. The lane has requested groups of
  // `group_entries` entries from the source. Borrows the part.
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
