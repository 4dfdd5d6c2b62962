// Unix sockets: who may connect, and how the socket's file is made and removed.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "format/end_state.h"
#include "tests/pipeline/wire/transports.h"

namespace sstferry::unix_transport_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

mode_t ModeOf(const std::string& path) {
  struct stat info;
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

TEST_CASE("A Unix socket has mode 0600, unless other accounts may connect",
          "[wire][net]") {
  const ScratchDir dir;
  const std::string path = dir / "socket";
  std::unique_ptr<Listener> listener;
  const mode_t mask = umask(GENERATE(0000, 0022, 0077));
  REQUIRE_OK(ListenUnix(path, {0, geteuid()}, &listener));
  REQUIRE(ModeOf(path) == 0600);
  listener.reset();
  REQUIRE_OK(ListenUnix(path, {geteuid() + 1}, &listener));
  REQUIRE(ModeOf(path) == 0666);
  umask(mask);
  REQUIRE(listener->address() == "unix:" + path);
}

TEST_CASE("The server knows the account of a Unix socket's peer",
          "[wire][net]") {
  Transport transport = UnixOne();
  const Ends ends = transport.Connect();
  const std::string expected = "uid " + std::to_string(geteuid());
  REQUIRE(ends.server->peer() == expected);
  REQUIRE(ends.server->identity() != nullptr);
  REQUIRE(ends.server->identity()->subject == expected);
  REQUIRE(ends.client->identity() == nullptr);
  REQUIRE(ends.client->peer() == transport.dialer->address());
  // The limits per address count an account as one address.
  REQUIRE(PeerAddress(ends.server->peer()) == expected);
}

TEST_CASE("A socket of a dead process is replaced, a used one is not",
          "[wire][net]") {
  const ScratchDir dir;
  const std::string path = dir / "socket";
  {
    const int left = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(static_cast<char*>(address.sun_path), path.size());
    REQUIRE(bind(left, reinterpret_cast<sockaddr*>(&address),
                 sizeof(address)) == 0);
    close(left);
  }
  std::unique_ptr<Listener> first;
  REQUIRE_OK(ListenUnix(path, {}, &first));
  std::unique_ptr<Listener> second;
  const Status status = ListenUnix(path, {}, &second);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(MessageOf(status) == "listen on unix:" + path +
                                   ": address already in use; is another "
                                   "`sstferry serve` running there?");
  std::unique_ptr<Connection> connection;
  REQUIRE_OK(MakeUnixDialer(path)->Dial(Soon(), &connection));
  first.reset();
  REQUIRE_FALSE(fs::exists(path));
  REQUIRE_OK(ListenUnix(path, {}, &second));
}

TEST_CASE("Only a socket is replaced, and only the listener's own is removed",
          "[wire][net]") {
  const ScratchDir dir;
  const std::string path = dir / "socket";
  std::unique_ptr<Listener> listener;
  std::ofstream(path) << "a file";
  REQUIRE(EndStateOf(ListenUnix(path, {}, &listener)) == EndState::kRefused);
  REQUIRE(fs::file_size(path) == 6);
  fs::remove(path);
  fs::create_symlink(dir / "elsewhere", path);
  REQUIRE(EndStateOf(ListenUnix(path, {}, &listener)) == EndState::kRefused);
  REQUIRE(fs::is_symlink(path));
  fs::remove(path);
  REQUIRE_OK(ListenUnix(path, {}, &listener));
  fs::rename(path, dir / "moved");
  std::ofstream(path) << "another's";
  listener.reset();
  REQUIRE(fs::file_size(path) == 9);
}

TEST_CASE("A Unix socket must have a path that a peer can name",
          "[wire][net]") {
  const ScratchDir dir;
  std::unique_ptr<Listener> listener;
  for (const std::string& path :
       {std::string("relative"), std::string(), dir / "a:b",
        dir / std::string(107, 'x'), dir / "missing/socket"}) {
    INFO(path);
    REQUIRE(EndStateOf(ListenUnix(path, {}, &listener)) == EndState::kRefused);
  }
}

TEST_CASE("A Unix dialer waits for room in the backlog, up to its limit",
          "[wire][net]") {
  Transport transport = UnixOne();
  std::vector<std::unique_ptr<Connection>> waiting;
  Status status;
  while (status.ok()) {
    waiting.emplace_back();
    status = transport.dialer->Dial(
        WaitLimit::Within(std::chrono::milliseconds(50)), &waiting.back());
  }
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  auto dial = InBackground([&] {
    return transport.dialer->Dial(Soon(), &waiting.back());
  });
  std::unique_ptr<Connection> accepted;
  REQUIRE_OK(transport.listener->Accept(&accepted));
  REQUIRE_OK(dial.get());
}

}  // namespace
}  // namespace sstferry::unix_transport_test
