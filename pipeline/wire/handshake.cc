// Sends and receives the first two frames of a connection, and sends its last
// frame.
#include <algorithm>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/wire/channel.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr std::chrono::milliseconds kEndLimit{1000};

std::string Versions(uint16_t oldest, uint16_t newest) {
  return std::to_string(oldest) +
         (oldest == newest ? "" : " to " + std::to_string(newest));
}

Status Refuse(Channel* channel, const Status& status) {
  SendEnd(channel, status, "handshake");
  return status;
}

}  // namespace

uint16_t CommonVersion(uint16_t oldest, uint16_t newest, uint16_t peer_oldest,
                       uint16_t peer_newest) {
  const uint16_t common = std::min(newest, peer_newest);
  return common >= std::max(oldest, peer_oldest) ? common : 0;
}

Status ClientHandshake(Channel* channel, const Hello& hello,
                       const WaitLimit& limit, HelloAck* ack) {
  RETURN_IF_ERROR(channel->Secure(limit));
  RETURN_IF_ERROR(channel->SendMessage(FrameType::kHello, hello, limit));
  channel->LimitPayload(kMaxHandshakeBytes);
  const Status status =
      channel->ReceiveMessage(FrameType::kHelloAck, limit, ack);
  channel->LimitPayload(kMaxPayloadBytes);
  if (status.IsTimedOut()) {
    return MakeStatus(EndState::kDeadPeer,
                      MessageOf(status) + ", expected HelloAck; is sstferry "
                                          "at the other end?");
  }
  RETURN_IF_ERROR(status);
  const std::string who =
      "peer " + channel->peer() + " (" + ack->software + "): ";
  if (ack->version < hello.oldest_version ||
      ack->version > hello.newest_version) {
    return Refuse(
        channel,
        MakeStatus(EndState::kIncompatible,
                   who + "protocol version: expected " +
                       Versions(hello.oldest_version, hello.newest_version) +
                       ", found " + std::to_string(ack->version)));
  }
  if ((ack->features & ~hello.features) != 0) {
    return Refuse(channel,
                  MakeStatus(EndState::kIncompatible,
                             who + "features: expected a subset of " +
                                 std::to_string(hello.features) + ", found " +
                                 std::to_string(ack->features)));
  }
  return Status::OK();
}

Status ServerHandshake(Channel* channel, const std::string& software,
                       const std::string& rocksdb_version,
                       const WaitLimit& limit, Hello* hello, HelloAck* ack) {
  const Status secured = channel->Secure(limit);
  if (!secured.ok() && channel->identity() == nullptr) {
    return secured;  // the peer could not read an End frame
  }
  channel->LimitPayload(kMaxHandshakeBytes);
  Status status = channel->ReceiveMessage(FrameType::kHello, limit, hello);
  channel->LimitPayload(kMaxPayloadBytes);
  if (!secured.ok()) {
    // Refuses the peer only after its Hello has arrived: the peer sends the
    // Hello before it reads an End frame.
    status = secured;
  }
  if (!status.ok()) {
    return Refuse(channel, status);
  }
  const uint16_t version =
      CommonVersion(kOldestProtocolVersion, kProtocolVersion,
                    hello->oldest_version, hello->newest_version);
  if (version == 0) {
    return Refuse(
        channel,
        MakeStatus(
            EndState::kIncompatible,
            "no common protocol version: " + software + " speaks " +
                Versions(kOldestProtocolVersion, kProtocolVersion) + ", " +
                hello->software + " at " + channel->peer() + " speaks " +
                Versions(hello->oldest_version, hello->newest_version)));
  }
  ack->version = version;
  ack->features = kSupportedFeatures & hello->features;
  ack->software = software;
  ack->rocksdb_version = rocksdb_version;
  return channel->SendMessage(FrameType::kHelloAck, *ack, limit);
}

void SendEnd(Channel* channel, const Status& status,
             const std::string& where) {
  End end;
  end.state = EndStateOf(status);
  if (!status.ok()) {
    end.message = JoinNext(SentenceOf(status), NextOf(status));
    if (end.message.size() > kMaxMessageTextBytes) {
      // Sends the message without its command. If the end of a command were
      // missing, it would be another command.
      end.message = SentenceOf(status).substr(0, kMaxMessageTextBytes);
    }
  }
  end.where = where.substr(0, kMaxMessageTextBytes);
  // Ignores errors: if the connection has failed, the peer cannot be informed.
  channel->SendMessage(FrameType::kEnd, end, WaitLimit::Within(kEndLimit))
      .PermitUncheckedError();
}

}  // namespace sstferry
