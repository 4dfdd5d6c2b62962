#include "pipeline/serve/lane_port.h"

#include <future>

#include "format/end_state.h"
#include "pipeline/serve/transfer_connections.h"
#include "sstferry/transport.h"
#include "tests/support/catch.h"

namespace sstferry::lane_port_test {
namespace {

// Both ends of a connection in this process.
struct Ends {
  std::unique_ptr<Channel> here;
  std::unique_ptr<Channel> there;

  Ends() {
    MemoryTransport transport = MakeMemoryTransport();
    std::unique_ptr<Connection> dialed;
    std::unique_ptr<Connection> accepted;
    REQUIRE_OK(transport.dialer->Dial(WaitLimit(), &dialed));
    REQUIRE_OK(transport.listener->Accept(&accepted));
    here = std::make_unique<Channel>(std::move(accepted));
    there = std::make_unique<Channel>(std::move(dialed));
  }
  bool closed() {
    Frame frame;
    const rocksdb::Status status =
        there->Receive(WaitLimit::Within(std::chrono::minutes(1)), &frame);
    return !status.ok() && !status.IsTimedOut();
  }
};

// Calls Enter() in another thread.
std::future<bool> EnterAside(LanePort* port, Channel* channel) {
  return std::async(std::launch::async,
                    [port, channel] { return port->Enter(channel); });
}

TEST_CASE(
    "LanePort lets a newer connection serve once the previous one has left",
    "[source][lane]") {
  LanePort port;
  Ends first;
  Ends second;
  REQUIRE(port.Enter(first.here.get()));
  REQUIRE_FALSE(port.replaced());
  std::future<bool> newer = EnterAside(&port, second.here.get());
  REQUIRE(first.closed());
  REQUIRE(port.replaced());
  port.Leave(first.here.get());
  REQUIRE(newer.get());
  REQUIRE_FALSE(port.replaced());
}

TEST_CASE("LanePort closes all waiting connections but the newest",
          "[source][lane]") {
  LanePort port;
  Ends first;
  Ends second;
  Ends third;
  REQUIRE(port.Enter(first.here.get()));
  std::future<bool> older = EnterAside(&port, second.here.get());
  REQUIRE(first.closed());
  std::future<bool> newest = EnterAside(&port, third.here.get());
  REQUIRE_FALSE(older.get());
  REQUIRE(second.closed());
  port.Leave(first.here.get());
  REQUIRE(newest.get());
}

TEST_CASE("LanePort ends every wait when it is stopped", "[source][lane]") {
  LanePort port;
  Ends first;
  REQUIRE(port.Enter(first.here.get()));
  SECTION("after Close(), the lane can be used again") {
    port.Close();
    REQUIRE(first.closed());
    port.Leave(first.here.get());
    Ends next;
    REQUIRE(port.Enter(next.here.get()));
  }
  SECTION("Stop() while a connection waits") {
    Ends second;
    std::future<bool> newer = EnterAside(&port, second.here.get());
    REQUIRE(first.closed());
    port.Stop();
    REQUIRE_FALSE(newer.get());
    REQUIRE_FALSE(port.Enter(second.here.get()));
  }
}

TEST_CASE("A target that has just reconnected is not detached",
          "[source][lane]") {
  const rocksdb::Status why =
      MakeStatus(EndState::kTooSlow, "accepted no data");
  TransferConnections connections(1, "peer");
  Ends before;
  Ends now;
  connections.Join(before.here.get());
  connections.Replace(now.here.get(), "peer", 1);
  connections.Detach(why, "lane 0", std::chrono::hours(1));
  REQUIRE(connections.detached().ok());
  connections.Detach(why, "lane 0", std::chrono::milliseconds(0));
  REQUIRE(EndStateOf(connections.detached()) == EndState::kTooSlow);
}

}  // namespace
}  // namespace sstferry::lane_port_test
