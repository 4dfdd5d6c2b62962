#include "pipeline/wire/tcp_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "format/end_state.h"

namespace sstferry {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using rocksdb::Status;

}  // namespace

WakeSignal::WakeSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

WakeSignal::~WakeSignal() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void WakeSignal::Raise() {
  raised_.store(true);
  if (fd_ >= 0) {
    // Fails only if the counter is full, and then the signal is already raised.
    eventfd_write(fd_, 1);
  }
}

asio::io_context& SocketContext() {
  // Never destroyed: sockets may outlive static destruction.
  static auto* const context = new asio::io_context(1);
  return *context;
}

std::string EndpointText(const tcp::endpoint& endpoint) {
  return ToString(HostPort{endpoint.address().to_string(), endpoint.port()});
}

std::string ErrorText(const boost::system::error_code& error) {
  std::string text = error.message();
  if (!text.empty()) {
    text[0] = static_cast<char>(
        std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

boost::system::error_code ErrnoCode(int error_number) {
  return {error_number, boost::system::system_category()};
}

PollResult PollSocket(int fd, short events, const WakeSignal* wake,
                      WaitDeadline* deadline) {
  // Without an eventfd, checks the flag ten times a second.
  const bool watch_flag = wake != nullptr && wake->fd() < 0;
  for (;;) {
    if (wake != nullptr && wake->raised()) {
      return PollResult::kWoken;
    }
    pollfd watched[2] = {{fd, events, 0},
                         {wake != nullptr ? wake->fd() : -1, POLLIN, 0}};
    int millis = deadline->PollMillis();
    if (watch_flag && millis > 100) {
      millis = 100;
    }
    const int ready = poll(watched, 2, millis);
    if (ready > 0 && watched[1].revents == 0) {
      return PollResult::kReady;
    }
    if (ready == 0 && deadline->Expired()) {
      return PollResult::kTimedOut;
    }
    if (ready < 0 && errno != EINTR) {
      // No memory for a poll: the socket call will report the error.
      std::this_thread::yield();
      if (deadline->Expired()) {
        return PollResult::kTimedOut;
      }
    }
  }
}

namespace {

// A request to the name server, on its own thread because getaddrinfo(3) cannot
// be interrupted. The last user frees it.
struct Question {
  std::string host;
  std::string port;
  tcp::resolver::flags flags{};

  WakeSignal answered;
  std::mutex mu;
  boost::system::error_code error;          // under mu
  std::vector<tcp::endpoint> endpoints;     // under mu

  void Ask() {
    boost::system::error_code failure;
    tcp::resolver resolver(SocketContext());
    const auto results = resolver.resolve(host, port, flags, failure);
    {
      std::lock_guard<std::mutex> lock(mu);
      error = failure;
      for (const auto& result : results) {
        endpoints.push_back(result.endpoint());
      }
    }
    answered.Raise();
  }
};

Status ResolveError(const std::string& host,
                    const boost::system::error_code& error) {
  std::string why = ErrorText(error);
  if (error == asio::error::host_not_found || error == asio::error::no_data ||
      error == asio::error::service_not_found) {
    why = "unknown host name; is it spelled as the name server has it?";
  } else if (error == asio::error::host_not_found_try_again) {
    why = "the name server gave no answer";
  }
  return PeerGone("resolve " + host + ": " + why);
}

}  // namespace

Status Resolve(const HostPort& where, bool passive,
               const std::shared_ptr<WakeSignal>& wake, WaitDeadline* deadline,
               std::vector<tcp::endpoint>* endpoints) {
  endpoints->clear();
  boost::system::error_code error;
  const auto address = asio::ip::make_address(where.host, error);
  if (!error) {
    endpoints->push_back({address, where.port});
    return Status::OK();
  }
  auto question = std::make_shared<Question>();
  question->host = where.host;
  question->port = std::to_string(where.port);
  question->flags = tcp::resolver::numeric_service;
  if (passive) {
    question->flags |= tcp::resolver::passive;
  }
  try {
    std::thread([question] { question->Ask(); }).detach();
  } catch (const std::system_error&) {
    return MakeStatus(EndState::kInternal,
                      "resolve " + where.host + ": no thread to ask with");
  }
  // The answer makes the "socket" ready; the caller's signal wakes the poll.
  const PollResult result = PollSocket(question->answered.fd(), POLLIN,
                                       wake.get(), deadline);
  if (result == PollResult::kWoken) {
    return ClosedHere("resolve " + where.host);
  }
  if (result == PollResult::kTimedOut) {
    return deadline->Timeout("resolve " + where.host);
  }
  std::lock_guard<std::mutex> lock(question->mu);
  if (question->error || question->endpoints.empty()) {
    return ResolveError(where.host, question->error
                                        ? question->error
                                        : asio::error::host_not_found);
  }
  *endpoints = question->endpoints;
  return Status::OK();
}

}  // namespace sstferry
