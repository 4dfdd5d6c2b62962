// Listens for connections at a Unix socket and dials them. The kernel tells a
// listener the account of each peer.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "format/end_state.h"
#include "pipeline/base/open_file.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/wire/tcp_socket.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr int kUnixBacklog = 128;
// A full backlog is temporary, and so is another server that starts in the same
// directory. A retry waits kLookAgain. A server tries to lock its directory for
// kBeginLimit.
constexpr std::chrono::milliseconds kLookAgain{20};
constexpr std::chrono::milliseconds kBeginLimit{5000};

Status CannotListen(const std::string& path, const std::string& why) {
  return MakeStatus(EndState::kRefused,
                    std::string("listen on ") + kUnixScheme + path + ": " +
                        why);
}

Status CannotListen(const std::string& path, int error) {
  return CannotListen(path, ErrorText(error));
}

sockaddr_un SocketAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
  return address;
}

int NewSocket() {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// Connects the socket. Returns 0 or an errno; EAGAIN means that the backlog is
// full.
int ConnectSocket(int fd, const std::string& path) {
  const sockaddr_un address = SocketAddress(path);
  return connect(fd, reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)) == 0
             ? 0
             : errno;
}

// Locks a directory against other servers that use this class. No other server
// can then make or remove a socket between a check of its name and the next
// step.
class DirectoryTurn {
 public:
  ~DirectoryTurn() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  DirectoryTurn() = default;
  DirectoryTurn(const DirectoryTurn&) = delete;
  DirectoryTurn& operator=(const DirectoryTurn&) = delete;

  Status Take(const std::string& path) {
    const std::string dir = DirectoryOf(path);
    fd_ = OpenLinked(dir, O_RDONLY | O_DIRECTORY).Release();
    if (fd_ < 0) {
      return CannotListen(path, dir + ": " + ErrorText(errno));
    }
    WaitDeadline deadline(WaitLimit::Within(kBeginLimit));
    while (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return CannotListen(path, errno);
      }
      WaitDeadline pause(WaitLimit::Within(kLookAgain));
      PollSocket(-1, 0, nullptr, &pause);
      if (deadline.Expired()) {
        return CannotListen(path, "another process has locked " + dir);
      }
    }
    return Status::OK();
  }

 private:
  int fd_ = -1;
};

// Removes the socket of a process that has ended. Returns OK if there is no
// file at `path`.
Status RemoveDeadSocket(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Status::OK() : CannotListen(path, errno);
  }
  if (!S_ISSOCK(info.st_mode) || info.st_uid != geteuid()) {
    return CannotListen(path, S_ISSOCK(info.st_mode)
                                  ? "found a socket of uid " +
                                        std::to_string(info.st_uid)
                                  : "found something that is not a socket");
  }
  const int fd = NewSocket();
  const int error = fd < 0 ? errno : ConnectSocket(fd, path);
  if (fd >= 0) {
    close(fd);
  }
  if (error != ECONNREFUSED) {
    return CannotListen(
        path, error == 0 || error == EAGAIN
                  ? "address already in use; is another `sstferry serve` "
                    "running there?"
                  : ErrorText(error));
  }
  return unlink(path.c_str()) == 0 ? Status::OK() : CannotListen(path, errno);
}

// Refuses a path in which another account may rename files or directories. That
// account could put its own socket there, and targets would connect to it.
Status CheckWay(const std::string& path) {
  std::optional<uid_t> account;
  Status status = FindOtherAccount(path, &account);
  if (status.ok() && account.has_value() && *account != geteuid()) {
    status = MakeStatus(EndState::kRefused,
                        "uid " + std::to_string(*account) +
                            " may change names in this path; expected that "
                            "only root and uid " +
                            std::to_string(geteuid()) + " may change them");
  }
  return status.ok() ? status : CannotListen(path, MessageOf(status));
}

class UnixListener final : public Listener {
 public:
  UnixListener(std::string path, std::vector<uint32_t> uids)
      : path_(std::move(path)),
        address_(kUnixScheme + path_),
        uids_(std::move(uids)) {}
  ~UnixListener() override {
    Remove();
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  Status Begin();
  Status Accept(std::unique_ptr<Connection>* connection) override;
  void Close() override { wake_.Raise(); }
  const std::string& address() const override { return address_; }

 private:
  void Remove();
  bool MayConnect(uid_t uid) const {
    return uid == 0 || uid == geteuid() ||
           std::find(uids_.begin(), uids_.end(), uid) != uids_.end();
  }

  const std::string path_;
  const std::string address_;
  const std::vector<uint32_t> uids_;
  int fd_ = -1;
  bool made_ = false;
  struct stat made_as_ = {};
  WakeSignal wake_;
};

Status UnixListener::Begin() {
  RETURN_IF_ERROR(CheckWay(path_));
  DirectoryTurn turn;
  RETURN_IF_ERROR(turn.Take(path_));
  RETURN_IF_ERROR(RemoveDeadSocket(path_));
  fd_ = NewSocket();
  const sockaddr_un address = SocketAddress(path_);
  // bind() gives the socket's file the mode of the descriptor, less the umask.
  // So no other account can connect before chmod() below sets the final mode.
  if (fd_ < 0 || fchmod(fd_, 0600) != 0 ||
      bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
          0 ||
      lstat(path_.c_str(), &made_as_) != 0) {
    return CannotListen(path_, errno);
  }
  made_ = true;
  const bool only_us = std::all_of(
      uids_.begin(), uids_.end(),
      [](uint32_t uid) { return uid == 0 || uid == geteuid(); });
  return listen(fd_, kUnixBacklog) == 0 &&
                 chmod(path_.c_str(), only_us ? 0600 : 0666) == 0
             ? Status::OK()
             : CannotListen(path_, errno);
}

Status UnixListener::Accept(std::unique_ptr<Connection>* connection) {
  for (;;) {
    TcpAddress unnamed;
    Descriptor socket;
    RETURN_IF_ERROR(AcceptSocket(fd_, address_, &wake_, &unnamed, &socket));
    ucred peer = {};
    socklen_t length = sizeof(peer);
    if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) !=
        0) {
      continue;
    }
    const std::string who = "uid " + std::to_string(peer.uid);
    *connection = MakeUnixConnection(
        std::move(socket), who, PeerIdentity{who, {}},
        MayConnect(peer.uid)
            ? Status::OK()
            : MakeStatus(EndState::kDenied,
                         who + " may not connect to " + address_ +
                             " (serve --allow-uid)"));
    return Status::OK();
  }
}

void UnixListener::Remove() {
  DirectoryTurn turn;
  struct stat found;
  if (made_ && turn.Take(path_).ok() && lstat(path_.c_str(), &found) == 0 &&
      found.st_dev == made_as_.st_dev && found.st_ino == made_as_.st_ino) {
    unlink(path_.c_str());
  }
  made_ = false;
}

class UnixDialer final : public Dialer {
 public:
  explicit UnixDialer(std::string path)
      : path_(std::move(path)), address_(kUnixScheme + path_) {}

  Status Dial(const WaitLimit& limit,
              std::unique_ptr<Connection>* connection) override;
  void Close() override { wake_.Raise(); }
  const std::string& address() const override { return address_; }

 private:
  const std::string path_;
  const std::string address_;
  WakeSignal wake_;
};

Status UnixDialer::Dial(const WaitLimit& limit,
                        std::unique_ptr<Connection>* connection) {
  WaitDeadline deadline(limit);
  int error = EAGAIN;
  while (error == EAGAIN) {
    if (wake_.raised()) {
      return ClosedHere("connect " + address_);
    }
    Descriptor made(NewSocket());
    error = made.is_open() ? ConnectSocket(made.get(), path_) : errno;
    if (error == 0) {
      *connection = MakeUnixConnection(std::move(made), address_, std::nullopt,
                                       Status::OK());
      return Status::OK();
    }
    // Sleeps, because poll(2) does not report when a full backlog has room
    // again.
    WaitDeadline pause(WaitLimit::Within(kLookAgain));
    if (error == EAGAIN) {
      PollSocket(-1, 0, &wake_, &pause);
    }
    if (error == EAGAIN && deadline.Expired()) {
      return MakeStatus(EndState::kDeadPeer,
                        "connect " + address_ + ": no answer in time");
    }
  }
  std::string text = "connect " + address_ + ": " + ErrorText(error);
  if (error == EACCES) {
    return MakeStatus(EndState::kDenied,
                      text + "; does `sstferry serve` there have --allow-uid " +
                          std::to_string(geteuid()) + "?");
  }
  if (error == ECONNREFUSED || error == ENOENT) {
    text += "; is `sstferry serve` running there?";
  }
  return PeerGone(text);
}

}  // namespace

Status ListenUnix(const std::string& path, const std::vector<uint32_t>& uids,
                  std::unique_ptr<Listener>* listener) {
  HostPort checked;
  const Status valid = ParseHostPort(kUnixScheme + path, &checked);
  if (!valid.ok() || !checked.is_unix()) {
    return CannotListen(path, valid.ok() ? "expected a path that begins with /"
                                         : MessageOf(valid));
  }
  auto made = std::make_unique<UnixListener>(path, uids);
  RETURN_IF_ERROR(made->Begin());
  *listener = std::move(made);
  return Status::OK();
}

std::unique_ptr<Dialer> MakeUnixDialer(const std::string& path) {
  return std::make_unique<UnixDialer>(path);
}

}  // namespace sstferry
