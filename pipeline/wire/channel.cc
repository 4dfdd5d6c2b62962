#include "pipeline/wire/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/printable.h"
#include "pipeline/wire/wait_deadline.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr size_t kMaxSlices = 8;
constexpr size_t kMagicBytes = 4;
// Smallest size of the receive buffer. Control frames are smaller.
constexpr size_t kMinBufferBytes = 16u << 10;

int64_t SteadyMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             Clock::now().time_since_epoch())
      .count();
}

// Returns true if the first kMagicBytes of `bytes` may be the start of a frame.
// Compares them with an encoded header, so that only the encoder defines the
// magic.
bool MayBeginFrame(const char* bytes) {
  std::array<char, kFrameHeaderBytes> empty_frame;
  EncodeFrameHeader(FrameType::kEnd, 0, nullptr, 0, empty_frame.data(),
                    nullptr);
  return memcmp(bytes, empty_frame.data(), kMagicBytes) == 0;
}

// Returns true if the connection was lost. Returns false if one side denied the
// other: a denial also is an IOError.
bool IsLost(const Status& status) {
  return status.IsIOError() && EndStateOf(status) == EndState::kDeadPeer;
}

// Returns true if the bytes are the start of a TLS record. No frame starts with
// such bytes.
bool LooksLikeTls(const char* bytes) {
  return bytes[0] >= 0x14 && bytes[0] <= 0x17 && bytes[1] == 3;
}

}  // namespace

Channel::Channel(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)),
      last_received_micros_(SteadyMicros()) {}

Channel::~Channel() = default;

void Channel::Close() { connection_->Close(); }

const std::string& Channel::peer() const { return connection_->peer(); }

bool Channel::is_in_process() const { return connection_->is_in_process(); }

Status Channel::Send(FrameType type, const Slice& payload,
                     const WaitLimit& limit, uint16_t flags) {
  return SendParts(type, &payload, 1, limit, nullptr, flags);
}

Status Channel::SendParts(FrameType type, const Slice* parts,
                          size_t part_count, const WaitLimit& limit,
                          uint64_t* digest, uint16_t flags) {
  std::array<char, kFrameHeaderBytes> header;
  std::array<Slice, kMaxSlices + 1> gathered;
  gathered[0] = Slice(header.data(), header.size());
  size_t used = 1;
  size_t payload_bytes = 0;
  for (size_t i = 0; i < part_count; ++i) {
    if (parts[i].empty()) {
      continue;
    }
    if (used > kMaxSlices) {
      return MakeStatus(EndState::kInternal,
                        "send: expected at most 8 parts of a frame");
    }
    gathered[used++] = parts[i];
    payload_bytes += parts[i].size();
  }
  if (payload_bytes > kMaxPayloadBytes) {
    return MakeStatus(EndState::kInternal,
                      std::string("send ") + FrameTypeName(type) +
                          ": expected a payload of at most " +
                          std::to_string(kMaxPayloadBytes) + " bytes, found " +
                          std::to_string(payload_bytes));
  }

  WaitDeadline deadline(limit);
  if (!send_turn_.Take(&deadline)) {
    return deadline.Timeout("peer " + peer() + ": wait for another sender");
  }
  const TurnGiver giver(&send_turn_);
  if (send_broken_) {
    return PeerGone("peer " + peer() +
                    ": an earlier frame was sent only in part");
  }
  EncodeFrameHeader(type, next_send_sequence_, gathered.data() + 1, used - 1,
                    header.data(), digest, flags);
  const Status status = connection_->Write(gathered.data(), used, limit);
  if (!status.ok()) {
    send_broken_ = true;
    return status;
  }
  ++next_send_sequence_;
  bytes_sent_ += kFrameHeaderBytes + payload_bytes;
  return status;
}

Status Channel::Receive(const WaitLimit& limit, Frame* frame) {
  return ReceivePayload(limit, nullptr, frame);
}

Status Channel::ReceiveType(FrameType type, const WaitLimit& limit,
                            Frame* frame) {
  FrameHeader header;
  RETURN_IF_ERROR(ReceiveHeaderOf(FrameTypeName(type), limit, &header));
  RETURN_IF_ERROR(ReceivePayload(limit, nullptr, frame));
  return ExpectType(*frame, type);
}

Status Channel::ReceiveHeader(const WaitLimit& limit, FrameHeader* header) {
  return ReceiveHeaderOf(nullptr, limit, header);
}

Status Channel::ReceiveHeaderOf(const char* expected, const WaitLimit& limit,
                                FrameHeader* header) {
  if (receive_broken_) {
    return MakeStatus(EndState::kCorrupt,
                      "peer " + peer() +
                          ": an earlier frame was truncated or damaged");
  }
  const Status status = FillHeader(expected, limit);
  return status.ok() ? CheckHeader(header) : status;
}

Status Channel::ReceivePayload(const WaitLimit& limit, char* into,
                               Frame* frame) {
  FrameHeader header;
  RETURN_IF_ERROR(ReceiveHeaderOf(nullptr, limit, &header));
  const std::array<char, kFrameHeaderBytes> header_bytes = header_;
  header_bytes_ = 0;
  Status status = ReadPayload(header, into, limit);
  const Slice payload(into != nullptr ? into : receive_buffer_.data(),
                      header.payload_bytes);
  if (status.ok()) {
    status = Explain(CheckFrameDigest(header_bytes.data(), header, payload),
                     header.type);
  }
  if (!status.ok()) {
    receive_broken_ = true;
    return status;
  }
  ++next_receive_sequence_;
  frame_offset_ += kFrameHeaderBytes + header.payload_bytes;
  frame->type = header.type;
  frame->flags = header.flags;
  frame->digest = header.digest;
  frame->payload = payload;
  return Status::OK();
}

Status Channel::FillHeader(const char* expected, const WaitLimit& limit) {
  // First reads only the magic. A peer that uses another protocol may send
  // fewer bytes than a header and then wait for an answer.
  for (const size_t wanted : {kMagicBytes, kFrameHeaderBytes}) {
    if (header_bytes_ < wanted) {
      size_t got = 0;
      const Status status = ReadAtLeast(
          header_.data() + header_bytes_, wanted - header_bytes_,
          kFrameHeaderBytes - header_bytes_, limit, &got);
      header_bytes_ += got;
      if (!status.ok()) {
        return IsLost(status) ? CutInHeader(status, expected) : status;
      }
    }  // else the read of the last payload also got these bytes
    if (!MayBeginFrame(header_.data())) {
      // Completes the header with zeros, because the decoder needs a whole
      // header. The decoder then reports the wrong magic.
      std::fill(header_.begin() + static_cast<ptrdiff_t>(header_bytes_),
                header_.end(), '\0');
      header_bytes_ = kFrameHeaderBytes;
    }
  }
  return Status::OK();
}

Status Channel::CutInHeader(const Status& status,
                            const char* expected) const {
  if (header_bytes_ > 0) {
    return PeerGone(MessageOf(status) + ", expected " +
                    std::to_string(kFrameHeaderBytes) +
                    " bytes of frame header, found " +
                    std::to_string(header_bytes_) + ", offset " +
                    std::to_string(frame_offset_));
  }
  return PeerGone(MessageOf(status) + ", expected a " +
                  (expected == nullptr ? "" : std::string(expected) + " ") +
                  "frame");
}

Status Channel::CheckHeader(FrameHeader* header) const {
  const std::string where =
      "peer " + peer() + ", stream offset " + std::to_string(frame_offset_);
  const Status status =
      DecodeFrameHeader(Slice(header_.data(), header_.size()), header);
  if (!status.ok()) {
    const bool stranger = frame_offset_ == 0 && !MayBeginFrame(header_.data());
    if (stranger && LooksLikeTls(header_.data())) {
      return MakeStatus(EndState::kDenied,
                        where + ": expected a frame, found TLS; this side was "
                        "started without --tls-cert, --tls-key and --tls-ca");
    }
    return MakeStatus(EndStateOf(status),
                      where + ": " + MessageOf(status) +
                          (stranger ? "; is sstferry at the other end?" : ""));
  }
  if (header->sequence != next_receive_sequence_) {
    return MakeStatus(EndState::kCorrupt,
                      where + ": " + FrameTypeName(header->type) +
                          " frame: expected sequence " +
                          std::to_string(next_receive_sequence_) +
                          ", found " + std::to_string(header->sequence) +
                          "; a frame was dropped, repeated or swapped");
  }
  if (header->payload_bytes > max_payload_bytes_) {
    return MakeStatus(EndState::kCorrupt,
                      where + ": " + FrameTypeName(header->type) +
                          " frame: expected at most " +
                          std::to_string(max_payload_bytes_) +
                          " bytes of payload at this point, found " +
                          std::to_string(header->payload_bytes));
  }
  if ((header->flags & kMandatoryFrameFlags & ~allowed_flags_) != 0) {
    return MakeStatus(EndState::kCorrupt,
                      where + ": " + FrameTypeName(header->type) +
                          " frame: found flags " +
                          std::to_string(header->flags) +
                          ", some of which were not agreed on");
  }
  return status;
}

// Reads a payload of `bytes` bytes into receive_buffer_. The buffer grows to at
// most twice the number of received bytes, and never shrinks. The last read may
// also get the start of the next header.
Status Channel::ReadGrowing(size_t bytes, const WaitLimit& limit,
                            size_t* got) {
  Status status;
  do {
    const size_t room = std::min(bytes + kFrameHeaderBytes,
                                 std::max({2 * *got, kMinBufferBytes,
                                           receive_buffer_.size()}));
    if (receive_buffer_.size() < room) {
      receive_buffer_.reserve(room);
      receive_buffer_.resize(room);
    }
    const size_t until = std::min(bytes, room);
    const size_t capacity = until == bytes ? bytes + kFrameHeaderBytes : until;
    size_t now = 0;
    if (*got < until) {
      status = ReadAtLeast(receive_buffer_.data() + *got, until - *got,
                           std::min(capacity, room) - *got, limit, &now);
    }
    *got += now;
  } while (status.ok() && *got < bytes);
  return status;
}

Status Channel::ReadPayload(const FrameHeader& header, char* into,
                            const WaitLimit& limit) {
  const size_t payload_bytes = header.payload_bytes;
  if (payload_bytes == 0) {
    return Status::OK();
  }
  size_t got = 0;
  const Status status =
      into != nullptr
          ? ReadAtLeast(into, payload_bytes, payload_bytes, limit, &got)
          : ReadGrowing(payload_bytes, limit, &got);
  const char* const buffer = into != nullptr ? into : receive_buffer_.data();
  if (!status.ok()) {
    const std::string text =
        MessageOf(status) + ", expected " + std::to_string(payload_bytes) +
        " bytes of " + FrameTypeName(header.type) + ", found " +
        std::to_string(got) + ", stream offset " +
        std::to_string(frame_offset_);
    return IsLost(status) ? PeerGone(text)
                          : MakeStatus(EndStateOf(status), text);
  }
  header_bytes_ = got - payload_bytes;
  memcpy(header_.data(), buffer + payload_bytes, header_bytes_);
  return Status::OK();
}

Status Channel::ReadAtLeast(char* buffer, size_t bytes, size_t capacity,
                            const WaitLimit& limit, size_t* got) {
  *got = 0;
  while (*got < bytes) {
    size_t now = 0;
    RETURN_IF_ERROR(
        connection_->Read(buffer + *got, capacity - *got, limit, &now));
    if (now == 0) {
      return PeerGone("peer " + peer() + ": closed the connection");
    }
    *got += now;
    bytes_received_ += now;
    last_received_micros_ = SteadyMicros();
  }
  return Status::OK();
}

Status Channel::Explain(const Status& status, FrameType type) const {
  return WithContext(status, EndState::kCorrupt,
                     "peer " + peer() + ", " + FrameTypeName(type) +
                         " frame " +
                         std::to_string(next_receive_sequence_));
}

Status Channel::ExpectType(const Frame& frame, FrameType type) const {
  if (frame.type == type) {
    return Status::OK();
  }
  const std::string expected =
      std::string("expected a ") + FrameTypeName(type) + " frame, found ";
  if (frame.type != FrameType::kEnd) {
    return MakeStatus(EndState::kCorrupt, "peer " + peer() + ": " + expected +
                                              FrameTypeName(frame.type));
  }
  End end;
  const Status decoded = Decode(frame.payload, &end);
  if (!decoded.ok()) {
    return Explain(decoded, frame.type);
  }
  if (end.state == EndState::kOk) {
    return MakeStatus(EndState::kCorrupt,
                      "peer " + peer() + ": " + expected + "End with OK");
  }
  std::string next;
  std::string text = Printable(SplitNext(end.message, &next));
  next = Printable(next);
  // The message may name a command to run next (`next`). If the peer is in
  // another process, only shows the command in the text: the command may be
  // meant for the peer's machine, or may come from an unknown peer.
  if (!is_in_process() && !next.empty()) {
    text += "; next: " + std::exchange(next, "");
  }
  if (!end.where.empty()) {
    text += " (" + Printable(end.where) + ")";
  }
  text = "peer " + peer() + ": " + text;
  return MakeStatus(end.state, text, next);
}

}  // namespace sstferry
