// Where each range goes on, and their order: hands what is left to the lanes of
// the sources that have it, the heaviest first.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/base/tile.h"
#include "pipeline/target/lane/lane_source.h"

namespace sstferry {

// What is held of one range when its lane begins. Of a new pull: nothing.
struct RangeStart {
  Totals held;
  TileEnd end;           // of what is held, when held.chunks is not 0
  bool whole = false;    // nothing is left to ask for
};

// The first source has all ranges. Another one joins with those that it has, too;
// what its lanes do not bring goes back, to whoever has it.
// Threads: any.
class RangeScheduler {
 public:
  // starts: by range id. The ranges that `first` names come before the others.
  RangeScheduler(const std::vector<Range>& ranges,
                 const std::vector<RangeStart>& starts, uint32_t lanes,
                 const std::function<bool(uint32_t)>& first = nullptr);

  // The next range for a lane of that source which has `outstanding` unfinished
  // ones. A lane asks ahead by one, so that no round trip shows, but not where
  // the last ranges would queue behind a busy lane while another is free. A
  // lane of the first source that has nothing to do waits while others may give
  // a range back. Absent: nothing is left for the lane, or it shall not ask
  // ahead.
  std::optional<uint32_t> Next(uint32_t source, size_t outstanding);
  // A lane of another source has brought the range, or has not: then
  // `counted_bytes` of it are in the progress already.
  void Done(uint32_t source, uint32_t range_id);
  void GiveBack(uint32_t source, uint32_t range_id, uint64_t counted_bytes);
  // Of a range that was given back; else 0.
  uint64_t CountedBytes(uint32_t range_id) const;

  // Another source has these ranges, and has so many lanes.
  void Join(uint32_t source, const std::vector<uint32_t>& range_ids,
            uint32_t lanes);
  // It gets no range any more. REQUIRES: its lanes have ended.
  void Leave(uint32_t source);
  // Ends all waits: nothing is left for anybody.
  void Stop();

 private:
  using Left = std::set<uint32_t>;  // places in order_
  void Take(uint32_t place);

  std::vector<uint32_t> order_;              // range ids
  std::map<uint32_t, uint32_t> places_;      // in order_, by range id
  mutable std::mutex mu_;
  std::condition_variable changed_;
  uint32_t lanes_;                           // under mu_, and all below
  std::map<uint32_t, uint32_t> lanes_of_;    // of other sources
  Left left_;                                // to be handed out
  Left only_first_;  // the same, which no other source has
  std::map<uint32_t, std::set<uint32_t>> has_;  // all places, by other source
  std::map<uint32_t, Left> left_of_;            // of left_, by other source
  size_t with_others_ = 0;                   // handed out to other sources
  std::map<uint32_t, uint64_t> counted_;     // by range id
  bool stopped_ = false;
};

}  // namespace sstferry
