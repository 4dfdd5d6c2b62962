#include "pipeline/serve/admission.h"

namespace sstferry {
uint64_t Admission::Enter(const std::string& address, uint64_t* dropped,
                          std::string* why) {
  std::lock_guard<std::mutex> lock(mu_);
  *dropped = 0;
  const auto known = addresses_.find(address);
  const Counts of_address =
      known == addresses_.end() ? Counts() : known->second;
  if (entries_.size() >= limits_.connections) {
    *why = std::to_string(entries_.size()) + " are open";
    return 0;
  }
  if (of_address.connections >= limits_.connections_per_address) {
    *why = std::to_string(of_address.connections) + " of " + address +
           " are open";
    return 0;
  }
  if (of_address.half_open >= limits_.half_open_per_address) {
    *dropped = DropOldest(&address);
  } else if (half_open_ >= limits_.half_open) {
    *dropped = DropOldest(nullptr);
  }
  entries_[++last_id_] = Entry{address, true};
  Counts& counts = addresses_[address];
  ++counts.connections;
  ++counts.half_open;
  ++half_open_;
  return last_id_;
}

uint64_t Admission::DropOldest(const std::string* address) {
  for (auto& [id, entry] : entries_) {
    if (entry.half_open && (address == nullptr || entry.address == *address)) {
      EndHalfOpen(&entry);
      return id;
    }
  }
  return 0;
}

void Admission::EndHalfOpen(Entry* entry) {
  if (entry->half_open) {
    entry->half_open = false;
    --half_open_;
    --addresses_[entry->address].half_open;
  }
}

bool Admission::Establish(uint64_t id) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.half_open) {
    return false;
  }
  EndHalfOpen(&found->second);
  return true;
}

void Admission::Leave(uint64_t id) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    return;
  }
  EndHalfOpen(&found->second);
  const auto counts = addresses_.find(found->second.address);
  if (--counts->second.connections == 0) {
    addresses_.erase(counts);
  }
  entries_.erase(found);
}

uint32_t Admission::connections() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<uint32_t>(entries_.size());
}

uint32_t Admission::half_open() const {
  std::lock_guard<std::mutex> lock(mu_);
  return half_open_;
}

}  // namespace sstferry
