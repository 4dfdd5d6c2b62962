#include "pipeline/serve/lane_port.h"

#include <future>

#include "format/end_state.h"
#include "pipeline/serve/transfer_connections.h"
#include "sstferry/transport.h"
#include "tests/support/catch.h"

namespace sstferry {
namespace {

using Role = LanePort::Role;

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
    return !there->Receive(WaitLimit::Within(std::chrono::seconds(5)), &frame)
                .ok();
  }
};

// Enters on a thread of its own.
std::future<Role> EnterAside(LanePort* port, Channel* channel) {
  return std::async(std::launch::async,
                    [port, channel] { return port->Enter(channel); });
}

TEST_CASE("LanePort hands a lane over to the thread that parks",
          "[source][lane]") {
  LanePort port;
  Ends first;
  Ends second;
  REQUIRE(port.Enter(first.here.get()) == Role::kServe);
  REQUIRE_FALSE(port.replaced());
  std::future<Role> newer = EnterAside(&port, second.here.get());
  REQUIRE(first.closed());
  REQUIRE(port.replaced());
  REQUIRE(port.AwaitNext(first.here.get()) == second.here.get());
  REQUIRE_FALSE(port.replaced());
  port.Leave();
  REQUIRE(newer.get() == Role::kLeave);
}

TEST_CASE("LanePort lets the newer connection serve when nobody parks",
          "[source][lane]") {
  LanePort port;
  Ends first;
  Ends second;
  REQUIRE(port.Enter(first.here.get()) == Role::kServe);
  std::future<Role> newer = EnterAside(&port, second.here.get());
  REQUIRE(first.closed());
  port.Leave();
  REQUIRE(newer.get() == Role::kServe);
  REQUIRE_FALSE(port.replaced());
}

TEST_CASE("LanePort lets all but the newest of waiting connections go",
          "[source][lane]") {
  LanePort port;
  Ends first;
  Ends second;
  Ends third;
  REQUIRE(port.Enter(first.here.get()) == Role::kServe);
  std::future<Role> older = EnterAside(&port, second.here.get());
  REQUIRE(first.closed());
  std::future<Role> newest = EnterAside(&port, third.here.get());
  REQUIRE(older.get() == Role::kLeave);
  REQUIRE(port.AwaitNext(first.here.get()) == third.here.get());
  port.Leave();
  REQUIRE(newest.get() == Role::kLeave);
}

TEST_CASE("LanePort ends every wait when it is stopped or interrupted",
          "[source][lane]") {
  LanePort port;
  Ends first;
  REQUIRE(port.Enter(first.here.get()) == Role::kServe);
  SECTION("parked") {
    const bool for_good = GENERATE(true, false);
    std::future<Channel*> parked = std::async(
        std::launch::async, [&] { return port.AwaitNext(first.here.get()); });
    for_good ? port.Stop() : port.Interrupt();
    REQUIRE(parked.get() == nullptr);
  }
  SECTION("interrupted before it parks") {
    port.Interrupt();
    REQUIRE(first.closed());
    REQUIRE(port.AwaitNext(first.here.get()) == nullptr);
    port.Leave();
    Ends next;
    REQUIRE(port.Enter(next.here.get()) == Role::kServe);
  }
  SECTION("waiting to serve") {
    Ends second;
    std::future<Role> newer = EnterAside(&port, second.here.get());
    REQUIRE(first.closed());
    port.Stop();
    REQUIRE(newer.get() == Role::kLeave);
    REQUIRE(port.Enter(second.here.get()) == Role::kLeave);
  }
}

TEST_CASE("A target that connected again meanwhile is not detached",
          "[source][lane]") {
  const rocksdb::Status why = MakeStatus(EndState::kTooSlow, "took no byte");
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
}  // namespace sstferry
