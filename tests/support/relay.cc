#include "tests/support/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <stdexcept>

namespace sstferry {
namespace {

constexpr size_t kReadBytes = 64u << 10;
// Most bytes that are queued in one direction of one connection: 20 ms at 3
// GB/s.
constexpr size_t kMaxQueuedBytes = 64u << 20;
// The same limit while there is weather: about what two socket buffers hold.
constexpr size_t kMaxQueuedInWeather = 4u << 20;
constexpr size_t kSmallPiece = 1000;
// A limited rate forwards steps of this size.
constexpr size_t kRatedBytes = 8u << 10;

sockaddr_in Loopback(const HostPort& where) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(where.port);
  if (inet_pton(AF_INET, where.host.c_str(), &address.sin_addr) != 1) {
    throw std::runtime_error("relay: expected an IPv4 address, found " +
                             where.host);
  }
  return address;
}

void SetNoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Makes a close of the socket reset the connection.
void SetResetOnClose(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

bool SendAll(int fd, const std::string& data) {
  for (size_t done = 0; done < data.size();) {
    const ssize_t sent =
        send(fd, data.data() + done, data.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    done += static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

// Queued bytes. An empty piece is the end of the stream.
struct Relay::Piece {
  Clock::time_point due;
  std::string data;
};

// One direction of one connection.
struct Relay::Flow {
  std::deque<Piece> queue;  // under mu_
  size_t queued_bytes = 0;  // under mu_
  std::thread reader;
  std::thread writer;
};

struct Relay::Link {
  int client_fd = -1;
  int target_fd = -1;
  bool dead = false;  // under mu_; the descriptors stay open until joined
  uint64_t bytes = 0;           // under mu_, in both directions
  uint64_t cut_at = kNever;     // compared with `bytes`
  uint64_t leave_at = kNever;   // compared with the relay's passed_
  Flow flows[2];

  int from(Direction d) const { return d == kToTarget ? client_fd : target_fd; }
  int to(Direction d) const { return d == kToTarget ? target_fd : client_fd; }
};

Relay::Relay(const HostPort& target, uint16_t port) : target_(target) {
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  const int on = 1;
  setsockopt(listen_fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = Loopback({"127.0.0.1", port});
  socklen_t length = sizeof(address);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (listen_fd_ < 0 || wake_fd_ < 0 || bind(listen_fd_, raw, length) != 0 ||
      listen(listen_fd_, 128) != 0 ||
      getsockname(listen_fd_, raw, &length) != 0) {
    throw std::runtime_error("relay: no listening socket");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { AcceptLoop(); });
}

Relay::~Relay() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
    ResetAllLocked();
  }
  eventfd_write(wake_fd_, 1);
  acceptor_.join();
  for (const auto& link : links_) {
    for (Flow& flow : link->flows) {
      flow.reader.join();
      flow.writer.join();
    }
    close(link->client_fd);
    close(link->target_fd);
  }
  close(listen_fd_);
  close(wake_fd_);
}

void Relay::AcceptLoop() {
  for (;;) {
    pollfd watched[2] = {{listen_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    poll(watched, 2, -1);
    if (watched[1].revents != 0) {
      return;
    }
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      StartLink(fd);
    }
  }
}

void Relay::StartLink(int client_fd) {
  const int target_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(target_);
  const bool connected =
      connect(target_fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0;
  std::lock_guard<std::mutex> lock(mu_);
  bool cut = refuse_ || stopping_ || !connected;
  for (const Control& control : controls_) {
    cut = cut || control.forwarded >= control.cut_after;
  }
  SetResetOnClose(client_fd);
  SetResetOnClose(target_fd);
  if (cut) {
    close(client_fd);
    close(target_fd);
    return;
  }
  SetNoDelay(client_fd);
  SetNoDelay(target_fd);
  links_.push_back(std::make_unique<Link>());
  Link* const link = links_.back().get();
  link->client_fd = client_fd;
  link->target_fd = target_fd;
  if (has_weather_) {
    const uint64_t least = weather_.least_cut_bytes;
    const uint64_t most = weather_.most_cut_bytes;
    link->cut_at = Between(least, most);
    link->leave_at = passed_ + 4 * Between(least, most);
  }
  for (const Direction direction : {kToTarget, kToClient}) {
    Flow& flow = link->flows[direction];
    flow.reader = std::thread([=, this] { ReadLoop(link, direction); });
    flow.writer = std::thread([=, this] { WriteLoop(link, direction); });
  }
  changed_.notify_all();
}

bool Relay::WaitOutStall(Link* link, Direction direction) {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [&] {
    return link->dead ||
           (!controls_[direction].stall &&
            link->flows[direction].queued_bytes <
                (has_weather_ ? kMaxQueuedInWeather : kMaxQueuedBytes));
  });
  return !link->dead;
}

void Relay::ReadLoop(Link* link, Direction direction) {
  Flow& flow = link->flows[direction];
  std::string buffer(kReadBytes, '\0');
  while (WaitOutStall(link, direction)) {
    const ssize_t got =
        recv(link->from(direction), buffer.data(), buffer.size(), 0);
    std::lock_guard<std::mutex> lock(mu_);
    if (got < 0) {
      ResetLink(link);  // as the sender did
      return;
    }
    const auto due = Clock::now() + controls_[direction].delay;
    flow.queue.push_back({due, buffer.substr(0, static_cast<size_t>(got))});
    flow.queued_bytes += static_cast<size_t>(got);
    changed_.notify_all();
    if (got == 0) {
      return;
    }
  }
}

void Relay::WriteLoop(Link* link, Direction direction) {
  Flow& flow = link->flows[direction];
  for (;;) {
    Piece piece;
    {
      std::unique_lock<std::mutex> lock(mu_);
      changed_.wait(lock, [&] { return link->dead || !flow.queue.empty(); });
      if (link->dead) {
        return;
      }
      piece = std::move(flow.queue.front());
      flow.queue.pop_front();
      changed_.wait_until(lock, piece.due, [&] { return link->dead; });
    }
    if (piece.data.empty()) {
      shutdown(link->to(direction), SHUT_WR);
      return;
    }
    const size_t bytes = piece.data.size();
    for (size_t done = 0; done < bytes; done += kRatedBytes) {
      std::string step = piece.data.substr(done, kRatedBytes);
      if (!Forward(link, direction, &step)) {
        return;
      }
    }
    std::lock_guard<std::mutex> lock(mu_);
    flow.queued_bytes -= bytes;
    changed_.notify_all();
  }
}

// Applies the controls to one step and sends it. Returns false to end the flow.
bool Relay::Forward(Link* link, Direction direction, std::string* data) {
  bool cut = false;
  bool cut_link = false;
  {
    std::unique_lock<std::mutex> lock(mu_);
    Control& control = controls_[direction];
    changed_.wait(lock, [&] { return link->dead || !control.stall; });
    if (control.bytes_per_sec != 0) {
      const auto start = std::max(control.rate_free_at, Clock::now());
      control.rate_free_at =
          start + std::chrono::nanoseconds(data->size() * 1'000'000'000 /
                                           control.bytes_per_sec);
      changed_.wait_until(lock, start, [&] { return link->dead; });
    }
    if (link->dead) {
      return false;
    }
    if (control.drop) {
      return true;
    }
    const uint64_t at = control.forwarded;
    const uint64_t left = control.cut_after - std::min(at, control.cut_after);
    cut = left <= data->size();
    data->resize(std::min<uint64_t>(data->size(), left));
    if (control.flip_at >= at && control.flip_at < at + data->size()) {
      char& byte = (*data)[control.flip_at - at];
      byte = static_cast<char>(byte ^ control.flip_mask);
    }
    if (has_weather_ && !PassWeather(link, &lock, data, &cut_link)) {
      return false;
    }
    control.forwarded += data->size();
    changed_.notify_all();
  }
  const bool sent = SendAll(link->to(direction), *data);
  std::lock_guard<std::mutex> lock(mu_);
  if (cut) {
    ResetAllLocked();
  } else if (!sent || cut_link) {
    ResetLink(link);
  }
  return sent && !cut && !cut_link;
}

uint64_t Relay::Between(uint64_t least, uint64_t most) {
  return std::uniform_int_distribution<uint64_t>(least, most)(random_);
}

// Applies the weather to one step. Returns false if the connection was lost
// during a stall.
bool Relay::PassWeather(Link* link, std::unique_lock<std::mutex>* lock,
                        std::string* data, bool* cut) {
  passed_ += data->size();
  link->bytes += data->size();
  if (passed_ >= stall_at_) {
    stall_at_ = passed_ + Between(1, 2 * weather_.stall_every_bytes);
    damage_.stalls++;
    const auto most = static_cast<uint64_t>(weather_.longest_stall.count());
    changed_.wait_for(*lock, std::chrono::milliseconds(Between(1, most)),
                      [&] { return link->dead; });
    if (link->dead) {
      return false;
    }
  }
  const bool small = data->size() < kSmallPiece;
  if (passed_ >= flip_at_ && (small || !flip_small_) && !data->empty()) {
    flip_at_ = passed_ + Between(1, 2 * weather_.flip_every_bytes);
    flip_small_ = Between(0, 3) == 0;
    damage_.flips++;
    char& byte = (*data)[Between(0, data->size() - 1)];
    byte = static_cast<char>(byte ^ static_cast<int>(Between(1, 255)));
  }
  if (link->bytes >= link->cut_at || passed_ >= link->leave_at) {
    damage_.cuts++;
    *cut = true;
    data->resize(Between(0, data->size()));
  }
  return true;
}

void Relay::SetWeather(const Weather& weather) {
  std::lock_guard<std::mutex> lock(mu_);
  has_weather_ = true;
  weather_ = weather;
  random_.seed(weather.seed);
  flip_at_ = passed_ + Between(1, 2 * weather.flip_every_bytes);
  stall_at_ = passed_ + Between(1, 2 * weather.stall_every_bytes);
}

void Relay::EndWeather() {
  std::lock_guard<std::mutex> lock(mu_);
  has_weather_ = false;
  changed_.notify_all();
}

Relay::Damage Relay::damage() const {
  std::lock_guard<std::mutex> lock(mu_);
  return damage_;
}

void Relay::ResetLink(Link* link) {
  if (!link->dead) {
    link->dead = true;
    // On Linux, connecting to AF_UNSPEC resets a socket without closing it.
    sockaddr nowhere{};
    nowhere.sa_family = AF_UNSPEC;
    for (const int fd : {link->client_fd, link->target_fd}) {
      connect(fd, &nowhere, sizeof(nowhere));
      shutdown(fd, SHUT_RDWR);
    }
    changed_.notify_all();
  }
}

void Relay::ResetAllLocked() {
  for (const auto& link : links_) {
    ResetLink(link.get());
  }
}

void Relay::SetDelay(Direction direction, std::chrono::microseconds delay) {
  std::lock_guard<std::mutex> lock(mu_);
  controls_[direction].delay = delay;
}

void Relay::SetRate(Direction direction, uint64_t bytes_per_sec) {
  std::lock_guard<std::mutex> lock(mu_);
  controls_[direction].bytes_per_sec = bytes_per_sec;
  controls_[direction].rate_free_at = Clock::now();
}

void Relay::CutAfter(Direction direction, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mu_);
  controls_[direction].cut_after = bytes;
  if (controls_[direction].forwarded >= bytes) {
    ResetAllLocked();
  }
}

void Relay::FlipAt(Direction direction, uint64_t offset, uint8_t mask) {
  std::lock_guard<std::mutex> lock(mu_);
  controls_[direction].flip_at = offset;
  controls_[direction].flip_mask = mask;
}

void Relay::SetDrop(Direction direction, bool drop) {
  std::lock_guard<std::mutex> lock(mu_);
  controls_[direction].drop = drop;
}

void Relay::SetStall(Direction direction, bool stall) {
  std::lock_guard<std::mutex> lock(mu_);
  controls_[direction].stall = stall;
  changed_.notify_all();
}

void Relay::HalfClose(Direction direction) {
  std::lock_guard<std::mutex> lock(mu_);
  for (const auto& link : links_) {
    if (!link->dead) {
      shutdown(link->to(direction), SHUT_WR);
    }
  }
}

void Relay::ResetAll() {
  std::lock_guard<std::mutex> lock(mu_);
  ResetAllLocked();
}

void Relay::SetRefuse(bool refuse) {
  std::lock_guard<std::mutex> lock(mu_);
  refuse_ = refuse;
}

uint64_t Relay::bytes(Direction direction) const {
  std::lock_guard<std::mutex> lock(mu_);
  return controls_[direction].forwarded;
}

size_t Relay::connections() const {
  std::lock_guard<std::mutex> lock(mu_);
  return links_.size();
}

bool Relay::WaitForBytes(Direction direction, uint64_t bytes,
                         std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mu_);
  return changed_.wait_for(lock, limit, [&] {
    return controls_[direction].forwarded >= bytes;
  });
}

bool Relay::WaitForConnections(size_t count,
                               std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mu_);
  return changed_.wait_for(lock, limit,
                           [&] { return links_.size() >= count; });
}

}  // namespace sstferry
