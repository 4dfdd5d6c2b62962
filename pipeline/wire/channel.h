// Sends and receives frames over a connection. The sender adds numbers and
// digests, the receiver checks them, and both enforce size limits.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/frame.h"
#include "format/limits.h"
#include "format/messages.h"
#include "pipeline/wire/turn.h"
#include "sstferry/transport.h"

namespace sstferry {

struct Frame {
  FrameType type = FrameType::kEnd;
  uint16_t flags = 0;       // agreed mandatory bits, and ignorable bits
  uint64_t digest = 0;      // already checked
  rocksdb::Slice payload;   // valid until the next Receive() of the channel
};

// Sends and receives the frames of one connection.
//
// Ownership: owns its connection.
// Threads:   any number of senders (each frame is sent whole), one receiver.
//   Close() from any thread wakes them all.
// Memory:    one receive buffer of at most kMaxPayloadBytes and a header. The
//   buffer grows as bytes arrive, so an announced frame costs little. Sending
//   copies nothing, and receiving into the caller's memory copies nothing.
//
// Errors:    those of Connection, and Corruption for bytes that are not the
//   next frame (magic, sequence, length, digest), naming peer and offset.
//   After a failed Send() the channel sends nothing more, because the peer may
//   have received a part of the frame; Receive() still works and may return the
//   peer's End, which has the reason. Receive() may be called again after a
//   timeout between two frames; after any other failure it always fails.
class Channel {
 public:
  explicit Channel(std::unique_ptr<Connection> connection);
  ~Channel();

  [[nodiscard]] rocksdb::Status Send(FrameType type,
                                     const rocksdb::Slice& payload,
                                     const WaitLimit& limit = {},
                                     uint16_t flags = 0);
  // Performs the connection's Handshake(); identity() is then the peer's.
  // ClientHandshake() and ServerHandshake() call Secure().
  [[nodiscard]] rocksdb::Status Secure(const WaitLimit& limit) {
    return connection_->Handshake(limit);
  }
  const PeerIdentity* identity() const { return connection_->identity(); }

  // Sends the concatenation of the parts (at most 8) as payload; *digest (may
  // be null) gets the frame's digest. REQUIRES: both sides have agreed on the
  // mandatory bits of `flags`.
  [[nodiscard]] rocksdb::Status SendParts(FrameType type,
                                          const rocksdb::Slice* parts,
                                          size_t part_count,
                                          const WaitLimit& limit,
                                          uint64_t* digest,
                                          uint16_t flags = 0);

  // Blocks until a frame has arrived. Returns End frames like any other frame;
  // kDeadPeer if the peer closed the connection without sending a frame.
  [[nodiscard]] rocksdb::Status Receive(const WaitLimit& limit, Frame* frame);

  // Performs the first step of Receive(), for callers with their own buffer:
  // returns the header. Checks everything but the digest, which covers the
  // payload. Until ReceivePayload() is called, ReceiveHeader() returns the same
  // header again.
  [[nodiscard]] rocksdb::Status ReceiveHeader(const WaitLimit& limit,
                                              FrameHeader* header);
  // Performs the second step: reads the payload into `into` (null: the
  // channel's buffer), which must have room for the header's payload_bytes;
  // frame->payload points to it. The digest is checked last: if the result is
  // not OK, the bytes in the buffer are unchecked.
  [[nodiscard]] rocksdb::Status ReceivePayload(const WaitLimit& limit,
                                               char* into, Frame* frame);

  // SendMessage() encodes and sends; ReceiveMessage() receives, checks the type
  // and decodes. If the peer sent End with a state that is not OK,
  // ReceiveMessage() returns that state and its message as a Status.
  template <typename Message>
  [[nodiscard]] rocksdb::Status SendMessage(FrameType type,
                                            const Message& message,
                                            const WaitLimit& limit = {}) {
    std::string payload;
    Encode(message, &payload);
    return Send(type, payload, limit);
  }
  template <typename Message>
  [[nodiscard]] rocksdb::Status ReceiveMessage(FrameType type,
                                               const WaitLimit& limit,
                                               Message* message) {
    Frame frame;
    RETURN_IF_ERROR(ReceiveType(type, limit, &frame));
    return Explain(Decode(frame.payload, message), type);
  }

  // Calls Receive() and ExpectType().
  [[nodiscard]] rocksdb::Status ReceiveType(FrameType type,
                                            const WaitLimit& limit,
                                            Frame* frame);

  // Returns OK if `frame` has this type, an End frame's state as a Status, and
  // Corruption for any other type.
  [[nodiscard]] rocksdb::Status ExpectType(const Frame& frame,
                                           FrameType type) const;

  // Limits the payload of later frames, to at most kMaxPayloadBytes, and
  // thereby the memory that an unknown peer can make this side allocate. Call
  // it in the receiver's thread.
  void LimitPayload(uint32_t bytes) { max_payload_bytes_ = bytes; }

  // Sets the mandatory flags that both sides have agreed on; initially none. A
  // later frame with another mandatory flag is Corruption. Call it in the
  // receiver's thread.
  void AllowFlags(uint16_t flags) { allowed_flags_ = flags; }

  void Close();

  // Returns false after a Receive() has failed permanently. Call it in the
  // receiver's thread.
  bool can_receive() const { return !receive_broken_; }
  const std::string& peer() const;
  bool is_in_process() const;
  uint64_t bytes_sent() const { return bytes_sent_.load(); }
  uint64_t bytes_received() const { return bytes_received_.load(); }
  // Returns the time of the last received byte, in steady microseconds.
  int64_t last_received_micros() const { return last_received_micros_.load(); }

 private:
  // `expected` (may be null) names the missing frame if the peer closes.
  [[nodiscard]] rocksdb::Status ReceiveHeaderOf(const char* expected,
                                                const WaitLimit& limit,
                                                FrameHeader* header);
  // Fills header_, or continues an earlier call that timed out.
  [[nodiscard]] rocksdb::Status FillHeader(const char* expected,
                                           const WaitLimit& limit);
  [[nodiscard]] rocksdb::Status CutInHeader(const rocksdb::Status& status,
                                            const char* expected) const;
  [[nodiscard]] rocksdb::Status CheckHeader(FrameHeader* header) const;
  [[nodiscard]] rocksdb::Status ReadPayload(const FrameHeader& header,
                                            char* into,
                                            const WaitLimit& limit);
  [[nodiscard]] rocksdb::Status ReadGrowing(size_t bytes,
                                            const WaitLimit& limit,
                                            size_t* got);
  // Reads at least `bytes` and at most `capacity`; *got is the number of bytes
  // read, even after an error. Returns IOError (kDeadPeer) if the peer closed
  // the connection before it sent `bytes`.
  [[nodiscard]] rocksdb::Status ReadAtLeast(char* buffer, size_t bytes,
                                            size_t capacity,
                                            const WaitLimit& limit,
                                            size_t* got);
  // Adds peer and frame type to a decoder's error message; keeps OK.
  [[nodiscard]] rocksdb::Status Explain(const rocksdb::Status& status,
                                        FrameType type) const;

  const std::unique_ptr<Connection> connection_;
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
  std::atomic<int64_t> last_received_micros_{0};

  // Used by the receiver's thread. A read into receive_buffer_ may also read
  // the start of the next header, into header_.
  std::vector<char> receive_buffer_;
  std::array<char, kFrameHeaderBytes> header_{};
  size_t header_bytes_ = 0;
  uint64_t frame_offset_ = 0;  // stream offset of the current frame
  uint64_t next_receive_sequence_ = 0;
  uint32_t max_payload_bytes_ = kMaxPayloadBytes;
  uint16_t allowed_flags_ = 0;
  bool receive_broken_ = false;

  Turn send_turn_;
  uint64_t next_send_sequence_ = 0;  // used in send_turn_
  bool send_broken_ = false;         // used in send_turn_
};

// Returns the newest version in both [oldest, newest]; 0 if there is no
// such version.
uint16_t CommonVersion(uint16_t oldest, uint16_t newest, uint16_t peer_oldest,
                       uint16_t peer_newest);

// Performs the transport's handshake and exchanges the first two frames of a
// connection, within `limit`. Client side: sends `hello`, receives the answer.
// kIncompatible if there is no common protocol version (the message has the
// versions of both sides).
[[nodiscard]] rocksdb::Status ClientHandshake(Channel* channel,
                                              const Hello& hello,
                                              const WaitLimit& limit,
                                              HelloAck* ack);
// Server side of ClientHandshake(): receives a Hello and answers it. If it
// refuses the peer, it sends End and returns the same state.
[[nodiscard]] rocksdb::Status ServerHandshake(
    Channel* channel, const std::string& software,
    const std::string& rocksdb_version, const WaitLimit& limit, Hello* hello,
    HelloAck* ack);

// Sends End with the state and message of `status`, so that both sides report
// the same state. Gives up after a second.
void SendEnd(Channel* channel, const rocksdb::Status& status,
             const std::string& where);

}  // namespace sstferry
