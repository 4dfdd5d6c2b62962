// A connection over a socket without TLS.
#include <poll.h>

#include <array>
#include <cerrno>
#include <optional>

#include "format/end_state.h"
#include "pipeline/wire/connected_socket.h"
#include "pipeline/wire/tcp_socket.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Maximum number of parts that one system call writes.
constexpr size_t kMaxGather = 64;

// Tracks how far the parts of one write were sent.
class Gatherer {
 public:
  Gatherer(const Slice* parts, size_t count) : parts_(parts), count_(count) {}

  // Fills buffers() with the parts that were not sent yet. Returns the number
  // of buffers; 0 means that everything was sent.
  size_t Next() {
    size_t used = 0;
    for (size_t i = at_; i < count_ && used < kMaxGather; ++i) {
      const size_t skip = i == at_ ? offset_ : 0;
      if (parts_[i].size() > skip) {
        buffers_[used++] = {const_cast<char*>(parts_[i].data()) + skip,
                            parts_[i].size() - skip};
      }
    }
    return used;
  }
  const iovec* buffers() const { return buffers_.data(); }

  void Advance(size_t bytes) {
    while (at_ < count_ && bytes >= parts_[at_].size() - offset_) {
      bytes -= parts_[at_].size() - offset_;
      ++at_;
      offset_ = 0;
    }
    offset_ += bytes;
  }

 private:
  const Slice* const parts_;
  const size_t count_;
  size_t at_ = 0;
  size_t offset_ = 0;
  std::array<iovec, kMaxGather> buffers_;
};

class PlainConnection final : public Connection {
 public:
  PlainConnection(Descriptor socket, std::string peer,
                  std::optional<PeerIdentity> identity, Status admitted)
      : socket_(std::move(socket), std::move(peer)),
        identity_(std::move(identity)),
        admitted_(std::move(admitted)) {}

  Status Handshake(const WaitLimit&) override { return admitted_; }
  const PeerIdentity* identity() const override {
    return identity_.has_value() ? &*identity_ : nullptr;
  }
  Status Read(char* buffer, size_t capacity, const WaitLimit& limit,
              size_t* bytes) override;
  Status Write(const Slice* parts, size_t part_count,
               const WaitLimit& limit) override;
  void Close() override { socket_.Close(); }
  const std::string& peer() const override { return socket_.peer(); }

 private:
  ConnectedSocket socket_;
  const std::optional<PeerIdentity> identity_;
  const Status admitted_;
};

Status PlainConnection::Read(char* buffer, size_t capacity,
                           const WaitLimit& limit, size_t* bytes) {
  *bytes = 0;
  const ConnectedSocket::Inside inside(&socket_);
  if (!inside.entered()) {
    return socket_.ClosedStatus();
  }
  WaitDeadline deadline(limit);
  for (;;) {
    int error = 0;
    *bytes = socket_.ReadSome(buffer, capacity, &error);
    if (error == 0) {
      return *bytes == 0 && socket_.closed() ? socket_.ClosedStatus()
                                             : Status::OK();
    }
    if (error != EAGAIN) {
      return socket_.Failed("read", error);
    }
    RETURN_IF_ERROR(socket_.Wait(POLLIN, "read", &deadline));
  }
}

Status PlainConnection::Write(const Slice* parts, size_t part_count,
                            const WaitLimit& limit) {
  const ConnectedSocket::Inside inside(&socket_);
  if (!inside.entered()) {
    return socket_.ClosedStatus();
  }
  WaitDeadline deadline(limit);
  Gatherer gatherer(parts, part_count);
  for (;;) {
    const size_t count = gatherer.Next();
    if (count == 0) {
      return Status::OK();
    }
    int error = 0;
    const size_t written = socket_.WriteSome(gatherer.buffers(), count,
                                             /*more=*/false, &error);
    if (error == 0) {
      gatherer.Advance(written);
      deadline.Progress();
      continue;
    }
    if (error != EAGAIN) {
      return socket_.Failed("write", error);
    }
    bool peer_ended = false;
    RETURN_IF_ERROR(socket_.WaitToWrite(&deadline, &peer_ended));
    if (peer_ended) {
      return socket_.Failed("write", EPIPE);
    }
  }
}

}  // namespace

std::unique_ptr<Connection> MakeTcpConnection(Descriptor socket,
                                              const TcpAddress& peer) {
  return std::make_unique<PlainConnection>(
      std::move(socket), AddressText(peer), std::nullopt, Status::OK());
}

std::unique_ptr<Connection> MakeUnixConnection(
    Descriptor socket, std::string peer, std::optional<PeerIdentity> identity,
    const Status& admitted) {
  return std::make_unique<PlainConnection>(
      std::move(socket), std::move(peer), std::move(identity), admitted);
}

}  // namespace sstferry
