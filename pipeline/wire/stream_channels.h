// The channels of a multiplexer: buffers for their bytes, their credit, and
// whether they are closed. This code does no input or output. A reading thread
// passes received bytes to it, and a writing thread gets the bytes to send from
// it.
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

// Ring buffer for one direction of a channel. One thread puts bytes into the
// ring, and another thread takes them. The owner of the ring counts its bytes
// under a lock. This lock also makes bytes that one thread wrote visible to the
// other.
class ByteRing {
 public:
  explicit ByteRing(size_t capacity)
      : capacity_(capacity),
        bytes_(std::make_unique_for_overwrite<char[]>(capacity)) {}
  size_t capacity() const { return capacity_; }

  // Adds `data`. REQUIRES: the ring has room for all of it.
  void Put(const rocksdb::Slice& data);
  // Removes the next `bytes` bytes. REQUIRES: the ring has as many bytes.
  void Take(char* out, size_t bytes);
  // Returns the next `bytes` bytes in one or two pieces. The pieces are valid
  // until Drop().
  std::array<rocksdb::Slice, 2> Peek(size_t bytes) const;
  void Drop(size_t bytes) { take_at_ = (take_at_ + bytes) % capacity_; }

 private:
  const size_t capacity_;
  const std::unique_ptr<char[]> bytes_;
  size_t put_at_ = 0;   // used only by the putting thread
  size_t take_at_ = 0;  // used only by the taking thread
};

// One channel. The mutex of its StreamChannels guards all members, but not the
// bytes in the rings.
struct StreamChannel {
  StreamChannel(uint32_t channel_id, size_t receive_bytes)
      : id(channel_id), in(receive_bytes), out(kStreamSendBytes) {}

  const uint32_t id;
  ByteRing in;   // received bytes
  ByteRing out;  // bytes to send
  size_t in_used = 0;
  size_t out_used = 0;
  uint64_t may_send = 0;     // bytes that the peer still accepts
  uint64_t may_receive = 0;  // bytes that the peer may still send
  uint32_t to_grant = 0;     // bytes read since this side last granted credit
  bool open_due = false;
  bool grant_due = false;
  bool has_turn = false;  // in turns_, or the writing thread is sending it
  bool closed_here = false;
  bool close_sent = false;
  bool closed_there = false;
  std::condition_variable readable;
  std::condition_variable writable;
};

// All channels of one multiplexer.
//
// Threads: any thread may call any member, except the members for the reading
//   or the writing thread.
class StreamChannels {
 public:
  explicit StreamChannels(const MultiplexerOptions& options);

  // The next functions work like the functions of Multiplexer with the same
  // names.
  [[nodiscard]] rocksdb::Status AwaitHello(const WaitLimit& limit);
  [[nodiscard]] rocksdb::Status Open(std::shared_ptr<StreamChannel>* channel);
  [[nodiscard]] rocksdb::Status Accept(std::shared_ptr<StreamChannel>* channel);
  void StopWaiting();
  bool ended() const;
  // Works like Multiplexer::AwaitClosed().
  void AwaitClosed(std::chrono::milliseconds limit);

  // The next functions work like the functions of Connection, on one channel.
  [[nodiscard]] rocksdb::Status Read(
      const std::shared_ptr<StreamChannel>& channel, char* buffer,
      size_t capacity, const WaitLimit& limit, size_t* bytes);
  [[nodiscard]] rocksdb::Status Write(
      const std::shared_ptr<StreamChannel>& channel,
      const rocksdb::Slice* parts, size_t part_count, const WaitLimit& limit);
  void Close(const std::shared_ptr<StreamChannel>& channel);
  const std::string& peer() const { return options_.peer; }

  // Only the reading thread calls the functions from here to End(). TakeFrame()
  // returns kCorrupt if the peer broke a rule of the stream.
  void TakeHello(const StreamHello& hello);
  [[nodiscard]] rocksdb::Status TakeFrame(const StreamFrame& frame);
  // Adds bytes to the payload of the Data frame that TakeFrame() got last.
  void TakePayload(const rocksdb::Slice& data);
  void End(const rocksdb::Status& status);

  // Only the writing thread uses Sending, NextTurn() and EndTurn(). Sending
  // contains the frames that one channel sends in one turn. Its slices point
  // into the channel's ring and into the Sending object.
  struct Sending {
    std::shared_ptr<StreamChannel> channel;
    std::array<char, 4 * kStreamFrameHeaderBytes> headers;
    std::array<rocksdb::Slice, 6> parts;
    size_t part_count = 0;
    uint32_t data_bytes = 0;
  };
  // Blocks until a channel has something to send, and sets *turn to its frames.
  // Channels get their turns in the order in which they became ready. Returns
  // false if the stream has ended. After Drain(), also returns false if all
  // bytes are sent. After the limit of Drain(), bytes without credit count as
  // sent.
  bool NextTurn(Sending* turn);
  void EndTurn(const Sending& turn);

  // Makes NextTurn() return false after all bytes are sent. When `limit` has
  // passed, NextTurn() no longer waits for credit for the remaining bytes.
  // Blocks until the writing thread has called WriterEnded(), for at most
  // `limit`.
  void Drain(std::chrono::milliseconds limit);
  // Called by the writing thread when it ends. `error` is the errno of a failed
  // write; 0 if no write failed.
  void WriterEnded(int error);
  int write_error() const;
  // Blocks until the reading thread has called End(), for at most `limit`.
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
  // Signals changes of first_credit_, accepted_, stopped_waiting_, ended_,
  // writer_ended_, and of closed_here of any channel.
  std::condition_variable changed_;
  std::condition_variable work_;  // signals changes of turns_, drains_, ended_
  std::map<uint32_t, std::shared_ptr<StreamChannel>> channels_;
  std::deque<std::shared_ptr<StreamChannel>> accepted_;
  std::deque<std::shared_ptr<StreamChannel>> turns_;
  uint32_t last_id_ = 0;
  uint32_t first_credit_ = 0;  // from the peer's hello; 0: none yet
  rocksdb::Status end_status_;
  bool ended_ = false;
  bool stopped_waiting_ = false;
  bool drains_ = false;
  bool drain_limit_passed_ = false;
  bool writer_ended_ = false;
  int write_error_ = 0;
};

// Parses the received bytes of a stream and passes its frames to the channels.
// A read may end anywhere in a frame.
//
// Threads: only the reading thread.
class StreamParser {
 public:
  explicit StreamParser(StreamChannels* channels) : channels_(channels) {}

  // Parses bytes at the front of *input and removes them from it. Fewer than 16
  // bytes remain, which are an incomplete header. The caller puts new bytes
  // behind the remaining bytes and calls Take() again.
  //   kRefused  the bytes are no stream of sstferry; the message shows them
  //   kCorrupt  the peer broke a rule of the stream
  [[nodiscard]] rocksdb::Status Take(rocksdb::Slice* input);
  // Called after the last byte of the stream. Returns why the stream ended, and
  // never OK: kRefused if the bytes are no stream of sstferry, otherwise
  // kDeadPeer. `left` contains the bytes that the last Take() did not remove.
  [[nodiscard]] rocksdb::Status Close(const rocksdb::Slice& left) const;
  bool greeted() const { return greeted_; }

 private:
  [[nodiscard]] rocksdb::Status TakeHello(rocksdb::Slice* input);
  [[nodiscard]] rocksdb::Status TakeHeader(rocksdb::Slice* input);
  [[nodiscard]] rocksdb::Status NotAStream(const rocksdb::Slice& found) const;

  StreamChannels* const channels_;
  bool greeted_ = false;
  uint32_t payload_left_ = 0;  // missing bytes of the current Data frame
};

}  // namespace sstferry
