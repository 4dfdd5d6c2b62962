// Connects a target to a source that it starts through ssh. The target starts
// ssh and dials. ssh starts the source, which listens at its standard input and
// output.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/wire/multiplexer.h"
#include "pipeline/wire/ssh_process.h"
#include "pipeline/wire/turn.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::milliseconds;

// Time for a person to type a password. sshd has the same limit.
constexpr milliseconds kPersonLimit{120'000};
// When a stream ends, its last bytes are sent for at most kLastWords. Then the
// other side may take kOtherEnd to end.
constexpr milliseconds kLastWords{1000};
constexpr milliseconds kOtherEnd{2000};
// After a stream has ended, its connections may take this time to read the
// bytes that have arrived, and to close.
constexpr milliseconds kConnectionsEnd{10'000};
constexpr milliseconds kSshEnd{2000};
// Exit codes: ssh failed, a shell could not run or find the command, or the
// command has unknown options.
constexpr int kSshFailed = 255;
constexpr int kNotRunnable = 126;
constexpr int kNotFound = 127;
constexpr int kWrongUsage = 2;

std::string WhyNoAnswer(const SshPlace& place, int exit_code) {
  switch (exit_code) {
    case kSshFailed:
      // The message names the account: if root pulls into a directory of
      // another account, ssh runs as that account.
      return "; ssh wrote the reason to standard error; it ran as account " +
             AccountName(geteuid()) +
             ", with that account's keys and known hosts" +
             (HasTerminal() ? ""
                            : ", and without a terminal it asks for no "
                              "password: use a key that needs none");
    case kNotFound:
    case kNotRunnable:
      return ": " + place.commands.remote + " cannot be run there (or " +
             place.commands.ssh +
             " here); install it, or give its path with --remote-command";
    case kWrongUsage:
      return ": " + place.commands.remote +
             " there does not know serve --stdio; is it older than this one?";
    default:
      return "; does the account there run another command?";
  }
}

// A running ssh process, and the stream over it.
//
// Threads: all members from any thread.
class SshStream {
 public:
  SshStream(const SshPlace& place, std::string name)
      : place_(place), name_(std::move(name)) {}
  ~SshStream() {
    if (multiplexer_ != nullptr) {
      multiplexer_->Finish(kLastWords, kOtherEnd);
    }
  }
  SshStream(const SshStream&) = delete;
  SshStream& operator=(const SshStream&) = delete;

  Status Start(const std::vector<std::string>& words) {
    Descriptor socket;
    RETURN_IF_ERROR(SshProcess::Start(words, &socket, &process_));
    MultiplexerOptions options;
    options.dials = true;
    options.peer = name_;
    options.explain_end = [this](const Status& status, bool greeted) {
      return Explain(status, greeted);
    };
    return Multiplexer::Start(std::move(socket), Descriptor(), options,
                              &multiplexer_);
  }
  Multiplexer* multiplexer() const { return multiplexer_.get(); }

 private:
  Status Explain(const Status& status, bool greeted) {
    const std::optional<int> ended = process_->Wait(kSshEnd);
    if (!ended) {
      return status;
    }
    const std::string text = name_ + ": " + DescribeExit(*ended);
    if (greeted) {
      return PeerGone(text);
    }
    const int code = WIFEXITED(*ended) ? WEXITSTATUS(*ended) : kSshFailed;
    const std::string why =
        text + " before sstferry there answered" + WhyNoAnswer(place_, code);
    return code == kSshFailed ? PeerGone(why)
                              : MakeStatus(EndState::kRefused, why);
  }

  const SshPlace place_;
  const std::string name_;
  std::unique_ptr<SshProcess> process_;
  std::unique_ptr<Multiplexer> multiplexer_;  // destroyed before the process
};

class SshDialer final : public Dialer {
 public:
  explicit SshDialer(const SshPlace& place)
      : place_(place), address_("ssh " + place.host) {}

  Status Dial(const WaitLimit& limit,
              std::unique_ptr<Connection>* connection) override;
  void Close() override;
  const std::string& address() const override { return address_; }

 private:
  Status Ensure(const WaitLimit& limit, std::shared_ptr<SshStream>* stream);
  Status StartStream(bool asks_nobody, std::shared_ptr<SshStream>* stream);
  void SetStream(std::shared_ptr<SshStream> stream);

  const SshPlace place_;
  const std::string address_;
  Turn turn_;  // one thread at a time starts ssh

  std::mutex mu_;
  std::shared_ptr<SshStream> stream_;  // changed only in turn_; under mu_
  bool closed_ = false;                // under mu_
};

void SshDialer::SetStream(std::shared_ptr<SshStream> stream) {
  const std::lock_guard<std::mutex> lock(mu_);
  stream_.swap(stream);
  if (closed_ && stream_ != nullptr) {
    stream_->multiplexer()->StopWaiting();
  }
}

Status SshDialer::StartStream(bool asks_nobody,
                              std::shared_ptr<SshStream>* stream) {
  std::vector<std::string> serve = {"serve", "--stdio", place_.directory};
  serve.insert(serve.end(), place_.serve_options.begin(),
               place_.serve_options.end());
  std::vector<std::string> words;
  RETURN_IF_ERROR(SshWords(place_, serve, asks_nobody, &words));
  auto started = std::make_shared<SshStream>(place_, address_);
  RETURN_IF_ERROR(started->Start(words));
  *stream = std::move(started);
  return Status::OK();
}

// Returns a stream whose other side has sent its hello. If there is no running
// stream, starts ssh.
Status SshDialer::Ensure(const WaitLimit& limit,
                         std::shared_ptr<SshStream>* stream) {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    if (closed_) {
      return ClosedHere("connect " + address_);
    }
    *stream = stream_;
  }
  if (*stream != nullptr && !(*stream)->multiplexer()->ended()) {
    return Status::OK();
  }
  stream->reset();
  SetStream(nullptr);
  const bool has_terminal = HasTerminal();
  RETURN_IF_ERROR(StartStream(!has_terminal, stream));
  SetStream(*stream);
  WaitLimit answer = limit;
  if (has_terminal) {
    answer.idle = std::max(answer.idle, kPersonLimit);
    answer.until = std::max(answer.until, Clock::now() + kPersonLimit);
  }
  const Status status = (*stream)->multiplexer()->AwaitHello(answer);
  if (!status.ok()) {
    stream->reset();
    SetStream(nullptr);
  }
  return status;
}

Status SshDialer::Dial(const WaitLimit& limit,
                       std::unique_ptr<Connection>* connection) {
  WaitDeadline deadline(limit);
  if (!turn_.Take(&deadline)) {
    return deadline.Timeout("connect " + address_);
  }
  const TurnGiver giver(&turn_);
  std::shared_ptr<SshStream> stream;
  RETURN_IF_ERROR(Ensure(limit, &stream));
  Multiplexer* const multiplexer = stream->multiplexer();
  return multiplexer->Open(connection, std::move(stream));
}

void SshDialer::Close() {
  const std::lock_guard<std::mutex> lock(mu_);
  closed_ = true;
  if (stream_ != nullptr) {
    stream_->multiplexer()->StopWaiting();
  }
}

class StreamListener final : public Listener {
 public:
  explicit StreamListener(std::unique_ptr<Multiplexer> multiplexer)
      : multiplexer_(multiplexer.release(), [](Multiplexer* ended) {
          ended->Finish(kLastWords, milliseconds(0));
          delete ended;
        }) {}

  Status Accept(std::unique_ptr<Connection>* connection) override {
    const Status status = multiplexer_->Accept(connection, multiplexer_);
    if (!status.ok() && multiplexer_->ended()) {
      multiplexer_->AwaitClosed(kConnectionsEnd);
    }
    return EndStateOf(status) == EndState::kDeadPeer
               ? ClosedHere("accept " + address_)
               : status;
  }
  void Close() override { multiplexer_->StopWaiting(); }
  const std::string& address() const override { return address_; }

 private:
  const std::shared_ptr<Multiplexer> multiplexer_;
  const std::string address_ = "standard input";
};

}  // namespace

std::unique_ptr<Dialer> MakeSshDialer(const SshPlace& place) {
  return std::make_unique<SshDialer>(place);
}

Status RunOverSsh(const SshPlace& place, const std::vector<std::string>& words,
                  int* exit_code) {
  std::vector<std::string> ssh;
  RETURN_IF_ERROR(SshWords(place, words, !HasTerminal(), &ssh));
  std::unique_ptr<SshProcess> process;
  RETURN_IF_ERROR(SshProcess::Start(ssh, nullptr, &process));
  std::optional<int> ended;
  while (!ended) {
    ended = process->Wait(kSshEnd);
  }
  *exit_code = WIFEXITED(*ended) ? WEXITSTATUS(*ended) : kSshFailed;
  return Status::OK();
}

Status ListenStream(int in, int out, const std::string& peer,
                    milliseconds silence_limit,
                    std::unique_ptr<Listener>* listener) {
  MultiplexerOptions options;
  options.peer = peer;
  options.silence_limit = silence_limit;
  std::unique_ptr<Multiplexer> multiplexer;
  RETURN_IF_ERROR(Multiplexer::Start(Descriptor(in), Descriptor(out), options,
                                     &multiplexer));
  *listener = std::make_unique<StreamListener>(std::move(multiplexer));
  return Status::OK();
}

}  // namespace sstferry
