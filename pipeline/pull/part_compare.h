// Compares a part, or a piece of it, with the source's: group by group, so that
// only the entries which differ are asked for.
//
// A part has pieces where this side has more entries than an index keeps. The
// first piece is compared by groups; where it turns out not to be the whole
// part, it and all later ones tell the source all their entries at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/parts/group_index.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// Ownership: borrows the state and the part. Threads: the lane's.
class PartCompare {
 public:
  // `group_entries` are those that the source was asked for; 0: it was not
  // asked for groups.
  PartCompare(LaneShared* state, const Part* part, const KeyInterval& piece,
               uint32_t group_entries)
      : state_(state),
        part_(part),
        piece_(piece),
        group_entries_(group_entries) {}

  // Returns the entries of a group for which its digest costs less than 1 % of
  // the bytes, as far as comparisons before it tell.
  static uint32_t ChooseGroupEntries(const LaneShared& state,
                                     uint32_t part_id);

  // Asks the source, which then reads at the same time as this side.
  [[nodiscard]] static rocksdb::Status Ask(const Part& part,
                                           uint32_t group_entries,
                                           const WaitLimit& limit,
                                           Channel* channel);
  [[nodiscard]] static rocksdb::Status AskForDelta(
      const std::vector<DeltaRequest>& delta, const WaitLimit& limit,
      Channel* channel);
  // Reads the piece at this side, as much as an index keeps.
  [[nodiscard]] rocksdb::Status Read();
  // Sets *equal, or *delta to the request for what differs. `reply` is the
  // source's; null: it was not asked for groups. Errors: of reading.
  [[nodiscard]] rocksdb::Status Compare(const GroupReply* reply, bool* equal,
                                        std::vector<DeltaRequest>* delta);
  // After Compare(): where the next piece begins; not set: this was the last
  // one.
  const std::optional<std::string>& rest() const { return rest_; }

 private:
  [[nodiscard]] rocksdb::Status TellOutermost(
      std::vector<DeltaRequest>* delta);
  void TellEntries(const std::vector<size_t>& groups,
                   std::vector<DeltaRequest>* delta) const;
  void TellAllEntries(std::vector<DeltaRequest>* delta) const;
  std::vector<DeltaRequest> FirstMessage(DeltaBasis basis) const;

  LaneShared* const state_;
  const Part* const part_;
  const KeyInterval piece_;
  const uint32_t group_entries_;
  std::optional<GroupIndex> index_;
  std::optional<std::string> rest_;
};

}  // namespace sstferry
