// Compares a range, or a part of it, with the source's: group by group, so that
// only the entries which differ are asked for.
//
// A range has parts where this side has more entries than an index keeps. The
// first part is compared by groups; where it turns out not to be the whole
// range, it and all later ones tell the source all their entries at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/parts/group_index.h"
#include "pipeline/pull/pull_state.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// Ownership: borrows the state and the range. Threads: the lane's.
class RangeCompare {
 public:
  // `group_entries` are those that the source was asked for; 0: it was not
  // asked for groups.
  RangeCompare(PullState* state, const Range* range, const KeyInterval& part,
               uint32_t group_entries)
      : state_(state),
        range_(range),
        part_(part),
        group_entries_(group_entries) {}

  // Returns the entries of a group for which its digest costs less than 1 % of
  // the bytes, as far as comparisons before it tell.
  static uint32_t ChooseGroupEntries(const PullState& state,
                                     uint32_t range_id);

  // Asks the source, which then reads at the same time as this side.
  [[nodiscard]] static rocksdb::Status Ask(const Range& range,
                                           uint32_t group_entries,
                                           const WaitLimit& limit,
                                           Channel* channel);
  [[nodiscard]] static rocksdb::Status AskForDelta(
      const std::vector<DeltaRequest>& delta, const WaitLimit& limit,
      Channel* channel);
  // Reads the part at this side, as much as an index keeps.
  [[nodiscard]] rocksdb::Status Read();
  // Sets *equal, or *delta to the request for what differs. `reply` is the
  // source's; null: it was not asked for groups. Errors: of reading.
  [[nodiscard]] rocksdb::Status Compare(const GroupReply* reply, bool* equal,
                                        std::vector<DeltaRequest>* delta);
  // After Compare(): where the next part begins; not set: this was the last one.
  const std::optional<std::string>& rest() const { return rest_; }

 private:
  [[nodiscard]] rocksdb::Status TellOutermost(
      std::vector<DeltaRequest>* delta);
  void TellEntries(const std::vector<size_t>& groups,
                   std::vector<DeltaRequest>* delta) const;
  void TellAllEntries(std::vector<DeltaRequest>* delta) const;
  std::vector<DeltaRequest> FirstMessage(DeltaBasis basis) const;

  PullState* const state_;
  const Range* const range_;
  const KeyInterval part_;
  const uint32_t group_entries_;
  std::optional<GroupIndex> index_;
  std::optional<std::string> rest_;
};

}  // namespace sstferry
