#include "pipeline/serve/snapshot_order.h"

namespace sstferry {
namespace {

// Maximum number of remembered transfers. Each needs about 100 bytes. A server
// has fewer transfers in several days. If the transfer of a target was
// forgotten, the target gets a new snapshot.
constexpr size_t kMostKnown = 65536;
constexpr size_t kMostKinds = 4096;

}  // namespace

void SnapshotOrder::Begin(const std::shared_ptr<SharedSnapshot>& snapshot) {
  if (snapshot->order() != 0 || snapshot->adopted() != nullptr) {
    return;
  }
  snapshot->set_order(++events_);
  if (newest_.size() >= kMostKinds) {
    std::erase_if(newest_, [](const auto& one) {
      return one.second.expired();
    });
  }
  newest_[snapshot->kind()] = snapshot;
}

void SnapshotOrder::Taken(const TransferId& transfer,
                          const SharedSnapshot& snapshot) {
  if (!known_.emplace(transfer, Known{snapshot.order(), ++events_}).second) {
    return;
  }
  ids_.push_back(transfer);
  if (ids_.size() > kMostKnown) {
    known_.erase(ids_.front());
    ids_.pop_front();
  }
}

std::shared_ptr<SharedSnapshot> SnapshotOrder::Newest(
    const std::string& database, const OpenRequest& request) const {
  const auto found = newest_.find(SharedSnapshot::KindOf(database, request));
  std::shared_ptr<SharedSnapshot> newest =
      found != newest_.end() ? found->second.lock() : nullptr;
  if (newest == nullptr || newest->failed()) {
    return nullptr;
  }
  if (request.newer_than == TransferId{}) {
    return newest;
  }
  const auto retained = known_.find(request.newer_than);
  return retained != known_.end() &&
                 (newest->order() == retained->second.begun ||
                  newest->order() > retained->second.taken)
             ? newest
             : nullptr;
}

}  // namespace sstferry
