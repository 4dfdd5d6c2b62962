#include "pipeline/target/lane/range_scheduler.h"

#include <algorithm>
#include <tuple>

namespace sstferry {

RangeScheduler::RangeScheduler(const std::vector<Range>& ranges,
                               const std::vector<RangeStart>& starts,
                               uint32_t lanes,
                               const std::function<bool(uint32_t)>& first)
    : lanes_(lanes) {
  struct Item {
    bool first;
    uint64_t bytes;
    uint32_t id;
  };
  std::vector<Item> items;
  for (const Range& range : ranges) {
    const RangeStart& start = starts[range.id];
    if (!start.whole) {
      items.push_back({first != nullptr && first(range.id),
                       range.estimated_bytes -
                           std::min(range.estimated_bytes,
                                    start.held.sst_bytes),
                       range.id});
    }
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tuple(b.first, b.bytes, a.id) <
           std::tuple(a.first, a.bytes, b.id);
  });
  for (const Item& item : items) {
    const uint32_t place = static_cast<uint32_t>(order_.size());
    places_[item.id] = place;
    left_.insert(left_.end(), place);
    order_.push_back(item.id);
  }
}

std::optional<uint32_t> RangeScheduler::Next(uint32_t source,
                                             size_t outstanding) {
  std::unique_lock<std::mutex> lock(mu_);
  if (source == kFirstSource && outstanding == 0) {
    changed_.wait(lock, [this] {
      return stopped_ || !left_.empty() || with_others_ == 0;
    });
  }
  const Left& left = source == kFirstSource ? left_ : left_of_[source];
  if (stopped_ || left.empty() || outstanding >= 2 ||
      (outstanding == 1 && left.size() < lanes_)) {
    return std::nullopt;
  }
  // The first source begins with what nobody else can bring.
  const uint32_t place = source == kFirstSource && !only_first_.empty()
                             ? *only_first_.begin()
                             : *left.begin();
  Take(place);
  with_others_ += source == kFirstSource ? 0 : 1;
  return order_[place];
}

void RangeScheduler::Take(uint32_t place) {
  left_.erase(place);
  only_first_.erase(place);
  for (auto& [source, left] : left_of_) {
    left.erase(place);
  }
}

void RangeScheduler::Done(uint32_t source, uint32_t) {
  std::lock_guard<std::mutex> lock(mu_);
  if (source != kFirstSource) {
    with_others_--;
    changed_.notify_all();
  }
}

void RangeScheduler::GiveBack(uint32_t source, uint32_t range_id,
                              uint64_t counted_bytes) {
  std::lock_guard<std::mutex> lock(mu_);
  const uint32_t place = places_.at(range_id);
  bool others_have_it = false;
  for (const auto& [other, has] : has_) {
    if (has.count(place) != 0) {
      left_of_[other].insert(place);
      others_have_it = true;
    }
  }
  left_.insert(place);
  if (!others_have_it) {
    only_first_.insert(place);
  }
  uint64_t& counted = counted_[range_id];
  counted = std::max(counted, counted_bytes);
  with_others_ -= source == kFirstSource ? 0 : 1;
  changed_.notify_all();
}

uint64_t RangeScheduler::CountedBytes(uint32_t range_id) const {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = counted_.find(range_id);
  return found != counted_.end() ? found->second : 0;
}

void RangeScheduler::Join(uint32_t source,
                          const std::vector<uint32_t>& range_ids,
                          uint32_t lanes) {
  std::lock_guard<std::mutex> lock(mu_);
  if (has_.empty()) {
    only_first_ = left_;
  }
  lanes_of_[source] = lanes;
  lanes_ += lanes;
  std::set<uint32_t>& has = has_[source];
  Left& left = left_of_[source];
  for (const uint32_t id : range_ids) {
    const auto found = places_.find(id);
    if (found == places_.end()) {
      continue;  // it is here already
    }
    has.insert(found->second);
    only_first_.erase(found->second);
    if (left_.count(found->second) != 0) {
      left.insert(found->second);
    }
  }
}

void RangeScheduler::Leave(uint32_t source) {
  std::lock_guard<std::mutex> lock(mu_);
  lanes_ -= lanes_of_[source];
  lanes_of_.erase(source);
  has_.erase(source);
  left_of_.erase(source);
  only_first_.clear();
  if (has_.empty()) {
    return;  // then it does not matter
  }
  for (const uint32_t place : left_) {
    const bool has_it =
        std::any_of(has_.begin(), has_.end(), [place](const auto& other) {
          return other.second.count(place) != 0;
        });
    if (!has_it) only_first_.insert(only_first_.end(), place);
  }
}

void RangeScheduler::Stop() {
  std::lock_guard<std::mutex> lock(mu_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace sstferry
