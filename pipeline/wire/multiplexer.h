// Several connections over one stream, such as standard input and output of
// ssh: each is a channel with its own credit, so that one that nobody reads
// does not hold up another. format/stream_frame.h has the bytes.
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
  bool dials = false;  // this side opens channels, the other accepts them
  std::string peer;    // of each channel, for logs
  // Credit that this side grants to each channel: the most that it keeps for a
  // channel that nobody reads.
  uint32_t credit_bytes = 1u << 20;
  uint32_t max_channels = kMaxStreamChannels;  // open, or being closed
  // Ends the stream when not a byte came for so long; 0: never. A peer that is
  // there sends pings.
  std::chrono::milliseconds silence_limit{0};
  // Returns what to say of a stream that ended so (kDeadPeer), after the other
  // side's hello or without it; null: what it was given. May wait for a
  // program's end. Called by the reading thread, once.
  std::function<rocksdb::Status(const rocksdb::Status& status, bool greeted)>
      explain_end;
};

// Ownership: owns the descriptors and two threads, one that reads and one that
//   writes. Channels that outlive it have ended. A channel owns a share of
//   `keeps`, by which it may keep the multiplexer.
// Threads:   all members from any thread, but Finish() from one.
// Memory:    credit_bytes and kStreamSendBytes for each channel, allocated when
//   it opens, touched as bytes come.
// Errors of channels, besides those of Connection: once the stream has ended
//   each returns the reason, after the bytes that came before.
//     kDeadPeer  the stream was closed, or failed
//     kRefused   something else than this stream came from the other side
//     kCorrupt   the other side broke the rules of the stream
class Multiplexer {
 public:
  // Takes over both descriptors, which may be one, and makes them non-blocking.
  // A caller whose `out` is a pipe ignores SIGPIPE.
  //   kInternal  there is no thread to be had
  [[nodiscard]] static rocksdb::Status Start(
      Descriptor in, Descriptor out, const MultiplexerOptions& options,
      std::unique_ptr<Multiplexer>* multiplexer);
  ~Multiplexer();

  // Waits until the other side has said hello. Returns the reason if the stream
  // ended, and Aborted after StopWaiting().
  [[nodiscard]] rocksdb::Status AwaitHello(const WaitLimit& limit);
  // Opens a channel. Its bytes wait for the hello of the other side.
  // kDeadPeer: the stream has ended, or has max_channels.
  // REQUIRES: options.dials.
  [[nodiscard]] rocksdb::Status Open(std::unique_ptr<Connection>* channel,
                                     std::shared_ptr<void> keeps = nullptr);
  // Waits for a channel that the other side opens. Returns Aborted after
  // StopWaiting(), and the reason if the stream ended.
  [[nodiscard]] rocksdb::Status Accept(std::unique_ptr<Connection>* channel,
                                       std::shared_ptr<void> keeps = nullptr);
  // Makes current and later calls of AwaitHello() and Accept() return Aborted.
  void StopWaiting();

  bool ended() const;
  // Closes the channels that nobody has accepted, and waits until this side has
  // closed all others, at most `limit`.
  void AwaitClosed(std::chrono::milliseconds limit);

  // Sends what channels have left, for at most `send_limit`, and ends the
  // stream: the other side reads its end. Then waits for the end of what comes
  // from there, for at most `end_limit`.
  void Finish(std::chrono::milliseconds send_limit,
              std::chrono::milliseconds end_limit);

 private:
  Multiplexer() = default;

  std::shared_ptr<StreamChannels> channels_;
  Descriptor in_;
  Descriptor out_;  // not open: in_ is both
  std::unique_ptr<WakeSignal> stop_reading_;
  std::unique_ptr<WakeSignal> stop_writing_;
  std::thread reader_;
  std::thread writer_;
};

// Bytes of a channel that wait for credit or for the stream.
inline constexpr size_t kStreamSendBytes = 256u << 10;

}  // namespace sstferry
