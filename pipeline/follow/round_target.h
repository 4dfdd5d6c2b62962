// Takes the rounds of a source, and cuts where they are not enough: a standby
// does, and the log of an archive.
#pragma once

#include <cstdint>

#include "pipeline/follow/round.h"
#include "pipeline/follow/standby_target.h"
#include "rocksdb/status.h"
#include "sstferry/follow.h"

namespace sstferry {

// Threads: any. Append() and Cut() of what the source asked for by one at a
//          time, Sync() and a Cut() that is due by others meanwhile.
// Errors:  kRefused, kIncompatible, kCorrupt and kCancelled end a follower;
//          after others it asks for position() and tries again.
class RoundTarget {
 public:
  virtual ~RoundTarget() = default;

  // True from the first cut on.
  virtual bool exists() const = 0;
  // Returns the position behind which the source is asked to send.
  virtual FollowPosition position() const = 0;
  // True if the source has to be asked for exact filters until the next cut: it
  // was at the last one, and is said to be.
  virtual bool exact_filters() const = 0;
  // Takes a round, perhaps an empty one, that was asked for with `asked`. Does
  // nothing if a cut has changed since what has to come next, or if gap() is not
  // none.
  [[nodiscard]] virtual rocksdb::Status Append(const FollowPosition& asked,
                                               const Round& round) = 0;
  // Takes when a round came, and whether it says that the source is open,
  // before anything else is done with it.
  virtual void Hear(const Round& round) = 0;
  // Returns why what came does not continue what is here, which a cut mends; kNone:
  // it does. The source has judged it before; this is the second line.
  virtual Gap gap() const = 0;
  // Makes durable what was received before the call.
  [[nodiscard]] virtual rocksdb::Status Sync() = 0;
  // Forgets that the source was closed, durably or not: it may be open again.
  [[nodiscard]] virtual rocksdb::Status ForgetClosed() = 0;
  // Takes a cut. Rounds come on meanwhile only where the request says so.
  [[nodiscard]] virtual rocksdb::Status Cut(const CutRequest& request) = 0;
  // Ends a Cut() that is due and holds up one that is needed now. After it has
  // returned, Renew() lets others be taken.
  virtual void DropCut() = 0;
  virtual void Renew() = 0;
  // Ends a Cut() that runs, and later ones; a last Sync() may follow.
  virtual void Cancel() = 0;

  // Returns when the last cut was taken, by this machine's clock.
  virtual uint64_t cut_micros() const = 0;
  // Returns the bytes of WALs that come behind the last cut.
  virtual uint64_t replay_bytes() const = 0;
  // Describes it; what its follower knows alone is left out.
  virtual StandbyState state() const = 0;
};

}  // namespace sstferry
