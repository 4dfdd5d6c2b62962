#include "pipeline/wire/tcp_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Status;

WakeSignal::WakeSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

WakeSignal::~WakeSignal() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void WakeSignal::Raise() {
  raised_.store(true);
  if (fd_ >= 0) {
    // This call fails only if the counter is full. Then the descriptor is
    // readable already.
    eventfd_write(fd_, 1);
  }
}

std::string AddressText(const TcpAddress& address) {
  char host[NI_MAXHOST] = "?";
  char port[NI_MAXSERV] = "0";
  getnameinfo(address.get(), address.size, host, sizeof(host), port,
              sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  return ToString(
      HostPort{host, static_cast<uint16_t>(std::strtoul(port, nullptr, 10))});
}

std::string ErrorText(int error_number) {
  std::string text = std::system_category().message(error_number);
  if (!text.empty()) {
    text[0] = static_cast<char>(
        std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

int FindAddresses(const std::string& host, uint16_t port, int flags,
                  std::vector<TcpAddress>* addresses) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return error;
  }
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    TcpAddress& address = addresses->emplace_back();
    address.size = std::min<socklen_t>(one->ai_addrlen, sizeof(address.bytes));
    std::memcpy(&address.bytes, one->ai_addr, address.size);
  }
  freeaddrinfo(found);
  return 0;
}

PollResult PollSocket(int fd, short events, const WakeSignal* wake,
                      WaitDeadline* deadline) {
  // Without a descriptor, poll(2) cannot report the signal. Look at its flag
  // ten times a second instead.
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
      // poll(2) had too little memory. Try again until the deadline.
      std::this_thread::yield();
      if (deadline->Expired()) {
        return PollResult::kTimedOut;
      }
    }
  }
}

namespace {

// A request to the name server. It runs on a thread of its own, because
// getaddrinfo(3) cannot be interrupted. That thread and the waiting thread
// share the object.
struct Question {
  HostPort where;
  int flags = 0;

  WakeSignal answered;
  std::mutex mu;
  int error = 0;                      // result of getaddrinfo(3), under mu
  std::vector<TcpAddress> addresses;  // under mu

  void Ask() {
    std::vector<TcpAddress> found;
    const int failure = FindAddresses(where.host, where.port, flags, &found);
    {
      std::lock_guard<std::mutex> lock(mu);
      error = failure;
      addresses = std::move(found);
    }
    answered.Raise();
  }
};

Status ResolveError(const std::string& host, int error) {
  std::string why = gai_strerror(error);
  if (error == EAI_NONAME || error == EAI_NODATA || error == EAI_SERVICE) {
    why = "unknown host name; is it spelled as in the name server?";
  } else if (error == EAI_AGAIN) {
    why = "the name server gave no answer";
  }
  return PeerGone("resolve " + host + ": " + why);
}

}  // namespace

Status Resolve(const HostPort& where, bool passive,
               const std::shared_ptr<WakeSignal>& wake, WaitDeadline* deadline,
               std::vector<TcpAddress>* addresses) {
  addresses->clear();
  if (FindAddresses(where.host, where.port, AI_NUMERICHOST, addresses) == 0) {
    return Status::OK();
  }
  auto question = std::make_shared<Question>();
  question->where = where;
  question->flags = passive ? AI_PASSIVE : 0;
  try {
    std::thread([question] { question->Ask(); }).detach();
  } catch (const std::system_error&) {
    return MakeStatus(EndState::kInternal,
                      "resolve " + where.host + ": cannot start a thread");
  }
  // The result of the request makes its descriptor readable. `wake` ends the
  // wait, too.
  const PollResult result = PollSocket(question->answered.fd(), POLLIN,
                                       wake.get(), deadline);
  if (result == PollResult::kWoken) {
    return ClosedHere("resolve " + where.host);
  }
  if (result == PollResult::kTimedOut) {
    return deadline->Timeout("resolve " + where.host);
  }
  std::lock_guard<std::mutex> lock(question->mu);
  if (question->addresses.empty()) {
    return ResolveError(where.host, question->error != 0 ? question->error
                                                         : EAI_NONAME);
  }
  *addresses = question->addresses;
  return Status::OK();
}

}  // namespace sstferry
