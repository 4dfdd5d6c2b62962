// The channels of a multiplexer: their bytes, credits and ends. This code uses
// no descriptors: a reading thread passes in the received bytes, and a writing
// thread fetches the bytes to send.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "format/stream_frame.h"
#include "pipeline/wire/multiplexer.h"
#include "pipeline/wire/wait_deadline.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Ring buffer for one direction of a channel. One thread puts bytes, another
// takes them. The owner counts the bytes in the ring under a lock, which also
// orders the memory accesses of both threads.
class ByteRing {
 public:
  explicit ByteRing(size_t capacity)
      : capacity_(capacity),
        bytes_(std::make_unique_for_overwrite<char[]>(capacity)) {}
  size_t capacity() const { return capacity_; }

  // Adds bytes. REQUIRES: there is room for all of them.
  void Put(const rocksdb::Slice& data);
  // Removes bytes. REQUIRES: the ring has them.
  void Take(char* out, size_t bytes);
  // Returns the next `bytes` as one or two pieces. They stay valid until
  // Drop().
  std::array<rocksdb::Slice, 2> Peek(size_t bytes) const;
  void Drop(size_t bytes) { take_at_ = (take_at_ + bytes) % capacity_; }

 private:
  const size_t capacity_;
  const std::unique_ptr<char[]> bytes_;
  size_t put_at_ = 0;   // used only by the thread that puts
  size_t take_at_ = 0;  // used only by the thread that takes
};

// One channel. The mutex of its StreamChannels guards all members except the
// contents of the rings.
struct StreamChannel {
  StreamChannel(uint32_t channel_id, size_t receive_bytes)
      : id(channel_id), in(receive_bytes), out(kStreamSendBytes) {}

  const uint32_t id;
  ByteRing in;   // the reading thread puts bytes
  ByteRing out;  // the writing thread takes bytes
  size_t in_used = 0;
  size_t out_used = 0;
  uint64_t may_send = 0;     // credit that the peer granted and that remains
  uint64_t may_receive = 0;  // credit that the peer still has
  uint32_t to_grant = 0;     // bytes read since the last grant
  bool open_due = false;
  bool grant_due = false;
  bool has_turn = false;  // is in turns_, or the writing thread sends it
  bool closed_here = false;
  bool close_sent = false;
  bool closed_there = false;
  std::condition_variable readable;
  std::condition_variable writable;
};

// All channels of one multiplexer.
//
// Threads: all members from any thread, except those marked for the reading or
//   the writing thread.
class StreamChannels {
 public:
  explicit StreamChannels(const MultiplexerOptions& options);

  // For the multiplexer's callers.
  [[nodiscard]] rocksdb::Status AwaitHello(const WaitLimit& limit);
  [[nodiscard]] rocksdb::Status Open(std::shared_ptr<StreamChannel>* channel);
  [[nodiscard]] rocksdb::Status Accept(std::shared_ptr<StreamChannel>* channel);
  void StopWaiting();
  bool ended() const;
  // Does what Multiplexer::AwaitClosed() does.
  void AwaitClosed(std::chrono::milliseconds limit);

  // For a channel's connection. Work like the functions of Connection.
  [[nodiscard]] rocksdb::Status Read(
      const std::shared_ptr<StreamChannel>& channel, char* buffer,
      size_t capacity, const WaitLimit& limit, size_t* bytes);
  [[nodiscard]] rocksdb::Status Write(
      const std::shared_ptr<StreamChannel>& channel,
      const rocksdb::Slice* parts, size_t part_count, const WaitLimit& limit);
  void Close(const std::shared_ptr<StreamChannel>& channel);
  const std::string& peer() const { return options_.peer; }

  // For the reading thread. kCorrupt: the peer broke a rule of the stream.
  void TakeHello(const StreamHello& hello);
  [[nodiscard]] rocksdb::Status TakeFrame(const StreamFrame& frame);
  // Adds more bytes of the payload of the last Data frame.
  void TakePayload(const rocksdb::Slice& data);
  void End(const rocksdb::Status& status);

  // For the writing thread: the frames that one channel sends in a turn. The
  // slices point into the channel's ring and into this object.
  struct Sending {
    std::shared_ptr<StreamChannel> channel;
    std::array<char, 4 * kStreamFrameHeaderBytes> headers;
    std::array<rocksdb::Slice, 6> parts;
    size_t part_count = 0;
    uint32_t data_bytes = 0;
  };
  // Blocks until a channel has something to send, and returns the channels in
  // the order in which they became ready. Returns false if the stream has
  // ended. After Drain(), also returns false if all bytes are sent, or if only
  // bytes without credit remain and the limit of Drain() has passed.
  bool NextTurn(Sending* turn);
  void EndTurn(const Sending& turn);

  // Makes NextTurn() return false once all bytes are sent, or, after `limit`,
  // once only bytes without credit remain. Blocks until WriterEnded(), for at
  // most `limit`.
  void Drain(std::chrono::milliseconds limit);
  // Records the end of the writing thread. `error`: the errno of a failed
  // write; 0 if none failed.
  void WriterEnded(int error);
  int write_error() const;
  // Blocks until End() is called, for at most `limit`.
  void AwaitEnd(std::chrono::milliseconds limit);

 private:
  using Lock = std::unique_lock<std::mutex>;

  std::shared_ptr<StreamChannel> AddLocked(uint32_t id);
  uint32_t SendableLocked(const StreamChannel& channel) const;
  static bool CloseDueLocked(const StreamChannel& channel);
  bool HasWorkLocked(const StreamChannel& channel) const;
  bool HasLeftLocked() const;
  void EnqueueLocked(const std::shared_ptr<StreamChannel>& channel);
  void ForgetIfClosedLocked(const StreamChannel& channel);
  [[nodiscard]] rocksdb::Status EndedLocked() const;
  [[nodiscard]] rocksdb::Status TakeOpenLocked(uint32_t id);
  [[nodiscard]] rocksdb::Status TakeDataLocked(
      const std::shared_ptr<StreamChannel>& channel, uint32_t bytes);
  [[nodiscard]] rocksdb::Status TakeCreditLocked(
      const std::shared_ptr<StreamChannel>& channel, uint32_t bytes);
  [[nodiscard]] rocksdb::Status WaitForRoom(StreamChannel* channel,
                                            const rocksdb::Slice& data,
                                            WaitDeadline* deadline,
                                            size_t* room);

  const MultiplexerOptions options_;
  std::shared_ptr<StreamChannel> receives_;  // used only by the reading thread

  mutable std::mutex mu_;
  // Signals changes of the hello, accepted_, ended_, writer_ended_, and a
  // channel's closed_here.
  std::condition_variable changed_;
  std::condition_variable work_;  // signals turns_, drains_, ended_
  std::map<uint32_t, std::shared_ptr<StreamChannel>> channels_;
  std::deque<std::shared_ptr<StreamChannel>> accepted_;
  std::deque<std::shared_ptr<StreamChannel>> turns_;
  uint32_t last_id_ = 0;
  uint32_t first_credit_ = 0;  // granted by the peer's hello; 0: none yet
  rocksdb::Status end_status_;
  bool ended_ = false;
  bool stopped_waiting_ = false;
  bool drains_ = false;
  bool drain_limit_passed_ = false;
  bool writer_ended_ = false;
  int write_error_ = 0;
};

// Parses the bytes of a stream for its channels, however they are split into
// reads.
//
// Threads: one, the reading thread.
class StreamParser {
 public:
  explicit StreamParser(StreamChannels* channels) : channels_(channels) {}

  // Consumes everything from the front of *input that can be parsed. Fewer than
  // 16 bytes remain; the caller passes them to the next call, followed by new
  // bytes.
  //   kRefused  this is no stream: the message shows the received bytes
  //   kCorrupt  the peer broke a rule of the stream
  [[nodiscard]] rocksdb::Status Take(rocksdb::Slice* input);
  // Returns the reason why the stream ended, never OK: kDeadPeer, or kRefused
  // as Take() does. `left`: the bytes that the last Take() left.
  [[nodiscard]] rocksdb::Status Close(const rocksdb::Slice& left) const;
  bool greeted() const { return greeted_; }

 private:
  [[nodiscard]] rocksdb::Status TakeHello(rocksdb::Slice* input);
  [[nodiscard]] rocksdb::Status TakeHeader(rocksdb::Slice* input);
  [[nodiscard]] rocksdb::Status NotAStream(const rocksdb::Slice& found) const;

  StreamChannels* const channels_;
  bool greeted_ = false;
  uint32_t payload_left_ = 0;  // bytes left of the current Data frame
};

}  // namespace sstferry
