// A TCP relay that misbehaves on request: the network of end-to-end tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sstferry/transport.h"

namespace sstferry {

// Listens on a free loopback port and forwards every connection to a target.
//
// Threads: every member from any thread, at any time; a change applies from the
//   next piece of bytes on. Four threads per connection.
// Bytes are counted per direction over all connections, in the order in which
//   they are forwarded; offsets are positions in that count. With one
//   connection, an offset is the position in its stream.
class Relay {
 public:
  enum Direction { kToTarget = 0, kToClient = 1 };
  static constexpr uint64_t kNever = UINT64_MAX;

  // Listens on `port`; 0: on a free port.
  explicit Relay(const HostPort& target, uint16_t port = 0);
  ~Relay();  // resets all connections
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  HostPort address() const { return {"127.0.0.1", port_}; }

  // Delays each byte by `delay`; does not limit the rate.
  void SetDelay(Direction direction, std::chrono::microseconds delay);
  // Limits the bytes per second over all connections; 0: no limit.
  void SetRate(Direction direction, uint64_t bytes_per_sec);
  // Forwards exactly `bytes` in all, then resets every connection, and every
  // new one, until called with kNever.
  void CutAfter(Direction direction, uint64_t bytes);
  // Flips bits of the one byte at `offset`.
  void FlipAt(Direction direction, uint64_t offset, uint8_t mask = 1);
  // Continues to read but forwards nothing, like a peer that vanished silently.
  void SetDrop(Direction direction, bool drop);
  // Neither reads nor forwards: back-pressure.
  void SetStall(Direction direction, bool stall);
  // The receiving end of `direction` sees an orderly end of stream on all
  // present connections; the other direction continues.
  void HalfClose(Direction direction);
  // Resets all present connections.
  void ResetAll();
  // Resets new connections at once, while set.
  void SetRefuse(bool refuse);

  // Random disturbances, which are chosen for each connection.
  struct Weather {
    uint64_t seed = 1;
    // A connection is reset after a number of its own bytes between these
    // limits. A connection with little traffic is reset after four times such a
    // number of bytes on all connections together.
    uint64_t least_cut_bytes = 0;
    uint64_t most_cut_bytes = 0;
    // One byte in this many is changed, on any connection in any direction;
    // every fourth time in a small piece (a request, an answer, a ping).
    uint64_t flip_every_bytes = 0;
    // Once in this many bytes, a connection forwards nothing for a while.
    uint64_t stall_every_bytes = 0;
    std::chrono::milliseconds longest_stall{0};
  };
  // Sets the weather of later connections.
  void SetWeather(const Weather& weather);
  void EndWeather();
  struct Damage {
    uint64_t cuts = 0;
    uint64_t flips = 0;
    uint64_t stalls = 0;
  };
  Damage damage() const;

  // Returns the number of bytes forwarded so far.
  uint64_t bytes(Direction direction) const;
  // Returns the number of connections accepted so far, without refused ones.
  size_t connections() const;
  // Wait for this number of bytes or connections; return false after `limit`.
  bool WaitForBytes(Direction direction, uint64_t bytes,
                    std::chrono::milliseconds limit =
                        std::chrono::milliseconds(60'000));
  bool WaitForConnections(size_t count,
                          std::chrono::milliseconds limit =
                              std::chrono::milliseconds(60'000));

 private:
  struct Piece;
  struct Flow;
  struct Link;
  using Clock = std::chrono::steady_clock;

  // The settings that a test chose for one direction, under mu_.
  struct Control {
    std::chrono::microseconds delay{0};
    uint64_t bytes_per_sec = 0;
    Clock::time_point rate_free_at{};  // when the next byte may pass
    uint64_t cut_after = kNever;
    uint64_t flip_at = kNever;
    uint8_t flip_mask = 0;
    bool drop = false;
    bool stall = false;
    uint64_t forwarded = 0;
  };

  void AcceptLoop();
  void StartLink(int client_fd);
  void ReadLoop(Link* link, Direction direction);
  void WriteLoop(Link* link, Direction direction);
  bool Forward(Link* link, Direction direction, std::string* data);
  bool PassWeather(Link* link, std::unique_lock<std::mutex>* lock,
                   std::string* data, bool* cut);
  uint64_t Between(uint64_t least, uint64_t most);  // under mu_
  bool WaitOutStall(Link* link, Direction direction);
  void ResetLink(Link* link);  // under mu_
  void ResetAllLocked();

  const HostPort target_;
  uint16_t port_ = 0;
  int listen_fd_ = -1;
  int wake_fd_ = -1;

  mutable std::mutex mu_;
  std::condition_variable changed_;
  Control controls_[2];
  std::vector<std::unique_ptr<Link>> links_;
  bool refuse_ = false;
  // Under mu_.
  bool has_weather_ = false;
  Weather weather_;
  std::mt19937_64 random_;
  uint64_t passed_ = 0;  // bytes, in both directions
  uint64_t flip_at_ = kNever;
  uint64_t stall_at_ = kNever;
  bool flip_small_ = false;
  Damage damage_;
  bool stopping_ = false;
  std::thread acceptor_;
};

}  // namespace sstferry
