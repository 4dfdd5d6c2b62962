// Frames over a connection: numbering, digests and limits on one side,
// checking them on the other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/limits.h"
#include "format/message/frame.h"
#include "format/message/messages.h"
#include "pipeline/wire/turn.h"
#include "sstferry/transport.h"

namespace sstferry {

struct Frame {
  FrameType type = FrameType::kEnd;
  uint16_t flags = 0;       // of the mandatory ones only those allowed
  uint64_t digest = 0;      // as checked
  rocksdb::Slice payload;   // valid until the next Receive() of the channel
};

// Ownership: owns its connection.
// Threads:   any number of senders (a frame goes out whole), one receiver.
//   Close() from any thread wakes them all.
// Memory:    one receive buffer of at most kMaxPayloadBytes and a header, grown
//   as the bytes of the largest frame received into it arrive, so that a frame
//   which is only announced costs little; sending copies nothing, and
//   receiving into the caller's memory copies nothing.
// Errors:    those of Connection, and Corruption for bytes that are not the
//   next frame (magic, sequence, length, digest), naming peer and offset.
//   A channel whose Send() failed sends nothing more, since the peer may have
//   got part of a frame; its Receive() still works and may bring the peer's
//   End, which says why. A Receive() that timed out between two frames may be
//   called again; after any other failure nothing more can be received.
class Channel {
 public:
  explicit Channel(std::unique_ptr<Connection> connection);
  ~Channel();

  [[nodiscard]] rocksdb::Status Send(FrameType type,
                                     const rocksdb::Slice& payload,
                                     const WaitLimit& limit = {});
  // Connection's Handshake() and identity(); the handshakes below call it.
  [[nodiscard]] rocksdb::Status Secure(const WaitLimit& limit) {
    return connection_->Handshake(limit);
  }
  const PeerIdentity* identity() const { return connection_->identity(); }

  // The payload is the concatenation of the parts (at most 8 of them);
  // *digest (may be null) gets the frame's digest. `flags` are the sender's to
  // have agreed on with the peer.
  [[nodiscard]] rocksdb::Status SendParts(FrameType type,
                                          const rocksdb::Slice* parts,
                                          size_t part_count,
                                          const WaitLimit& limit,
                                          uint64_t* digest,
                                          uint16_t flags = 0);

  // kDeadPeer when the peer closed instead of sending a frame.
  // An End frame is returned like any other.
  [[nodiscard]] rocksdb::Status Receive(const WaitLimit& limit, Frame* frame);

  // Receive() in two steps, for a payload that is wanted elsewhere than in the
  // channel's buffer: the header, checked but for the digest, which covers the
  // payload; then the payload. Until the second step the first returns the
  // same header again.
  [[nodiscard]] rocksdb::Status ReceiveHeader(const WaitLimit& limit,
                                              FrameHeader* header);
  // `into` (null: the channel's buffer) has room for header.payload_bytes of
  // the header before; frame->payload lies there. Unless OK is returned, what
  // lies there is not to be believed: the digest is checked last.
  [[nodiscard]] rocksdb::Status ReceivePayload(const WaitLimit& limit,
                                               char* into, Frame* frame);

  // Encodes and sends; receives, checks the type and decodes. When the peer
  // sent End with a state that is not OK, ReceiveMessage returns that state and
  // its message as a Status.
  template <typename Message>
  [[nodiscard]] rocksdb::Status SendMessage(FrameType type,
                                            const Message& message,
                                            const WaitLimit& limit = {}) {
    std::string payload;
    message.EncodeTo(&payload);
    return Send(type, payload, limit);
  }
  template <typename Message>
  [[nodiscard]] rocksdb::Status ReceiveMessage(FrameType type,
                                               const WaitLimit& limit,
                                               Message* message) {
    Frame frame;
    rocksdb::Status status = ReceiveType(type, limit, &frame);
    if (status.ok()) {
      status = Explain(message->DecodeFrom(frame.payload), type);
    }
    return status;
  }

  // Receive() and ExpectType() in one.
  [[nodiscard]] rocksdb::Status ReceiveType(FrameType type,
                                            const WaitLimit& limit,
                                            Frame* frame);

  // OK when `frame` has that type; what an End frame says, as a Status;
  // Corruption for any other type.
  [[nodiscard]] rocksdb::Status ExpectType(const Frame& frame,
                                           FrameType type) const;

  // Bounds the payload of frames to come, at most kMaxPayloadBytes: what a
  // stranger may make this side allocate. The receiver's alone.
  void LimitPayload(uint32_t bytes) { max_payload_bytes_ = bytes; }

  // The mandatory flags that frames to come may have: those agreed on with the
  // peer, none at first. A frame with another one is Corruption. The
  // receiver's alone.
  void AllowFlags(uint16_t flags) { allowed_flags_ = flags; }

  void Close();

  // False once a Receive() failed for good. The receiver's alone.
  bool can_receive() const { return !receive_broken_; }
  const std::string& peer() const;
  uint64_t bytes_sent() const { return bytes_sent_.load(); }
  uint64_t bytes_received() const { return bytes_received_.load(); }
  // Steady microseconds when the last byte arrived: liveness of the peer.
  int64_t last_received_micros() const { return last_received_micros_.load(); }

 private:
  // `expected` (may be null) is for the message when the peer closes instead.
  [[nodiscard]] rocksdb::Status ReceiveHeaderOf(const char* expected,
                                                const WaitLimit& limit,
                                                FrameHeader* header);
  // Fills header_; goes on where a call that timed out stopped.
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
  // Reads at least `bytes` and at most `capacity`; *got is how many, on error
  // too. IOError (kDeadPeer) when the peer closed before `bytes` came.
  [[nodiscard]] rocksdb::Status ReadAtLeast(char* buffer, size_t bytes,
                                            size_t capacity,
                                            const WaitLimit& limit,
                                            size_t* got);
  // Puts peer and frame in front of a decoder's message; OK stays OK.
  [[nodiscard]] rocksdb::Status Explain(const rocksdb::Status& status,
                                        FrameType type) const;

  const std::unique_ptr<Connection> connection_;
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
  std::atomic<int64_t> last_received_micros_{0};

  // The receiver's alone. A read into receive_buffer_ asks for the next header
  // too: what came of it waits in header_.
  std::vector<char> receive_buffer_;
  std::array<char, kFrameHeaderBytes> header_{};
  size_t header_bytes_ = 0;
  uint64_t frame_offset_ = 0;  // of the current frame in the stream
  uint64_t next_receive_sequence_ = 0;
  uint32_t max_payload_bytes_ = kMaxPayloadBytes;
  uint16_t allowed_flags_ = 0;
  bool receive_broken_ = false;

  Turn send_turn_;
  uint64_t next_send_sequence_ = 0;  // in send_turn_
  bool send_broken_ = false;         // in send_turn_
};

// The newest version in both [oldest, newest]; 0 when there is none.
uint16_t CommonVersion(uint16_t oldest, uint16_t newest, uint16_t peer_oldest,
                       uint16_t peer_newest);

// What the transport needs, then the first two frames of every connection, all
// within `limit`.
// Client side: sends `hello`, receives the answer. kIncompatible when no common
// protocol version exists (the message names both sides' versions).
[[nodiscard]] rocksdb::Status ClientHandshake(Channel* channel,
                                              const Hello& hello,
                                              const WaitLimit& limit,
                                              HelloAck* ack);
// Server side: receives a Hello and answers it; on refusal sends End and
// returns the same state.
[[nodiscard]] rocksdb::Status ServerHandshake(
    Channel* channel, const std::string& software,
    const std::string& rocksdb_version, const WaitLimit& limit, Hello* hello,
    HelloAck* ack);

// Sends End with the state and message of `status` (best effort within a
// second) so that the peer ends with the same words.
void SendEnd(Channel* channel, const rocksdb::Status& status,
             const std::string& where);

}  // namespace sstferry
