// Tests sources that cannot be reached, or that are no sstferry.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <mutex>

#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/relay.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace {

// The error for the next name lookups, and the number of these lookups.
std::atomic<int> g_name_error{0};
std::atomic<int> g_name_errors{0};
// The number of addresses of the host "many", from 127.0.0.2 on.
std::atomic<int> g_addresses{0};

using Resolve = int (*)(const char*, const char*, const addrinfo*, addrinfo**);

int ResolveMany(Resolve next, const char* service, const addrinfo* hints,
                addrinfo** results) {
  addrinfo numeric = *hints;
  numeric.ai_flags |= AI_NUMERICHOST;
  for (int i = 0; i < g_addresses; ++i) {
    const std::string text = "127.0.0." + std::to_string(2 + i);
    *results = nullptr;
    const int error = next(text.c_str(), service, &numeric, results);
    if (error != 0) return error;
    while (*results != nullptr) results = &(*results)->ai_next;
  }
  return 0;
}

}  // namespace

// Replaces the C library's function in this program.
extern "C" int getaddrinfo(const char* node, const char* service,
                           const addrinfo* hints, addrinfo** results) {
  if (g_name_errors > 0) {
    --g_name_errors;
    return g_name_error;
  }
  static const auto next =
      reinterpret_cast<Resolve>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return g_addresses > 0 && node == std::string("many") &&
                 (hints->ai_flags & AI_NUMERICHOST) == 0
             ? ResolveMany(next, service, hints, results)
             : next(node, service, hints, results);
}

namespace sstferry::first_contact_test {
namespace {

using std::chrono::milliseconds;

class Warnings {
 public:
  LogFunction log() {
    return [this](LogLevel level, const std::string& line) {
      std::lock_guard<std::mutex> lock(mu_);
      if (level == LogLevel::kWarning) {
        lines_.push_back(line);
      }
    };
  }
  size_t With(const std::string& text) const {
    std::lock_guard<std::mutex> lock(mu_);
    return static_cast<size_t>(
        std::count_if(lines_.begin(), lines_.end(), [&](const auto& line) {
          return line.find(text) != std::string::npos;
        }));
  }

 private:
  mutable std::mutex mu_;
  std::vector<std::string> lines_;  // under mu_
};

PullOptions PullPatiently(const HostPort& where, const std::string& target) {
  PullOptions options = PullFrom(where, target);
  options.timeouts.retry = milliseconds(600'000);
  return options;
}

// A port that refuses connections, because nobody listens. It is bound, so that
// no other process gets it.
class PortOfNobody {
 public:
  PortOfNobody() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t length = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(fd_, raw, length) == 0);
    REQUIRE(getsockname(fd_, raw, &length) == 0);
    where_ = {"127.0.0.1", ntohs(address.sin_port)};
  }
  ~PortOfNobody() { close(fd_); }
  PortOfNobody(const PortOfNobody&) = delete;
  PortOfNobody& operator=(const PortOfNobody&) = delete;
  const HostPort& where() const { return where_; }

 private:
  const int fd_;
  HostPort where_;
};

void RequireNotReached(const Summary& summary, const std::string& why) {
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kDeadPeer);
  REQUIRE(summary.status.ToString().find(why) != std::string::npos);
}

TEST_CASE("A source that refuses connections is reported at once, and waited "
          "for as long as --timeout says",
          "[bad_input][first_contact]") {
  ScratchDir dir;
  Warnings warnings;
  const PortOfNobody nobody;
  PullOptions options = PullPatiently(nobody.where(), dir / "target");
  options.timeouts.first_answer = milliseconds(3000);
  options.log = warnings.log();
  const std::unique_ptr<Operation> pull = MakePull(options);
  Summary summary;
  const auto start = std::chrono::steady_clock::now();
  auto running =
      std::async(std::launch::async, [&] { return pull->Run(&summary); });
  while (pull->progress().waiting_for.empty()) {
    REQUIRE(running.wait_for(milliseconds(1)) == std::future_status::timeout);
  }
  REQUIRE(pull->progress().waiting_for.find("connection refused") !=
          std::string::npos);
  running.get().PermitUncheckedError();  // the summary has the status
  RequireNotReached(summary, "connection refused");
  const auto took = std::chrono::steady_clock::now() - start;
  REQUIRE(took > milliseconds(2500));
  REQUIRE(took < milliseconds(60'000));  // timeouts.retry is 10 minutes
  REQUIRE(warnings.With("connection refused") == 1);
}

TEST_CASE("Each change of the reason why a source cannot be reached is logged",
          "[bad_input][first_contact]") {
  ScratchDir dir;
  Warnings warnings;
  std::atomic<int> closed{0};
  auto source = std::make_unique<FakeSource>([&](Channel*) { ++closed; });
  PullOptions options = PullPatiently(source->address(), dir / "target");
  options.timeouts.first_answer = milliseconds(4000);
  options.log = warnings.log();
  auto running =
      std::async(std::launch::async, [&] { return RunPull(options); });
  while (closed < 3) {
    REQUIRE(running.wait_for(milliseconds(1)) == std::future_status::timeout);
  }
  source.reset();
  RequireNotReached(running.get(), "connection refused");
  REQUIRE(warnings.With("cannot reach the source") >= 2);
  REQUIRE(warnings.With("cannot reach the source") <= 3);
  REQUIRE(warnings.With("connection refused") == 1);
}

TEST_CASE("A peer that does not speak the protocol ends a pull soon",
          "[bad_input][first_contact]") {
  ScratchDir dir;
  std::unique_ptr<Listener> listener;
  REQUIRE_OK(ListenTcp(HostPort{"127.0.0.1", 0}, &listener));
  const bool answers = GENERATE(true, false);
  std::thread http([&] {
    std::vector<std::unique_ptr<Connection>> kept;
    std::unique_ptr<Connection> connection;
    while (listener->Accept(&connection).ok()) {
      const rocksdb::Slice answer(
          "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
          "Content-Length: 0\r\n\r\n");
      if (answers) {
        connection->Write(&answer, 1, WaitLimit()).PermitUncheckedError();
      }
      kept.push_back(std::move(connection));
    }
  });
  HostPort where;
  REQUIRE_OK(ParseHostPort(listener->address(), &where));
  PullOptions options = PullPatiently(where, dir / "target");
  options.timeouts.first_answer = milliseconds(answers ? 60'000 : 2000);
  const auto start = std::chrono::steady_clock::now();
  const Summary summary = RunPull(options);
  listener->Close();
  http.join();
  INFO(summary.status.ToString());
  REQUIRE(std::chrono::steady_clock::now() - start < milliseconds(40'000));
  if (answers) {
    REQUIRE(EndStateOf(summary.status) == EndState::kCorrupt);
    REQUIRE(summary.status.ToString().find("is sstferry at the other end?") !=
            std::string::npos);
  } else {
    RequireNotReached(summary, "is sstferry at the other end?");
  }
}

TEST_CASE("A resumed pull waits no longer for its source's first answer than a "
          "new one",
          "[bad_input][first_contact]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeOptions serve = ServeSample(dir / "source");
  serve.snapshot_ttl = std::chrono::seconds(60);
  TestServer server(serve);
  Relay relay(server.address());
  relay.CutAfter(Relay::kToClient, 1'000'000);
  PullOptions options = PullFrom(relay.address(), dir / "target");
  options.lanes = 1;  // or all chunks may be incomplete at the cut
  REQUIRE(EndStateOf(RunPull(options).status) == EndState::kDeadPeer);
  const PortOfNobody nobody;
  options.source = AddressAt(nobody.where());
  options.timeouts.retry = milliseconds(600'000);
  options.timeouts.first_answer = milliseconds(500);
  RequireNotReached(RunPull(options), "connection refused");
  relay.CutAfter(Relay::kToClient, Relay::kNever);
  options.source = AddressAt(relay.address());
  options.timeouts.first_answer = milliseconds(60'000);
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  REQUIRE(summary.chunks_resumed > 0);
}

TEST_CASE("A name server that gives no answer for a while ends no pull",
          "[bad_input][first_contact]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeOptions serve = ServeSample(dir / "source");
  serve.snapshot_ttl = std::chrono::seconds(60);
  TestServer server(serve);
  Relay relay(server.address());
  Warnings warnings;
  PullOptions options = PullPatiently(relay.address(), dir / "target");
  options.source.host = "localhost";
  options.log = warnings.log();
  g_name_error = GENERATE(EAI_AGAIN, EAI_FAIL, EAI_NONAME);
  SECTION("at its first connection") {
    g_name_errors = 3;
    REQUIRE_OK(RunPull(options).status);
    REQUIRE(warnings.With("resolve localhost") == 1);
  }
  SECTION("during a transfer") {
    relay.SetRate(Relay::kToClient, 200'000);  // about ten seconds
    auto running =
        std::async(std::launch::async, [&] { return RunPull(options); });
    const bool begun = relay.WaitForBytes(Relay::kToClient, 100'000);
    g_name_errors = 8;
    relay.ResetAll();
    relay.SetRate(Relay::kToClient, 0);
    const Summary summary = running.get();
    REQUIRE(begun);
    REQUIRE_OK(summary.status);
    REQUIRE(summary.retries > 0);
    REQUIRE(warnings.With("connection to the source lost") == 1);
  }
  REQUIRE(g_name_errors == 0);
}

TEST_CASE("An unknown host name is DEAD_PEER, and the message names it",
          "[bad_input][first_contact]") {
  ScratchDir dir;
  PullOptions options = PullPatiently({"no-such-host", 7420}, dir / "target");
  options.timeouts.first_answer = milliseconds(500);
  g_name_error = EAI_NONAME;
  g_name_errors = 1000;
  const Summary summary = RunPull(options);
  g_name_errors = 0;
  RequireNotReached(summary, "resolve no-such-host: unknown host name");
}

TEST_CASE("A host with several addresses is DEAD_PEER, with the error of each "
          "address",
          "[bad_input][first_contact]") {
  const ScratchDir dir;
  const PortOfNobody nobody;
  const std::string port = ":" + std::to_string(nobody.where().port);
  const auto refused = [&port](int last) {
    return "127.0.0." + std::to_string(last) + port + ": connection refused";
  };
  std::map<int, std::string> says;  // by number of addresses
  says[1] = " (127.0.0.2" + port + "): connection refused; is ";
  says[2] = ": none of its 2 addresses accepts: " + refused(2) + ", " +
            refused(3) + "; is ";
  says[6] = ": none of its 6 addresses accepts: " + refused(2) + ", " +
            refused(3) + ", " + refused(4) + ", " + refused(5) +
            ", and 2 more; is ";
  const int addresses = GENERATE(1, 2, 6);
  PullOptions options =
      PullPatiently({"many", nobody.where().port}, dir / "target");
  options.timeouts.first_answer = milliseconds(200);
  g_addresses = addresses;
  const Summary summary = RunPull(options);
  g_addresses = 0;
  RequireNotReached(summary, "connect many" + port + says[addresses]);
}

}  // namespace
}  // namespace sstferry::first_contact_test
