#include "pipeline/target/pull/different_ranges.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sstferry {
namespace {

// In bytewise order a beginning of a key stands before it, and what follows all
// keys with that beginning stands behind it.
constexpr size_t kMostBoundBytes = 256;

void Shorten(KeyInterval* interval) {
  if (interval->begin && interval->begin->size() > kMostBoundBytes) {
    interval->begin->resize(kMostBoundBytes);
  }
  if (!interval->end || interval->end->size() <= kMostBoundBytes) {
    return;
  }
  std::string& end = *interval->end;
  end.resize(kMostBoundBytes);
  while (!end.empty() && end.back() == '\xff') {
    end.pop_back();
  }
  if (end.empty()) {
    interval->end.reset();
  } else {
    ++end.back();
  }
}

size_t BytesOf(const std::optional<std::string>& bound) {
  return bound ? bound->size() : 0;
}

}  // namespace

void DifferentRanges::Add(const std::string& family,
                          const rocksdb::Comparator* order,
                          const KeyInterval& interval) {
  Intervals& intervals =
      families_.try_emplace(family, BeginsBefore{order}).first->second;
  KeyInterval shown = interval;
  if (order == rocksdb::BytewiseComparator()) {
    Shorten(&shown);
  }
  Insert(&intervals, shown.begin, shown.end);
  if (count_ > std::max(kMaxDifferentRanges, families_.size()) ||
      bytes_ > kMaxDifferentRangeBytes) {
    Halve();
  }
}

void DifferentRanges::Insert(Intervals* intervals, Bound begin, Bound end) {
  const rocksdb::Comparator* const order = intervals->key_comp().order;
  const auto ends_before = [order](const Bound& a, const Bound& b) {
    return a && (!b || order->Compare(*a, *b) < 0);
  };
  auto next = intervals->upper_bound(begin);
  if (next != intervals->begin()) {
    const auto before = std::prev(next);
    if (!begin || !before->second ||
        order->Compare(*before->second, *begin) >= 0) {
      next = before;
    }
  }
  // All that begin at or before its end become a part of it.
  while (next != intervals->end() &&
         (!end || !next->first || order->Compare(*next->first, *end) <= 0)) {
    if (intervals->key_comp()(next->first, begin)) {
      begin = next->first;
    }
    if (ends_before(end, next->second)) {
      end = next->second;
    }
    bytes_ -= BytesOf(next->first) + BytesOf(next->second);
    --count_;
    next = intervals->erase(next);
  }
  bytes_ += BytesOf(begin) + BytesOf(end);
  ++count_;
  intervals->emplace(std::move(begin), std::move(end));
}

void DifferentRanges::Halve() {
  for (auto& [name, intervals] : families_) {
    Intervals joined(intervals.key_comp());
    for (auto at = intervals.begin(); at != intervals.end(); ++at) {
      const auto first = at;
      if (std::next(at) != intervals.end()) {
        ++at;
        bytes_ -= BytesOf(first->second) + BytesOf(at->first);
        --count_;
      }
      joined.emplace(first->first, at->second);
    }
    intervals = std::move(joined);
  }
}

std::vector<FamilyRange> DifferentRanges::List() const {
  std::vector<FamilyRange> list;
  for (const auto& [name, intervals] : families_) {
    for (const auto& [begin, end] : intervals) {
      list.push_back({name, {begin, end}});
    }
  }
  return list;
}

}  // namespace sstferry
