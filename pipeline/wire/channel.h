// Sends and receives frames over a connection. The sender gives each frame a
// sequence number and a digest. The receiver checks both. Sender and receiver
// enforce size limits.
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
  uint16_t flags = 0;       // only bits that may be ignored or were agreed on
  uint64_t digest = 0;      // the channel has checked it
  rocksdb::Slice payload;   // valid until the channel receives again
};

// Sends and receives the frames of one connection.
//
// Ownership: owns its connection.
// Threads:   any number of senders, and one receiver. The frames of several
//   senders do not mix. Close() may be called from any thread and wakes all.
// Memory:    one receive buffer for at most kMaxPayloadBytes and a header. It
//   grows as bytes arrive, so a peer that only announces a large frame costs
//   little. Sending copies no payload, and neither does receiving into the
//   caller's memory.
//
// Errors:    those of Connection. Also Corruption if the received bytes have a
//   wrong magic, sequence number, length or digest; the message names the peer
//   and the offset. After a failed Send() the channel sends nothing more,
//   because the peer may have received a part of the frame. Receive() still
//   works then, and may return the End frame in which the peer gives its
//   reason. After a timeout between two frames, Receive() may be called again.
//   After other failures it always fails.
class Channel {
 public:
  explicit Channel(std::unique_ptr<Connection> connection);
  ~Channel();

  [[nodiscard]] rocksdb::Status Send(FrameType type,
                                     const rocksdb::Slice& payload,
                                     const WaitLimit& limit = {},
                                     uint16_t flags = 0);
  // Performs the connection's Handshake(). ClientHandshake() and
  // ServerHandshake() call Secure(). After success, identity() is the peer's
  // identity.
  [[nodiscard]] rocksdb::Status Secure(const WaitLimit& limit) {
    return connection_->Handshake(limit);
  }
  const PeerIdentity* identity() const { return connection_->identity(); }

  // Sends a frame whose payload consists of the parts (at most 8) in order.
  // Sets *digest to the frame's digest, unless `digest` is null. REQUIRES: both
  // sides have agreed on the mandatory bits of `flags`.
  [[nodiscard]] rocksdb::Status SendParts(FrameType type,
                                          const rocksdb::Slice* parts,
                                          size_t part_count,
                                          const WaitLimit& limit,
                                          uint64_t* digest,
                                          uint16_t flags = 0);

  // Blocks until a frame has arrived, and returns the frame, also if it is an
  // End frame. Returns kDeadPeer if the peer closed the connection before a
  // frame began.
  [[nodiscard]] rocksdb::Status Receive(const WaitLimit& limit, Frame* frame);

  // Receives only the header of the next frame, and checks everything except
  // the digest. Callers that want the payload in their own buffer then call
  // ReceivePayload(). Until then, ReceiveHeader() returns the same header
  // again.
  [[nodiscard]] rocksdb::Status ReceiveHeader(const WaitLimit& limit,
                                              FrameHeader* header);
  // Receives the payload into `into`, or into the channel's buffer if `into` is
  // null. `into` must have room for the header's payload_bytes. Sets
  // frame->payload to the received payload. Checks the digest after the last
  // byte. If the result is not OK, the received bytes may be wrong.
  [[nodiscard]] rocksdb::Status ReceivePayload(const WaitLimit& limit,
                                               char* into, Frame* frame);

  // SendMessage() encodes a message and sends it as a frame. ReceiveMessage()
  // receives a frame, checks its type and decodes the message. If the peer sent
  // an End frame whose state is not OK instead, ReceiveMessage() returns the
  // state and the message of the End frame as a Status.
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

  // Receives a frame and checks its type like ExpectType().
  [[nodiscard]] rocksdb::Status ReceiveType(FrameType type,
                                            const WaitLimit& limit,
                                            Frame* frame);

  // Returns OK if `frame` has the type `type`. If `frame` is an End frame
  // instead, returns the end state in it as a Status. Otherwise returns
  // Corruption.
  [[nodiscard]] rocksdb::Status ExpectType(const Frame& frame,
                                           FrameType type) const;

  // Limits the payload of later frames to `bytes`, at most kMaxPayloadBytes. A
  // peer that is not known yet can then make this side allocate only little
  // memory. Call LimitPayload() in the receiver's thread.
  void LimitPayload(uint32_t bytes) { max_payload_bytes_ = bytes; }

  // Sets the mandatory flags that both sides have agreed on; at first there are
  // none. If a later frame has another mandatory flag, Receive() returns
  // Corruption. Call AllowFlags() in the receiver's thread.
  void AllowFlags(uint16_t flags) { allowed_flags_ = flags; }

  void Close();

  // Returns false after Receive() has failed within a payload; all later calls
  // then fail, too. Call can_receive() in the receiver's thread.
  bool can_receive() const { return !receive_broken_; }
  const std::string& peer() const;
  bool is_in_process() const;
  uint64_t bytes_sent() const { return bytes_sent_.load(); }
  uint64_t bytes_received() const { return bytes_received_.load(); }
  // Returns the time at which the last byte arrived, in microseconds of the
  // steady clock.
  int64_t last_received_micros() const { return last_received_micros_.load(); }

 private:
  // Does what ReceiveHeader() does. `expected` (may be null) is the name of the
  // frame type for which the caller waits. If the peer closes the connection,
  // the error message contains this name.
  [[nodiscard]] rocksdb::Status ReceiveHeaderOf(const char* expected,
                                                const WaitLimit& limit,
                                                FrameHeader* header);
  // Reads bytes until header_ is complete. If an earlier call timed out, keeps
  // the bytes that it has read.
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
  // Reads at least `bytes` and at most `capacity` bytes. Sets *got to the
  // number of bytes read, also if it returns an error. Returns IOError
  // (kDeadPeer) if the peer closed the connection before `bytes` bytes had
  // arrived.
  [[nodiscard]] rocksdb::Status ReadAtLeast(char* buffer, size_t bytes,
                                            size_t capacity,
                                            const WaitLimit& limit,
                                            size_t* got);
  // Adds the peer and the frame type to the message of a failed decoder.
  // Returns OK if `status` is OK.
  [[nodiscard]] rocksdb::Status Explain(const rocksdb::Status& status,
                                        FrameType type) const;

  const std::unique_ptr<Connection> connection_;
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
  std::atomic<int64_t> last_received_micros_{0};

  // Only the receiver's thread uses the members from here to send_turn_. A read
  // into receive_buffer_ may also get the first bytes of the next header; they
  // are then copied to header_.
  std::vector<char> receive_buffer_;
  std::array<char, kFrameHeaderBytes> header_{};
  size_t header_bytes_ = 0;
  uint64_t frame_offset_ = 0;  // offset of the current frame in the stream
  uint64_t next_receive_sequence_ = 0;
  uint32_t max_payload_bytes_ = kMaxPayloadBytes;
  uint16_t allowed_flags_ = 0;
  bool receive_broken_ = false;

  Turn send_turn_;
  uint64_t next_send_sequence_ = 0;  // guarded by send_turn_
  bool send_broken_ = false;         // guarded by send_turn_
};

// Returns the newest protocol version that both sides support; 0 if there is
// none. One side supports `oldest` to `newest`, the peer `peer_oldest` to
// `peer_newest`.
uint16_t CommonVersion(uint16_t oldest, uint16_t newest, uint16_t peer_oldest,
                       uint16_t peer_newest);

// Performs the client's part of the handshake within `limit`: first the
// handshake of the transport, then the client sends `hello` and receives the
// server's answer, *ack. Returns kIncompatible if there is no common protocol
// version; the message then contains the versions of both sides.
[[nodiscard]] rocksdb::Status ClientHandshake(Channel* channel,
                                              const Hello& hello,
                                              const WaitLimit& limit,
                                              HelloAck* ack);
// Performs the server's part of the handshake: receives a Hello frame into
// *hello and answers with *ack. If the server refuses the client, it sends an
// End frame and returns the state in that frame.
[[nodiscard]] rocksdb::Status ServerHandshake(
    Channel* channel, const std::string& software,
    const std::string& rocksdb_version, const WaitLimit& limit, Hello* hello,
    HelloAck* ack);

// Sends an End frame with the state and the message of `status`, so that both
// sides report the same state. Gives up after one second.
void SendEnd(Channel* channel, const rocksdb::Status& status,
             const std::string& where);

}  // namespace sstferry
