// Receives the rounds of a source. If rounds cannot continue, takes a cut. A
// standby implements this class, and so does the log of an archive.
#pragma once

#include <cstdint>

#include "pipeline/follow/round.h"
#include "pipeline/follow/standby_target.h"
#include "rocksdb/status.h"
#include "sstferry/follow.h"

namespace sstferry {

// Threads: Only one thread at a time may call Append(), or Cut() if the source
// requires the cut. Meanwhile another thread may call HearBytes() and Sync(),
// or Cut() for a scheduled cut. Any thread may call the other functions.
// Errors: kRefused, kIncompatible, kCorrupt and kCancelled end the follower.
//         After other errors, the follower calls position() and retries.
class RoundTarget {
 public:
  virtual ~RoundTarget() = default;

  // Returns true after the first cut.
  virtual bool exists() const = 0;
  // Returns the position from which the source must continue.
  virtual FollowPosition position() const = 0;
  // Returns true if the last cut set exact_filters. Then all requests must set
  // it until the next cut.
  virtual bool exact_filters() const = 0;
  // Appends a round that was requested with the position `asked`. The round may
  // be empty. Does nothing if a cut has changed the position since the request,
  // or if gap() has a reason.
  [[nodiscard]] virtual rocksdb::Status Append(const FollowPosition& asked,
                                               const Round& round) = 0;
  // Records that the follower waits for an answer, until Hear() is called.
  virtual void Ask() = 0;
  // Records that bytes of the source have arrived. `is_over` means that the
  // request has failed, so that the follower no longer waits for an answer.
  virtual void HearBytes(bool is_over) = 0;
  // Records when a round arrived, and whether the source was open. The follower
  // calls this before it processes the round.
  virtual void Hear(const Round& round) = 0;
  // Returns why the received records do not continue the stored records, so
  // that a cut is needed. The reason is kNone if they continue them. The source
  // has already checked this; the target checks it again.
  virtual Gap gap() const = 0;
  // Makes durable everything that was received before the call.
  [[nodiscard]] virtual rocksdb::Status Sync() = 0;
  // Records, for a promotion, when the source last answered and whether it is
  // silent. Syncs no data.
  [[nodiscard]] virtual rocksdb::Status MarkHeard() = 0;
  // Deletes the note that the source was closed, because the source may be open
  // again. Deletes it even if the note is durable.
  [[nodiscard]] virtual rocksdb::Status ForgetClosed() = 0;
  // Takes a cut. During the cut, rounds may be appended only if
  // request.continues().
  [[nodiscard]] virtual rocksdb::Status Cut(const CutRequest& request) = 0;
  // Stops a scheduled Cut() that delays a required cut. When that Cut() has
  // returned, the caller must call Renew() to allow further cuts.
  virtual void DropCut() = 0;
  virtual void Renew() = 0;
  // Stops a running Cut() and prevents later cuts. The caller may still call
  // Sync() once.
  virtual void Cancel() = 0;

  // Returns the time of the last cut, by this machine's clock.
  virtual uint64_t cut_micros() const = 0;
  // Returns the number of WAL bytes after the last cut.
  virtual uint64_t replay_bytes() const = 0;
  // Returns the target's state. Does not set the members that only the follower
  // knows.
  virtual StandbyState state() const = 0;
};

}  // namespace sstferry
