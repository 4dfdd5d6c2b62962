// Asks a source for rounds over a control connection.
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

// The source of a standby's rounds. Connects on the first Ask(), and reconnects
// on the next one after a failure.
//
// Threads: Ask() from one thread at a time; the others from any.
class SourceRounds {
 public:
  // The dialer must outlive this object.
  SourceRounds(Dialer* dialer, const Timeouts& timeouts)
      : dialer_(dialer), timeouts_(timeouts) {}

  // Requests the bytes after the position of `request`, and waits for them as
  // long as the request says. If nothing was written, returns OK, and *round
  // has only an end. If an answer requires a cut, the source keeps the bytes
  // that are written after it, as far as it can, until this object is
  // destroyed. So call Ask() before a first cut, too.
  //   kCancelled  Close() was called
  //   kRefused    the source cannot be followed
  //   others      retry later
  [[nodiscard]] rocksdb::Status Ask(const FollowRequest& request,
                                    Round* round);
  // Returns a number that grows with each byte from the source.
  uint64_t received_bytes() const;
  // Makes Ask() return.
  void Close();

 private:
  [[nodiscard]] rocksdb::Status Connect(
      std::shared_ptr<SourceSession>* session);

  Dialer* const dialer_;
  const Timeouts timeouts_;

  mutable std::mutex mu_;
  ChannelSet handshakes_;
  bool closed_ = false;                     // under mu_
  uint64_t past_bytes_ = 0;  // under mu_; received by sessions that failed
  std::shared_ptr<SourceSession> session_;  // under mu_; null: not connected
};

}  // namespace sstferry
