#include "pipeline/refresh/changed_keys.h"

#include <algorithm>

#include "format/limits.h"
#include "pipeline/refresh/table_keys.h"

namespace sstferry {

using rocksdb::Comparator;
using rocksdb::Slice;
using rocksdb::Status;

bool ChangedKeys::Add(const Slice& key) {
  if (key.size() > kMaxKeyBytes ||
      bytes() + key.size() + sizeof(places_[0]) > most_bytes_) {
    return false;
  }
  places_.emplace_back(static_cast<uint32_t>(bytes_.size()),
                       static_cast<uint32_t>(key.size()));
  bytes_.append(key.data(), key.size());
  return true;
}

Status ChangedKeys::AddFile(const FilePlan& file,
                            const std::function<bool()>& cancelled, bool* fits,
                            bool* single_deletes) {
  *fits = true;
  runs_.push_back(places_.size());
  return ForEachTableKey(rocksdb::FileSystem::Default().get(), file.path,
                         cancelled, [&](const Slice& key, uint8_t type) {
                           *single_deletes |= IsSingleDelete(type);
                           *fits = *fits && Add(key);
                           return Status::OK();
                         });
}

void ChangedKeys::Sort(const Comparator* order) {
  const auto slice = [this](const std::pair<uint32_t, uint32_t>& place) {
    return Slice(bytes_.data() + place.first, place.second);
  };
  const auto less = [&](const auto& a, const auto& b) {
    return order->Compare(slice(a), slice(b)) < 0;
  };
  const auto at = [this](size_t place) {
    return places_.begin() + static_cast<std::ptrdiff_t>(place);
  };
  // Keys that were added one by one precede the first run.
  std::vector<size_t> ends = std::move(runs_);
  runs_.clear();
  ends.push_back(places_.size());
  std::sort(at(0), at(ends.front()), less);
  while (ends.size() > 1) {
    std::vector<size_t> merged;
    for (size_t i = 0; i < ends.size(); i += 2) {
      const size_t begin = i == 0 ? 0 : ends[i - 1];
      const size_t end = ends[std::min(i + 1, ends.size() - 1)];
      std::inplace_merge(at(begin), at(ends[i]), at(end), less);
      merged.push_back(end);
    }
    ends = std::move(merged);
  }
  places_.erase(std::unique(places_.begin(), places_.end(),
                            [&](const auto& a, const auto& b) {
                              return order->Compare(slice(a), slice(b)) == 0;
                            }),
                places_.end());
}

std::pair<size_t, size_t> ChangedKeys::Find(
    const Comparator* order, const KeyInterval& interval) const {
  const auto below = [&](const std::string& bound) {
    const auto found = std::partition_point(
        places_.begin(), places_.end(), [&](const auto& place) {
          return order->Compare(
                     Slice(bytes_.data() + place.first, place.second),
                     bound) < 0;
        });
    return static_cast<size_t>(found - places_.begin());
  };
  return {interval.begin.has_value() ? below(*interval.begin) : 0,
          interval.end.has_value() ? below(*interval.end) : places_.size()};
}

}  // namespace sstferry
