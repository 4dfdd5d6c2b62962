// Receives the rounds of a source, and takes a cut where rounds cannot
// continue. Implemented by a standby and by the log of an archive.
#pragma once

#include <cstdint>

#include "pipeline/follow/round.h"
#include "pipeline/follow/standby_target.h"
#include "rocksdb/status.h"
#include "sstferry/follow.h"

namespace sstferry {

// Threads: any. Append(), and Cut() if the source asked for it, from one thread
//          at a time; meanwhile another thread may call HearBytes() and Sync(),
//          or Cut() for a scheduled cut.
// Errors:  kRefused, kIncompatible, kCorrupt and kCancelled end a follower;
//          after other errors the follower calls position() and retries.
class RoundTarget {
 public:
  virtual ~RoundTarget() = default;

  // Returns true after the first cut.
  virtual bool exists() const = 0;
  // Returns the position after which the source must send.
  virtual FollowPosition position() const = 0;
  // Returns true if requests must set exact_filters until the next cut, because
  // the last cut did.
  virtual bool exact_filters() const = 0;
  // Appends a round (possibly empty) that was requested with the position
  // `asked`. Does nothing if a cut has changed the position since then, or if
  // gap() is set.
  [[nodiscard]] virtual rocksdb::Status Append(const FollowPosition& asked,
                                               const Round& round) = 0;
  // Records that an answer is awaited, until Hear().
  virtual void Ask() = 0;
  // Records that bytes have arrived. `is_over`: the request has failed, so no
  // answer is awaited.
  virtual void HearBytes(bool is_over) = 0;
  // Records when a round arrived, and whether it reports that the source is
  // open. Called before the round is processed.
  virtual void Hear(const Round& round) = 0;
  // Returns why received records do not continue the stored ones, so that a cut
  // is needed; kNone: they do. The source checks this first; this is a second
  // check.
  virtual Gap gap() const = 0;
  // Makes durable everything received before the call.
  [[nodiscard]] virtual rocksdb::Status Sync() = 0;
  // Records, for a promotion, what was heard of the source. Syncs no data.
  [[nodiscard]] virtual rocksdb::Status MarkHeard() = 0;
  // Deletes the note that the source was closed, even if the note is durable,
  // because the source may be open again.
  [[nodiscard]] virtual rocksdb::Status ForgetClosed() = 0;
  // Takes a cut. Rounds are appended during the cut only if
  // request.continues().
  [[nodiscard]] virtual rocksdb::Status Cut(const CutRequest& request) = 0;
  // Stops a scheduled Cut() that delays a required one. After that call has
  // returned, Renew() must be called to allow further cuts.
  virtual void DropCut() = 0;
  virtual void Renew() = 0;
  // Stops a running Cut() and prevents later ones; a last Sync() may follow.
  virtual void Cancel() = 0;

  // Returns when the last cut was taken, by this machine's clock.
  virtual uint64_t cut_micros() const = 0;
  // Returns the bytes of WALs after the last cut.
  virtual uint64_t replay_bytes() const = 0;
  // Returns the target's state, without the members that only its follower
  // knows.
  virtual StandbyState state() const = 0;
};

}  // namespace sstferry
