#include "tools/sstferry/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "format/end_state.h"
#include "format/printable.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr size_t kMostAtOnce = 64u << 10;
constexpr size_t kMaxControl = 5;
// The control sequences that Console writes.
constexpr std::array<const char*, 7> kControls = {
    "\n", "\r", "\t", "\033[K", "\033[31m", "\033[33m", "\033[0m"};

// Returns the length of the allowed control sequence at the start of `text`.
// Returns 0 if there is none. Sets *more to true if `text` is the beginning of
// an allowed control sequence.
size_t ControlLength(const std::string& text, bool* more) {
  *more = false;
  for (const std::string control : kControls) {
    if (text.starts_with(control)) {
      return control.size();
    }
    *more = *more || control.starts_with(text);
  }
  return 0;
}

void Close(int fd) {
  if (fd >= 0) {
    close(fd);
  }
}

// Returns true if `text` is the beginning of a UTF-8 character whose last bytes
// are missing.
bool MayBecomeUtf8(const std::string& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t bytes = first >= 0xf0   ? 4
                       : first >= 0xe0 ? 3
                       : first >= 0xc2 ? 2
                                       : 1;
  return text.size() < bytes &&
         std::all_of(text.begin() + 1, text.end(), [](unsigned char c) {
           return c >= 0x80 && c < 0xc0;
         });
}

}  // namespace

std::string TerminalText::Pass(const Slice& bytes) {
  pending_.append(bytes.data(), bytes.size());
  std::string passed;
  size_t at = 0;
  while (at < pending_.size()) {
    const Slice rest(pending_.data() + at, pending_.size() - at);
    size_t length = PrintableLength(rest);
    if (length == 0) {
      const std::string next(rest.data(), std::min(rest.size(), kMaxControl));
      bool more = false;
      length = ControlLength(next, &more);
      if (length == 0 && (more || MayBecomeUtf8(next))) {
        break;
      }
    }
    passed += length == 0 ? std::string(1, '?')
                          : pending_.substr(at, length);
    at += std::max<size_t>(length, 1);
  }
  pending_.erase(0, at);
  return passed;
}

std::string TerminalText::End() {
  const std::string rest(pending_.size(), '?');
  pending_.clear();
  return rest;
}

Status OutputRelay::Open(int to, std::unique_ptr<OutputRelay>* relay) {
  std::array<int, 2> ends = {-1, -1};
  const int wake = eventfd(0, EFD_CLOEXEC);
  if (wake < 0 || pipe2(ends.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    Close(wake);
    return MakeStatus(EndState::kRefused,
                      std::string("pipe: ") + strerror(error));
  }
  relay->reset(new OutputRelay(to, isatty(to) == 1, ends[1], ends[0], wake));
  return Status::OK();
}

OutputRelay::~OutputRelay() {
  Finish();
  for (const int each : {in_, out_, end_}) {
    Close(each);
  }
}

void OutputRelay::Begin() {
  Close(in_);
  in_ = -1;
  thread_ = std::thread([this] { Copy(); });
}

bool OutputRelay::Finish() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    while (write(end_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread_.join();
    Write(text_.End());
  }
  return !failed_;
}

void OutputRelay::Copy() {
  while (!failed_) {
    std::array<pollfd, 2> waits = {pollfd{out_, POLLIN, 0},
                                   pollfd{end_, POLLIN, 0}};
    if (poll(waits.data(), waits.size(), -1) < 0) {
      continue;  // EINTR
    }
    if (waits[1].revents != 0) {
      // Copies only the bytes that are in the pipe now. Background processes of
      // the account may write to the pipe forever.
      int left = 0;
      ioctl(out_, FIONREAD, &left);
      size_t done = 1;
      while (left > 0 && done > 0 && !failed_) {
        done = CopyOnce(static_cast<size_t>(left));
        left -= static_cast<int>(done);
      }
      return;
    }
    if (CopyOnce(kMostAtOnce) == 0) {
      return;
    }
  }
  Close(out_);  // writers then get an error, because nobody reads
  out_ = -1;
}

// Copies at most `most` bytes. Returns the number of bytes that were read, or 0
// at the end of the pipe.
size_t OutputRelay::CopyOnce(size_t most) {
  std::string bytes(std::min(most, kMostAtOnce), '\0');
  ssize_t got = 0;
  do {
    got = read(out_, bytes.data(), bytes.size());
  } while (got < 0 && errno == EINTR);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  Write(is_terminal_ ? text_.Pass(bytes) : bytes);
  return bytes.size();
}

void OutputRelay::Write(const std::string& text) {
  size_t at = 0;
  while (at < text.size() && !failed_) {
    const ssize_t done = write(to_, text.data() + at, text.size() - at);
    if (done > 0) {
      at += static_cast<size_t>(done);
    } else if (errno == EAGAIN) {
      pollfd wait = {to_, POLLOUT, 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      failed_ = true;
    }
  }
}

}  // namespace sstferry
