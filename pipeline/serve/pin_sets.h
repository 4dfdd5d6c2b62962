// Keeps what targets pinned of several databases at once. It stays until its
// target ends it, or has not asked for any of it for the time that snapshots of
// interrupted pulls are kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/snapshot/pinned_files.h"
#include "sstferry/source.h"

namespace sstferry {

// A database that is to be pinned; a problem says why it may not be.
struct PinWish {
  ServedDatabase database;
  std::string problem;
};

// Ownership: shares the files with the snapshots that are made of them.
// Threads:   any.
class PinSets {
 public:
  explicit PinSets(const ServeOptions* options) : options_(options) {}

  // Links all, then confirms all, then copies all: several at a time. Calls
  // `alive` about once a second with a number that grows; false ends it.
  void Pin(const std::vector<PinWish>& wishes, const PeerIdentity* peer,
           const std::function<bool(uint64_t done)>& alive, PinReply* reply);
  // Null: nothing is pinned there for that peer.
  std::shared_ptr<const PinnedFiles> Find(const TransferId& id,
                                          const std::string& database,
                                          const PeerIdentity* peer);
  // Lets go of a database, or, if the name is empty, of all.
  void End(const PinEnd& end, const PeerIdentity* peer);
  // Lets those go that nobody has asked for.
  void Expire();
  // Returns false if there was nothing.
  bool EndAll();

 private:
  using Clock = std::chrono::steady_clock;
  struct Set {
    std::optional<PeerIdentity> owner;
    Clock::time_point used{};
    std::map<std::string, std::shared_ptr<const PinnedFiles>> databases;
  };

  Set* FindSet(const TransferId& id, const PeerIdentity* peer);

  const ServeOptions* const options_;
  std::mutex mu_;
  std::map<TransferId, Set> sets_;  // under mu_
  uint64_t promised_ = 0;           // databases that are being pinned; likewise
};

}  // namespace sstferry
