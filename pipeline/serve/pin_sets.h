// Keeps databases that were pinned together for one target. A set is kept until
// its target ends it, or until the target has requested none of its databases
// for --snapshot-ttl.
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

// A database to be pinned. `problem` says why it must not be pinned.
struct PinWish {
  ServedDatabase database;
  std::string problem;
};

// The sets of one server.
//
// Ownership: shares the files with the snapshots that are made from them.
// Threads:   any.
class PinSets {
 public:
  explicit PinSets(const ServeOptions* options) : options_(options) {}

  // Pins the databases of `wishes` at almost the same time: links the files of
  // all, then sets the point in time of each (PinnedFiles::Confirm()), then
  // copies the files that cannot be linked. Each step handles several databases
  // at once. Calls `alive` about once a second with the number of finished
  // steps; stops if it returns false.
  void Pin(const std::vector<PinWish>& wishes, const PeerIdentity* peer,
           const std::function<bool(uint64_t done)>& alive, PinReply* reply);
  // Returns null if the peer has no such pinned database.
  std::shared_ptr<const PinnedFiles> Find(const TransferId& id,
                                          const std::string& database,
                                          const PeerIdentity* peer);
  // Releases one database of a set, or all if the name is empty.
  void End(const PinEnd& end, const PeerIdentity* peer);
  // Releases sets from which no database was requested in time.
  void Expire();
  // Releases all sets. Returns false if there were none.
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
  uint64_t promised_ = 0;           // databases being pinned; under mu_
};

}  // namespace sstferry
