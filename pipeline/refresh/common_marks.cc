#include "pipeline/refresh/common_marks.h"

#include <algorithm>

namespace sstferry {
namespace {

using MarkPlace = std::pair<uint32_t, uint32_t>;  // a mark and its index

// Returns the marks that occur exactly once, with their indexes, sorted by
// mark.
std::vector<MarkPlace> OnlyOnes(const std::vector<uint32_t>& marks) {
  std::vector<MarkPlace> places;
  places.reserve(marks.size());
  for (uint32_t i = 0; i < marks.size(); ++i) {
    places.emplace_back(marks[i], i);
  }
  std::sort(places.begin(), places.end());
  std::vector<MarkPlace> only;
  for (size_t i = 0; i < places.size();) {
    size_t next = i + 1;
    while (next < places.size() && places[next].first == places[i].first) {
      ++next;
    }
    if (next == i + 1) {
      only.push_back(places[i]);
    }
    i = next;
  }
  return only;
}

// Returns the longest subsequence of `pairs` in which both indexes ascend.
// `pairs` is sorted by the first index. A pair of different entries that have
// equal marks by chance usually breaks the order of the second index, and is
// dropped.
std::vector<std::pair<uint32_t, uint32_t>> LongestAscending(
    const std::vector<std::pair<uint32_t, uint32_t>>& pairs) {
  // For each length n + 1, ends[n] is the last pair of an ascending
  // subsequence. Of all subsequences of this length, it is the last pair with
  // the smallest second index. before[i] is the pair before pair i in its
  // subsequence.
  std::vector<uint32_t> ends;
  std::vector<uint32_t> before(pairs.size());
  for (uint32_t i = 0; i < pairs.size(); ++i) {
    const auto at = std::lower_bound(
        ends.begin(), ends.end(), pairs[i].second,
        [&pairs](uint32_t end, uint32_t second) {
          return pairs[end].second < second;
        });
    before[i] = at == ends.begin() ? i : *(at - 1);
    if (at == ends.end()) {
      ends.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<std::pair<uint32_t, uint32_t>> longest(ends.size());
  uint32_t at = ends.empty() ? 0 : ends.back();
  for (size_t i = longest.size(); i > 0; --i) {
    longest[i - 1] = pairs[at];
    at = before[at];
  }
  return longest;
}

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> FindCommonMarks(
    const std::vector<uint32_t>& here, const std::vector<uint32_t>& there) {
  const std::vector<MarkPlace> ours = OnlyOnes(here);
  const std::vector<MarkPlace> theirs = OnlyOnes(there);
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (size_t i = 0, j = 0; i < ours.size() && j < theirs.size();) {
    if (ours[i].first == theirs[j].first) {
      pairs.emplace_back(ours[i++].second, theirs[j++].second);
    } else if (ours[i].first < theirs[j].first) {
      ++i;
    } else {
      ++j;
    }
  }
  std::sort(pairs.begin(), pairs.end());
  return LongestAscending(pairs);
}

}  // namespace sstferry
