// Keeps databases that were pinned together for one target (a set). A set is
// released when its target ends it, or when the target has requested none of
// its databases for --snapshot-ttl.
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

// A database to be pinned. If `problem` is not empty, the database must not be
// pinned, and `problem` is the reason.
struct PinWish {
  ServedDatabase database;
  std::string problem;
};

// The sets of pinned databases of one server.
//
// Ownership: the snapshots that are made from pinned files share these files.
// Threads:   any.
class PinSets {
 public:
  explicit PinSets(const ServeOptions* options) : options_(options) {}

  // Pins the databases of `wishes` at almost the same time, in three steps. The
  // first step links the files of all databases. The second step fixes the
  // point in time of each database (PinnedFiles::Confirm()). The third step
  // copies the files that cannot be linked. Each step handles several databases
  // at once. About once a second, calls `alive` with the number of steps done,
  // counted for each database. If `alive` returns false, stops.
  void Pin(const std::vector<PinWish>& wishes, const PeerIdentity* peer,
           const std::function<bool(uint64_t done)>& alive, PinReply* reply);
  // Returns the pinned files of a database in the set `id`. Returns null if the
  // peer has no such set or the set has no such database.
  std::shared_ptr<const PinnedFiles> Find(const TransferId& id,
                                          const std::string& database,
                                          const PeerIdentity* peer);
  // Releases one database of a set, or the whole set if the name is empty.
  void End(const PinEnd& end, const PeerIdentity* peer);
  // Releases the sets from which no database was requested for too long.
  void Expire();
  // Releases all sets. Returns false if there was none.
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
