// Requests rounds from a source over a control connection.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "pipeline/follow/round.h"
#include "pipeline/pull/channel_set.h"
#include "pipeline/pull/source_session.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {

// The source of a standby's rounds. The first Ask() connects. After a failure,
// the next Ask() connects again.
//
// Threads: one thread at a time calls Ask(); any thread calls the others.
class SourceRounds {
 public:
  // The dialer must outlive this object.
  SourceRounds(Dialer* dialer, const Timeouts& timeouts)
      : dialer_(dialer), timeouts_(timeouts) {}

  // Requests the bytes after the position of `request`. Waits for them as long
  // as the request says. If the source wrote nothing in this time, returns OK,
  // and *round contains no bytes. If an answer requires a cut, the source
  // begins to keep all bytes that it writes after the answer, as far as it can.
  // It does so until this object is destroyed. Therefore the caller must call
  // Ask() even before the first cut.
  //   kCancelled  Close() was called
  //   kRefused    the source cannot be followed
  //   others      the caller may retry later
  [[nodiscard]] rocksdb::Status Ask(const FollowRequest& request,
                                    Round* round);
  // Returns a number that grows with each byte received from the source.
  uint64_t received_bytes() const;
  // Makes a running Ask() return.
  void Close();

 private:
  [[nodiscard]] rocksdb::Status Connect(
      std::shared_ptr<SourceSession>* session);

  Dialer* const dialer_;
  const Timeouts timeouts_;

  mutable std::mutex mu_;
  ChannelSet handshakes_;
  bool closed_ = false;                     // guarded by mu_
  uint64_t past_bytes_ = 0;  // guarded by mu_; bytes from failed sessions
  // Guarded by mu_; null: not connected.
  std::shared_ptr<SourceSession> session_;
};

}  // namespace sstferry
