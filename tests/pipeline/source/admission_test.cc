#include "pipeline/serve/admission.h"

#include "sstferry/rate_limited_log.h"
#include "tests/support/catch.h"

namespace sstferry::admission_test {
namespace {

struct Entered {
  uint64_t id = 0;
  uint64_t dropped = 0;
  std::string why;
};

Entered Enter(Admission* admission, const std::string& address) {
  Entered entered;
  entered.id = admission->Enter(address, &entered.dropped, &entered.why);
  return entered;
}

TEST_CASE("Admission refuses connections beyond its limits, in all and of "
          "one address",
          "[source][admission]") {
  Admission admission({4, 2, 100, 100});
  const Entered first = Enter(&admission, "a");
  REQUIRE(admission.Establish(first.id));
  REQUIRE(admission.Establish(Enter(&admission, "a").id));
  const Entered third = Enter(&admission, "a");
  REQUIRE(third.id == 0);
  REQUIRE(third.why ==
          "2 connections from a are open already (serve --max-per-address)");
  REQUIRE(admission.Establish(Enter(&admission, "b").id));
  REQUIRE(admission.Establish(Enter(&admission, "c").id));
  const Entered fifth = Enter(&admission, "d");
  REQUIRE(fifth.id == 0);
  REQUIRE(fifth.why ==
          "4 connections are open already (serve --max-connections)");
  admission.Leave(first.id);
  REQUIRE(admission.connections() == 3);
  REQUIRE(Enter(&admission, "a").id != 0);
}

TEST_CASE("Admission drops the oldest half-open connection of the address, "
          "then of all",
          "[source][admission]") {
  Admission admission({100, 100, 4, 2});
  const Entered a1 = Enter(&admission, "a");
  const Entered b1 = Enter(&admission, "b");
  const Entered b2 = Enter(&admission, "b");
  REQUIRE(admission.half_open() == 3);
  const Entered b3 = Enter(&admission, "b");
  REQUIRE(b3.dropped == b1.id);
  REQUIRE(admission.half_open() == 3);
  REQUIRE(admission.connections() == 4);
  const Entered c1 = Enter(&admission, "c");
  REQUIRE(c1.dropped == 0);
  const Entered d1 = Enter(&admission, "d");
  REQUIRE(d1.dropped == a1.id);
  // A dropped connection cannot complete its handshake.
  REQUIRE_FALSE(admission.Establish(a1.id));
  REQUIRE(admission.Establish(b2.id));
  REQUIRE(admission.half_open() == 3);
  // A connection that completed its handshake is not dropped.
  REQUIRE(Enter(&admission, "b").dropped == 0);
  REQUIRE(Enter(&admission, "b").dropped == b3.id);
}

TEST_CASE(
    "If all slots are in use, connections without a request are dropped first",
    "[source][admission]") {
  Admission admission({3, 3, 2, 2});
  const Entered served = Enter(&admission, "a");
  REQUIRE(admission.Establish(served.id));
  const Entered idle = Enter(&admission, "b");
  const Entered later = Enter(&admission, "c");
  const Entered honest = Enter(&admission, "d");
  REQUIRE(honest.dropped == idle.id);
  REQUIRE(admission.IsDropped(idle.id));
  REQUIRE_FALSE(admission.Establish(idle.id));
  REQUIRE(admission.Establish(honest.id));
  REQUIRE(admission.Establish(honest.id));
  // Dropped connections count until their threads have ended, so the number of
  // drops is limited.
  const Entered next = Enter(&admission, "d");
  REQUIRE(next.dropped == later.id);
  REQUIRE(Enter(&admission, "d").id == 0);
  admission.Leave(idle.id);
  REQUIRE(Enter(&admission, "e").dropped == next.id);
}

TEST_CASE("Admission forgets connections that left", "[source][admission]") {
  Admission admission({3, 3, 1, 1});
  for (int i = 0; i < 1000; ++i) {
    const Entered entered = Enter(&admission, std::to_string(i));
    REQUIRE(entered.id != 0);
    REQUIRE(entered.dropped == 0);
    admission.Leave(entered.id);
    admission.Leave(entered.id);
  }
  REQUIRE(admission.connections() == 0);
  REQUIRE(admission.half_open() == 0);
}

TEST_CASE("RateLimitedLog lets fifty lines pass in ten seconds and counts the "
          "rest",
          "[source][admission]") {
  RateLimitedLog log;
  Clock::time_point now{};
  now += std::chrono::hours(1);
  for (int i = 0; i < 50; ++i) {
    REQUIRE(log.Admit("line", now) == "line");
  }
  for (int i = 0; i < 70; ++i) {
    REQUIRE_FALSE(log.Admit("line", now + std::chrono::seconds(9)));
  }
  now += std::chrono::seconds(10);
  REQUIRE(log.Admit("line", now) == "line (and 70 similar lines before it)");
  REQUIRE(log.Admit("line", now) == "line");
  REQUIRE(log.Admit(std::string(100'000, 'x'), now)->size() <
          RateLimitedLog::kMaxLineBytes + 100);
}

}  // namespace
}  // namespace sstferry::admission_test
