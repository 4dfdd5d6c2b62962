// Compares a part, or a piece of it, with the source's. refresh/ implements it;
// a pull that makes a new directory has nothing to compare.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// Compares one piece of a part. Threads: the lane's.
class PartComparison {
 public:
  virtual ~PartComparison() = default;

  // Reads the piece at this side, as much as fits into memory.
  [[nodiscard]] virtual rocksdb::Status Read() = 0;
  // Sets *equal, or *delta to the request for what differs. `reply` is the
  // source's; null: it was not asked for groups. Errors: of reading.
  [[nodiscard]] virtual rocksdb::Status Compare(
      const GroupReply* reply, bool* equal,
      std::vector<DeltaRequest>* delta) = 0;
  // Returns, after Compare(), where the next piece begins; not set: this was
  // the last one.
  virtual const std::optional<std::string>& rest() const = 0;
};

// Compares the parts of one pull. Threads: any.
class PartComparer {
 public:
  virtual ~PartComparer() = default;

  // Returns how many entries the source's groups should have.
  virtual uint32_t ChooseGroupEntries(const Part& part) const = 0;
  // Begins to compare a piece. `group_entries` are those that the source was
  // asked for; 0: it was not asked for groups. Borrows the part.
  virtual std::unique_ptr<PartComparison> Begin(const Part& part,
                                                const KeyInterval& piece,
                                                uint32_t group_entries) = 0;
  // Sets the first and the last key that this side has in the piece; not set:
  // it has none.
  [[nodiscard]] virtual rocksdb::Status FindOutermost(
      const Part& part, const KeyInterval& piece,
      std::optional<std::string>* first, std::optional<std::string>* last) = 0;
};

// Has what a lane does to compare a piece: it asks the source, and reads and
// compares at this side meanwhile.
//
// Ownership: borrows the state and the part. Threads: the lane's.
class PartCompare {
 public:
  PartCompare(LaneShared* state, const Part* part, const KeyInterval& piece,
              uint32_t group_entries)
      : comparison_(state->comparer->Begin(*part, piece, group_entries)) {}

  static uint32_t ChooseGroupEntries(const LaneShared& state,
                                     uint32_t part_id) {
    return state.comparer->ChooseGroupEntries((*state.parts)[part_id]);
  }
  // Asks the source, which then reads at the same time as this side.
  [[nodiscard]] static rocksdb::Status Ask(const Part& part,
                                           uint32_t group_entries,
                                           const WaitLimit& limit,
                                           Channel* channel);
  [[nodiscard]] static rocksdb::Status AskForDelta(
      const std::vector<DeltaRequest>& delta, const WaitLimit& limit,
      Channel* channel);

  [[nodiscard]] rocksdb::Status Read() { return comparison_->Read(); }
  [[nodiscard]] rocksdb::Status Compare(const GroupReply* reply, bool* equal,
                                        std::vector<DeltaRequest>* delta) {
    return comparison_->Compare(reply, equal, delta);
  }
  const std::optional<std::string>& rest() const { return comparison_->rest(); }

 private:
  std::unique_ptr<PartComparison> comparison_;
};

}  // namespace sstferry
