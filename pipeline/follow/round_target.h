// Receives the rounds of a source, and takes cuts where rounds are not enough.
// Implemented by a standby and by the log of an archive.
#pragma once

#include <cstdint>

#include "pipeline/follow/round.h"
#include "pipeline/follow/standby_target.h"
#include "rocksdb/status.h"
#include "sstferry/follow.h"

namespace sstferry {

// Threads: any. Append(), and Cut() if the source asked for it, from one thread
//          at a time; meanwhile another thread may call Sync(), or Cut() for a
//          scheduled cut.
// Errors:  kRefused, kIncompatible, kCorrupt and kCancelled end a follower;
//          after other errors it asks for position() and retries.
class RoundTarget {
 public:
  virtual ~RoundTarget() = default;

  // Returns true after the first cut.
  virtual bool exists() const = 0;
  // Returns the position after which the source is asked to send.
  virtual FollowPosition position() const = 0;
  // Returns true if the source is asked for exact filters until the next cut:
  // the last cut asked for them.
  virtual bool exact_filters() const = 0;
  // Appends a round, perhaps an empty one, that was requested with `asked`.
  // Does nothing if a cut has changed the position since, or if gap() is set.
  [[nodiscard]] virtual rocksdb::Status Append(const FollowPosition& asked,
                                               const Round& round) = 0;
  // Records when a round arrived, and whether it says that the source is open,
  // before the round is processed.
  virtual void Hear(const Round& round) = 0;
  // Returns why received records do not continue those that are here, which
  // requires a cut; kNone: they do. The source has checked this before; this is
  // a second check.
  virtual Gap gap() const = 0;
  // Makes durable everything received before the call.
  [[nodiscard]] virtual rocksdb::Status Sync() = 0;
  // Deletes the note that the source was closed, also if it is durable: the
  // source may be open again.
  [[nodiscard]] virtual rocksdb::Status ForgetClosed() = 0;
  // Takes a cut. Rounds are appended meanwhile only if the request says so.
  [[nodiscard]] virtual rocksdb::Status Cut(const CutRequest& request) = 0;
  // Stops a scheduled Cut() that delays a required one. After it has returned,
  // Renew() allows further cuts.
  virtual void DropCut() = 0;
  virtual void Renew() = 0;
  // Stops a running Cut() and prevents later ones; a last Sync() may follow.
  virtual void Cancel() = 0;

  // Returns when the last cut was taken, by this machine's clock.
  virtual uint64_t cut_micros() const = 0;
  // Returns the bytes of WALs after the last cut.
  virtual uint64_t replay_bytes() const = 0;
  // Describes the target, except for what only its follower knows.
  virtual StandbyState state() const = 0;
};

}  // namespace sstferry
