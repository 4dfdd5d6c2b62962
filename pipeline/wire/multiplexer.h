// Carries several connections over one stream, such as the standard input and
// output of ssh. Each connection is a channel of the stream. A sender may send
// only as many bytes on a channel as the receiver has granted (its credit), so
// that a channel that nobody reads does not block the others.
// format/stream_frame.h defines the bytes.
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
  bool dials = false;  // true: this side opens the channels
  std::string peer;    // name of the other side in logs
  // Maximum number of bytes that this side stores for a channel until they are
  // read. The other side gets this credit when a channel opens.
  uint32_t credit_bytes = 1u << 20;
  uint32_t max_channels = kMaxStreamChannels;  // open or closing
  // The stream ends if no byte arrives for this time; 0: no limit. A peer that
  // works sends pings, so that bytes arrive.
  std::chrono::milliseconds silence_limit{0};
  // Called once by the reading thread if the stream ended with kDeadPeer.
  // Returns the status to report instead of `status`. `greeted` is true if the
  // other side had sent its hello. The function may wait until a program has
  // ended. If it is null, `status` is reported.
  std::function<rocksdb::Status(const rocksdb::Status& status, bool greeted)>
      explain_end;
};

// One stream with its channels.
//
// Ownership: owns the descriptors and two threads; one reads the stream, the
//   other writes it. A channel may outlive the multiplexer, and then behaves as
//   if the stream had ended. Each channel keeps a reference to the object
//   `keeps` that the caller passed, for example the owner of the multiplexer.
// Threads:   one thread calls Finish(). All other members may be called from
//   any thread.
// Memory:    a channel allocates credit_bytes and kStreamSendBytes when it
//   opens. It touches this memory only when bytes arrive.
// Errors of channels: those of Connection. After the stream has ended, a
//   channel first returns the bytes that have arrived, and then one of these:
//     kDeadPeer  the stream was closed, or failed
//     kRefused   the other side sent bytes that are no stream of sstferry
//     kCorrupt   the other side broke the rules of the stream
class Multiplexer {
 public:
  // Starts the threads for a stream. Takes over both descriptors and makes them
  // non-blocking. If `out` is not open, `in` is used for both directions. If
  // `out` is a pipe, the caller must ignore SIGPIPE.
  //   kInternal  a thread cannot be started
  [[nodiscard]] static rocksdb::Status Start(
      Descriptor in, Descriptor out, const MultiplexerOptions& options,
      std::unique_ptr<Multiplexer>* multiplexer);
  ~Multiplexer();

  // Blocks until the other side's hello has arrived. If the stream ended
  // before, returns the reason for its end. After StopWaiting(), returns
  // Aborted.
  [[nodiscard]] rocksdb::Status AwaitHello(const WaitLimit& limit);
  // Opens a channel. The channel sends its bytes after the other side's hello
  // has arrived. Returns kDeadPeer if the stream has ended or already has
  // max_channels. REQUIRES: options.dials.
  [[nodiscard]] rocksdb::Status Open(std::unique_ptr<Connection>* channel,
                                     std::shared_ptr<void> keeps = nullptr);
  // Blocks until the other side has opened a channel. If the stream ended,
  // returns the reason for its end. After StopWaiting(), returns Aborted.
  [[nodiscard]] rocksdb::Status Accept(std::unique_ptr<Connection>* channel,
                                       std::shared_ptr<void> keeps = nullptr);
  // Makes all present and later calls of AwaitHello() and Accept() return
  // Aborted.
  void StopWaiting();

  bool ended() const;
  // Closes the channels that Accept() has not returned. Then blocks until this
  // side has closed all other channels, or until `limit` has passed.
  void AwaitClosed(std::chrono::milliseconds limit);

  // Sends the remaining bytes of all channels, for at most `send_limit`. Then
  // tells the other side that no more bytes follow, and blocks until the other
  // side has ended the stream, for at most `end_limit`.
  void Finish(std::chrono::milliseconds send_limit,
              std::chrono::milliseconds end_limit);

 private:
  Multiplexer() = default;

  std::shared_ptr<StreamChannels> channels_;
  Descriptor in_;
  Descriptor out_;  // not open: in_ is used for both directions
  std::unique_ptr<WakeSignal> stop_reading_;
  std::unique_ptr<WakeSignal> stop_writing_;
  std::thread reader_;
  std::thread writer_;
};

// Maximum number of unsent bytes of a channel. They wait for credit, or until
// the stream accepts them.
inline constexpr size_t kStreamSendBytes = 256u << 10;

}  // namespace sstferry
