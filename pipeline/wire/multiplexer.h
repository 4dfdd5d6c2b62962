// Carries several connections over one stream, such as standard input and
// output of ssh. Each connection is a channel with its own credit, so that a
// channel without a reader does not block the others. Byte layout:
// format/stream_frame.h.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "format/limits.h"
#include "rocksdb/status.h"
#include "sstferry/descriptor.h"
#include "sstferry/transport.h"

namespace sstferry {

class StreamChannels;
class WakeSignal;

struct MultiplexerOptions {
  bool dials = false;  // this side opens channels, the other side accepts
  std::string peer;    // name of the peer for each channel, for logs
  // Credit that this side grants to each channel: the maximum number of bytes
  // that it buffers for a channel without a reader.
  uint32_t credit_bytes = 1u << 20;
  uint32_t max_channels = kMaxStreamChannels;  // including those being closed
  // If no byte arrives for this time, the stream ends; 0: no limit. A running
  // peer sends pings.
  std::chrono::milliseconds silence_limit{0};
  // Returns the status to report after the stream ended with `status`
  // (kDeadPeer). `greeted`: the other side had sent its hello. May wait for a
  // program to end. The reading thread calls it once. Null: reports `status`.
  std::function<rocksdb::Status(const rocksdb::Status& status, bool greeted)>
      explain_end;
};

// One stream with its channels.
//
// Ownership: owns the descriptors and two threads, one that reads and one that
//   writes. A channel that outlives the multiplexer behaves as after the end of
//   the stream. A channel owns a share of `keeps`, which may keep the
//   multiplexer alive.
// Threads:   Finish() from one thread, all other members from any.
// Memory:    credit_bytes and kStreamSendBytes for each channel, allocated when
//   the channel opens, touched as bytes arrive.
// Errors of channels, besides those of Connection: after the stream has ended,
//   each channel first returns the bytes that had arrived, and then the reason
//   for the end:
//     kDeadPeer  the stream was closed, or failed
//     kRefused   the other side sent something other than this stream
//     kCorrupt   the other side broke the rules of the stream
class Multiplexer {
 public:
  // Takes over both descriptors, which may be the same, and makes them
  // non-blocking. If `out` is a pipe, the caller must ignore SIGPIPE.
  //   kInternal  a thread cannot be started
  [[nodiscard]] static rocksdb::Status Start(
      Descriptor in, Descriptor out, const MultiplexerOptions& options,
      std::unique_ptr<Multiplexer>* multiplexer);
  ~Multiplexer();

  // Blocks until the other side's hello has arrived. Returns the reason if the
  // stream ended, and Aborted after StopWaiting().
  [[nodiscard]] rocksdb::Status AwaitHello(const WaitLimit& limit);
  // Opens a channel. Its bytes are sent after the other side's hello has
  // arrived. kDeadPeer: the stream has ended, or has max_channels.
  // REQUIRES: options.dials.
  [[nodiscard]] rocksdb::Status Open(std::unique_ptr<Connection>* channel,
                                     std::shared_ptr<void> keeps = nullptr);
  // Blocks until the other side opens a channel. Returns Aborted after
  // StopWaiting(), and the reason if the stream ended.
  [[nodiscard]] rocksdb::Status Accept(std::unique_ptr<Connection>* channel,
                                       std::shared_ptr<void> keeps = nullptr);
  // Makes AwaitHello() and Accept() return Aborted, now and later.
  void StopWaiting();

  bool ended() const;
  // Closes the channels that were not accepted. Then blocks until this side has
  // closed all other channels, for at most `limit`.
  void AwaitClosed(std::chrono::milliseconds limit);

  // Sends the remaining bytes of all channels, for at most `send_limit`, and
  // then ends this side's half of the stream. Then blocks until the other side
  // has ended its half, for at most `end_limit`.
  void Finish(std::chrono::milliseconds send_limit,
              std::chrono::milliseconds end_limit);

 private:
  Multiplexer() = default;

  std::shared_ptr<StreamChannels> channels_;
  Descriptor in_;
  Descriptor out_;  // not open: in_ is used for both
  std::unique_ptr<WakeSignal> stop_reading_;
  std::unique_ptr<WakeSignal> stop_writing_;
  std::thread reader_;
  std::thread writer_;
};

// Maximum bytes of a channel that may wait for credit or for the stream.
inline constexpr size_t kStreamSendBytes = 256u << 10;

}  // namespace sstferry
