#include "pipeline/serve/admission.h"

namespace sstferry {

uint64_t Admission::Enter(const std::string& address, uint64_t* dropped,
                          std::string* why) {
  std::lock_guard<std::mutex> lock(mu_);
  *dropped = 0;
  const auto known = addresses_.find(address);
  const Counts of_address =
      known == addresses_.end() ? Counts() : known->second;
  const bool is_full = entries_.size() >= limits_.connections;
  const bool is_address_full =
      of_address.connections >= limits_.connections_per_address;
  if (is_full && (half_open_ == 0 || entries_.size() - limits_.connections >=
                                         limits_.half_open)) {
    *why = std::to_string(entries_.size()) +
           " connections are open already (serve --max-connections)";
    return 0;
  }
  if (is_address_full &&
      (of_address.half_open == 0 ||
       of_address.connections - limits_.connections_per_address >=
           limits_.half_open_per_address)) {
    *why = std::to_string(of_address.connections) + " connections from " +
           address + " are open already (serve --max-per-address)";
    return 0;
  }
  if (is_address_full ||
      of_address.half_open >= limits_.half_open_per_address) {
    *dropped = DropOldest(&address);
  } else if (is_full || half_open_ >= limits_.half_open) {
    *dropped = DropOldest(nullptr);
  }
  entries_[++last_id_] = Entry{address, State::kHalfOpen};
  Counts& counts = addresses_[address];
  ++counts.connections;
  ++counts.half_open;
  ++half_open_;
  return last_id_;
}

uint64_t Admission::DropOldest(const std::string* address) {
  for (auto& [id, entry] : entries_) {
    if (entry.state == State::kHalfOpen &&
        (address == nullptr || entry.address == *address)) {
      EndHalfOpen(&entry, State::kDropped);
      return id;
    }
  }
  return 0;
}

void Admission::EndHalfOpen(Entry* entry, State state) {
  if (entry->state == State::kHalfOpen) {
    entry->state = state;
    --half_open_;
    --addresses_[entry->address].half_open;
  }
}

bool Admission::Establish(uint64_t id) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.state == State::kDropped) {
    return false;
  }
  EndHalfOpen(&found->second, State::kEstablished);
  return true;
}

bool Admission::IsDropped(uint64_t id) const {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = entries_.find(id);
  return found != entries_.end() && found->second.state == State::kDropped;
}

void Admission::Leave(uint64_t id) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    return;
  }
  EndHalfOpen(&found->second, State::kDropped);
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
