#include "pipeline/wire/multiplexer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "format/stream_frame.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/wire/stream_channels.h"
#include "pipeline/wire/tcp_socket.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Maximum number of bytes that one read(2) gets. Several frames fit.
constexpr size_t kStreamReadBytes = 256u << 10;

// Reads a stream until it ends, and passes the received bytes to its channels.
//
// Threads: one.
class StreamReader {
 public:
  StreamReader(int fd, const WakeSignal* stop, StreamChannels* channels,
               const MultiplexerOptions& options)
      : fd_(fd),
        stop_(stop),
        channels_(channels),
        options_(options),
        parser_(channels),
        buffer_(kStreamReadBytes) {}

  // Reads the stream. Returns the reason why the stream ended, which is never
  // OK.
  Status Run() {
    size_t left = 0;  // unparsed bytes at the front of buffer_
    while (true) {
      size_t got = 0;
      RETURN_IF_ERROR(ReadSome(left, &got));
      Slice buffered(buffer_.data(), left + got);
      RETURN_IF_ERROR(got > 0 ? parser_.Take(&buffered)
                              : parser_.Close(buffered));
      left = buffered.size();
      memmove(buffer_.data(), buffered.data(), left);
    }
  }
  bool greeted() const { return parser_.greeted(); }

 private:
  Status ReadSome(size_t offset, size_t* got);
  Status WaitForBytes();

  const int fd_;
  const WakeSignal* const stop_;
  StreamChannels* const channels_;
  const MultiplexerOptions& options_;
  StreamParser parser_;
  std::vector<char> buffer_;
};

Status StreamReader::WaitForBytes() {
  WaitLimit limit = WaitLimit::Forever();
  if (options_.silence_limit.count() > 0) {
    limit.idle = options_.silence_limit;
  }
  WaitDeadline deadline(limit);
  const PollResult result = PollSocket(fd_, POLLIN, stop_, &deadline);
  if (result == PollResult::kTimedOut) {
    return deadline.Timeout("peer " + options_.peer + ": read");
  }
  const int error = channels_->write_error();
  if (result == PollResult::kWoken) {
    return error == 0 ? ClosedHere("peer " + options_.peer)
                      : PeerGone("peer " + options_.peer +
                                 ": write: " + ErrorText(error));
  }
  return Status::OK();
}

Status StreamReader::ReadSome(size_t offset, size_t* got) {
  while (true) {
    const ssize_t bytes =
        read(fd_, buffer_.data() + offset, buffer_.size() - offset);
    // A reset counts as the end of the data. The kernel resets the socket if
    // the program at its other end exits before it has read all of its input.
    if (bytes >= 0 || errno == ECONNRESET) {
      *got = bytes > 0 ? static_cast<size_t>(bytes) : 0;
      return Status::OK();
    }
    if (errno == EAGAIN) {
      RETURN_IF_ERROR(WaitForBytes());
    } else if (errno != EINTR) {
      return PeerGone("peer " + options_.peer + ": read: " + ErrorText(errno));
    }
  }
}

// Writes the frames of a stream.
//
// Threads: one.
class StreamWriter {
 public:
  StreamWriter(int fd, const WakeSignal* stop) : fd_(fd), stop_(stop) {}

  // Writes all parts. Returns false if a write failed, or if `stop_` was
  // raised.
  bool Write(const Slice* parts, size_t count) {
    std::array<iovec, 6> left{};
    size_t used = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!parts[i].empty()) {
        left[used++] = {const_cast<char*>(parts[i].data()), parts[i].size()};
      }
    }
    for (size_t at = 0; at < used;) {
      const ssize_t sent = WriteSome(&left[at], used - at);
      if (sent < 0 && !WaitForRoom()) {
        return false;
      }
      for (size_t gone = sent < 0 ? 0 : static_cast<size_t>(sent); gone > 0;) {
        const size_t part = std::min(gone, left[at].iov_len);
        left[at].iov_base = static_cast<char*>(left[at].iov_base) + part;
        left[at].iov_len -= part;
        gone -= part;
        at += left[at].iov_len == 0 ? 1 : 0;
      }
    }
    return true;
  }
  // Returns the errno of the write that failed; 0 if no write failed.
  int error() const { return error_; }

 private:
  // Writes as many bytes as the descriptor accepts. Uses sendmsg() for a
  // socket: if the peer no longer reads, sendmsg() returns an error and causes
  // no SIGPIPE.
  ssize_t WriteSome(iovec* parts, size_t count) {
    ssize_t sent = -1;
    if (is_socket_) {
      msghdr message{};
      message.msg_iov = parts;
      message.msg_iovlen = count;
      sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
      is_socket_ = sent >= 0 || errno != ENOTSOCK;
    }
    return is_socket_ ? sent : writev(fd_, parts, static_cast<int>(count));
  }

  // Handles the errno of a write that wrote nothing; waits if it is EAGAIN.
  // Returns false if the write must not be tried again, or if `stop_` was
  // raised.
  bool WaitForRoom() {
    if (errno == EAGAIN) {
      WaitDeadline forever(WaitLimit::Forever());
      return PollSocket(fd_, POLLOUT, stop_, &forever) == PollResult::kReady;
    }
    error_ = errno == EINTR ? 0 : errno;
    return error_ == 0;
  }

  const int fd_;
  const WakeSignal* const stop_;
  bool is_socket_ = true;
  int error_ = 0;
};

class ChannelConnection final : public Connection {
 public:
  ChannelConnection(std::shared_ptr<StreamChannels> channels,
                    std::shared_ptr<StreamChannel> channel,
                    std::shared_ptr<void> keeps)
      : keeps_(std::move(keeps)),
        channels_(std::move(channels)),
        channel_(std::move(channel)) {}
  ~ChannelConnection() override { channels_->Close(channel_); }

  Status Read(char* buffer, size_t capacity, const WaitLimit& limit,
              size_t* bytes) override {
    return channels_->Read(channel_, buffer, capacity, limit, bytes);
  }
  Status Write(const Slice* parts, size_t part_count,
               const WaitLimit& limit) override {
    return channels_->Write(channel_, parts, part_count, limit);
  }
  void Close() override { channels_->Close(channel_); }
  const std::string& peer() const override { return channels_->peer(); }

 private:
  const std::shared_ptr<void> keeps_;
  const std::shared_ptr<StreamChannels> channels_;
  const std::shared_ptr<StreamChannel> channel_;
};

void SetNonBlocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

Status Multiplexer::Start(Descriptor in, Descriptor out,
                          const MultiplexerOptions& options,
                          std::unique_ptr<Multiplexer>* multiplexer) {
  std::unique_ptr<Multiplexer> made(new Multiplexer);
  made->channels_ = std::make_shared<StreamChannels>(options);
  made->in_ = std::move(in);
  made->out_ = std::move(out);
  made->stop_reading_ = std::make_unique<WakeSignal>();
  made->stop_writing_ = std::make_unique<WakeSignal>();
  const int read_fd = made->in_.get();
  const int write_fd = made->out_.is_open() ? made->out_.get() : read_fd;
  SetNonBlocking(read_fd);
  SetNonBlocking(write_fd);
  const auto channels = made->channels_;
  WakeSignal* const stop_reading = made->stop_reading_.get();
  const WakeSignal* const stop_writing = made->stop_writing_.get();
  RETURN_IF_ERROR(StartThread(
      [channels, options, read_fd, stop_reading] {
        StreamReader reader(read_fd, stop_reading, channels.get(), options);
        Status status = reader.Run();
        if (options.explain_end && EndStateOf(status) == EndState::kDeadPeer) {
          status = options.explain_end(status, reader.greeted());
        }
        channels->End(status);
      },
      &made->reader_));
  RETURN_IF_ERROR(StartThread(
      [channels, options, write_fd, stop_writing, stop_reading] {
        StreamWriter writer(write_fd, stop_writing);
        std::array<char, kStreamHelloBytes> hello{};
        EncodeStreamHello({options.credit_bytes}, hello.data());
        const Slice greeting(hello.data(), hello.size());
        bool writes = writer.Write(&greeting, 1);
        StreamChannels::Sending turn;
        while (writes && channels->NextTurn(&turn)) {
          writes = writer.Write(turn.parts.data(), turn.part_count);
          channels->EndTurn(turn);
        }
        channels->WriterEnded(writer.error());
        if (writer.error() != 0) {
          // Wakes the reading thread. The thread first reads all bytes that
          // have arrived, and then stops.
          stop_reading->Raise();
        }
      },
      &made->writer_));
  *multiplexer = std::move(made);
  return Status::OK();
}

Multiplexer::~Multiplexer() {
  Finish(std::chrono::milliseconds(0), std::chrono::milliseconds(0));
}

Status Multiplexer::AwaitHello(const WaitLimit& limit) {
  return channels_->AwaitHello(limit);
}

Status Multiplexer::Open(std::unique_ptr<Connection>* channel,
                         std::shared_ptr<void> keeps) {
  std::shared_ptr<StreamChannel> opened;
  RETURN_IF_ERROR(channels_->Open(&opened));
  *channel = std::make_unique<ChannelConnection>(channels_, std::move(opened),
                                                 std::move(keeps));
  return Status::OK();
}

Status Multiplexer::Accept(std::unique_ptr<Connection>* channel,
                           std::shared_ptr<void> keeps) {
  std::shared_ptr<StreamChannel> accepted;
  RETURN_IF_ERROR(channels_->Accept(&accepted));
  *channel = std::make_unique<ChannelConnection>(channels_, std::move(accepted),
                                                 std::move(keeps));
  return Status::OK();
}

void Multiplexer::StopWaiting() { channels_->StopWaiting(); }

bool Multiplexer::ended() const { return channels_->ended(); }

void Multiplexer::AwaitClosed(std::chrono::milliseconds limit) {
  channels_->AwaitClosed(limit);
}

void Multiplexer::Finish(std::chrono::milliseconds send_limit,
                         std::chrono::milliseconds end_limit) {
  if (writer_.joinable()) {
    channels_->Drain(send_limit);
    stop_writing_->Raise();
    writer_.join();
    if (out_.is_open()) {
      out_ = Descriptor();
    } else {
      shutdown(in_.get(), SHUT_WR);  // fails if the peer has closed
    }
  }
  if (reader_.joinable()) {
    channels_->AwaitEnd(end_limit);
    stop_reading_->Raise();
    reader_.join();
  }
  in_ = Descriptor();
}

}  // namespace sstferry
