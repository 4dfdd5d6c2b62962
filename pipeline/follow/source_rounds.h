// Asks a source for rounds over a control connection.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "pipeline/follow/round_source.h"
#include "pipeline/pull/channel_set.h"
#include "pipeline/pull/source_session.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {

// Connects on the first Ask(), and reconnects on the next one after a failure.
class SourceRounds : public RoundSource {
 public:
  // The dialer must outlive this object.
  SourceRounds(Dialer* dialer, const Timeouts& timeouts)
      : dialer_(dialer), timeouts_(timeouts) {}

  [[nodiscard]] rocksdb::Status Ask(const FollowRequest& request,
                                    Round* round) override;
  uint64_t received_bytes() const override;
  void Close() override;

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
