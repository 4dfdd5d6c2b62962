// Compares one range with the source's: by one digest, or group by group, so
// that only the entries which differ are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/read/group_index.h"
#include "pipeline/target/lane/pull_state.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// What the target does about a compared range.
enum class CompareResult {
  kEqual,    // nothing
  kReplace,  // asks for chunks that replace it
  kDelta,    // asks for the entries that differ
};

// Ownership: borrows the state and the range. Threads: the lane's.
class RangeCompare {
 public:
  // `group_entries` are those that the source was asked for.
  RangeCompare(PullState* state, const Range* range, uint32_t group_entries)
      : state_(state), range_(range), group_entries_(group_entries) {}

  // The entries of a group for which its digest costs less than 1 % of the
  // bytes, as far as comparisons before it tell.
  static uint32_t ChooseGroupEntries(const PullState& state,
                                     uint32_t range_id);

  // Asks the source, which then reads at the same time as this side.
  [[nodiscard]] static rocksdb::Status Ask(const PullState& state,
                                           const Range& range,
                                           uint32_t group_entries,
                                           const WaitLimit& limit,
                                           Channel* channel);
  [[nodiscard]] static rocksdb::Status AskForDelta(
      const std::vector<DeltaRequest>& delta, const WaitLimit& limit,
      Channel* channel);
  // Reads the range at this side.
  [[nodiscard]] rocksdb::Status Read();
  static FrameType ReplyType(const PullState& state) {
    return state.takes_delta ? FrameType::kGroupReply
                             : FrameType::kDigestReply;
  }
  // Decodes and compares the reply. kDelta: *delta is the request for it.
  [[nodiscard]] rocksdb::Status TakeReply(const rocksdb::Slice& payload,
                                          CompareResult* result,
                                          std::vector<DeltaRequest>* delta);

 private:
  CompareResult CompareGroups(const GroupReply& theirs,
                              std::vector<DeltaRequest>* delta) const;
  std::vector<GroupEntry> EntriesOf(const std::vector<size_t>& groups) const;

  PullState* const state_;
  const Range* const range_;
  const uint32_t group_entries_;
  std::optional<DigestReply> ours_;
  std::optional<GroupIndex> index_;
};

}  // namespace sstferry
