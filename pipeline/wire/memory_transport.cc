#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include "format/end_state.h"
#include "pipeline/wire/wait_deadline.h"
#include "sstferry/transport.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Maximum number of bytes that are copied before the other side is woken. With
// a small number, both sides copy at the same time.
constexpr size_t kPieceBytes = 128u << 10;

const std::string kInProcess = "in-process";

// One direction of a connection: a ring buffer.
//
// Threads: one reader and one writer. Each copies bytes without the lock,
//   because they use different parts of the ring. The lock guards only the
//   counters.
class Pipe {
 public:
  explicit Pipe(size_t capacity) : ring_(std::max<size_t>(capacity, 1)) {}

  Status Read(char* buffer, size_t capacity, const WaitLimit& limit,
              size_t* bytes);
  Status Write(const Slice& data, WaitDeadline* deadline);
  void CloseReader();
  void CloseWriter();

 private:
  std::vector<char> ring_;
  size_t read_at_ = 0;   // used only by the reader
  size_t write_at_ = 0;  // used only by the writer

  std::mutex mu_;
  std::condition_variable changed_;
  size_t used_ = 0;
  bool reader_closed_ = false;
  bool writer_closed_ = false;
};

Status Pipe::Read(char* buffer, size_t capacity, const WaitLimit& limit,
                  size_t* bytes) {
  *bytes = 0;
  WaitDeadline deadline(limit);
  size_t take = 0;
  {
    std::unique_lock<std::mutex> lock(mu_);
    while (!reader_closed_ && used_ == 0 && !writer_closed_) {
      if (deadline.Expired()) {
        return deadline.Timeout("peer " + kInProcess + ": read");
      }
      changed_.wait_until(lock, deadline.WakeAt());
    }
    if (reader_closed_) {
      return ClosedHere("peer " + kInProcess);
    }
    take = std::min({used_, capacity, ring_.size() - read_at_, kPieceBytes});
  }
  if (take == 0) {
    return Status::OK();
  }
  memcpy(buffer, ring_.data() + read_at_, take);
  read_at_ = (read_at_ + take) % ring_.size();
  {
    std::lock_guard<std::mutex> lock(mu_);
    used_ -= take;
  }
  changed_.notify_all();
  *bytes = take;
  return Status::OK();
}

Status Pipe::Write(const Slice& data, WaitDeadline* deadline) {
  for (size_t done = 0; done < data.size();) {
    size_t put = 0;
    {
      std::unique_lock<std::mutex> lock(mu_);
      while (!writer_closed_ && !reader_closed_ && used_ == ring_.size()) {
        if (deadline->Expired()) {
          return deadline->Timeout("peer " + kInProcess + ": write");
        }
        changed_.wait_until(lock, deadline->WakeAt());
      }
      if (writer_closed_) {
        return ClosedHere("peer " + kInProcess);
      }
      if (reader_closed_) {
        return PeerGone("peer " + kInProcess +
                        ": closed the connection while it was written to");
      }
      put = std::min({data.size() - done, ring_.size() - used_,
                      ring_.size() - write_at_, kPieceBytes});
    }
    memcpy(ring_.data() + write_at_, data.data() + done, put);
    write_at_ = (write_at_ + put) % ring_.size();
    done += put;
    deadline->Progress();
    {
      std::lock_guard<std::mutex> lock(mu_);
      used_ += put;
    }
    changed_.notify_all();
  }
  return Status::OK();
}

void Pipe::CloseReader() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    reader_closed_ = true;
  }
  changed_.notify_all();
}

void Pipe::CloseWriter() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    writer_closed_ = true;
  }
  changed_.notify_all();
}

class MemoryConnection final : public Connection {
 public:
  MemoryConnection(std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : in_(std::move(in)), out_(std::move(out)) {}
  ~MemoryConnection() override { CloseBoth(); }

  Status Read(char* buffer, size_t capacity, const WaitLimit& limit,
              size_t* bytes) override {
    return in_->Read(buffer, capacity, limit, bytes);
  }

  Status Write(const Slice* parts, size_t part_count,
               const WaitLimit& limit) override {
    WaitDeadline deadline(limit);
    for (size_t i = 0; i < part_count; ++i) {
      RETURN_IF_ERROR(out_->Write(parts[i], &deadline));
    }
    return Status::OK();
  }

  void Close() override { CloseBoth(); }
  const std::string& peer() const override { return kInProcess; }
  bool is_in_process() const override { return true; }

 private:
  void CloseBoth() {
    out_->CloseWriter();
    in_->CloseReader();
  }

  const std::shared_ptr<Pipe> in_;
  const std::shared_ptr<Pipe> out_;
};

// The state that a dialer and its listener share.
struct Hub {
  explicit Hub(size_t bytes) : buffer_bytes(bytes) {}
  const size_t buffer_bytes;

  std::mutex mu;
  std::condition_variable changed;
  std::deque<std::unique_ptr<Connection>> waiting;
  bool listener_closed = false;
  bool dialer_closed = false;
};

class MemoryListener final : public Listener {
 public:
  explicit MemoryListener(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}
  ~MemoryListener() override { CloseHub(); }

  Status Accept(std::unique_ptr<Connection>* connection) override {
    std::unique_lock<std::mutex> lock(hub_->mu);
    hub_->changed.wait(lock, [this] {
      return hub_->listener_closed || !hub_->waiting.empty();
    });
    if (hub_->listener_closed) {
      return ClosedHere("accept " + kInProcess);
    }
    *connection = std::move(hub_->waiting.front());
    hub_->waiting.pop_front();
    return Status::OK();
  }

  void Close() override { CloseHub(); }
  const std::string& address() const override { return kInProcess; }

 private:
  void CloseHub() {
    std::deque<std::unique_ptr<Connection>> never_accepted;
    {
      std::lock_guard<std::mutex> lock(hub_->mu);
      hub_->listener_closed = true;
      never_accepted.swap(hub_->waiting);
    }
    hub_->changed.notify_all();
  }

  const std::shared_ptr<Hub> hub_;
};

class MemoryDialer final : public Dialer {
 public:
  explicit MemoryDialer(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}

  Status Dial(const WaitLimit& limit,
              std::unique_ptr<Connection>* connection) override {
    auto to_listener = std::make_shared<Pipe>(hub_->buffer_bytes);
    auto to_dialer = std::make_shared<Pipe>(hub_->buffer_bytes);
    {
      std::lock_guard<std::mutex> lock(hub_->mu);
      if (hub_->dialer_closed) {
        return ClosedHere("connect " + kInProcess);
      }
      if (hub_->listener_closed) {
        return PeerGone("connect " + kInProcess + ": nobody listens");
      }
      hub_->waiting.push_back(
          std::make_unique<MemoryConnection>(to_listener, to_dialer));
    }
    hub_->changed.notify_all();
    *connection = std::make_unique<MemoryConnection>(to_dialer, to_listener);
    return Status::OK();
  }

  void Close() override {
    std::lock_guard<std::mutex> lock(hub_->mu);
    hub_->dialer_closed = true;
  }
  const std::string& address() const override { return kInProcess; }

 private:
  const std::shared_ptr<Hub> hub_;
};

}  // namespace

MemoryTransport MakeMemoryTransport(size_t buffer_bytes) {
  auto hub = std::make_shared<Hub>(buffer_bytes);
  return {std::make_unique<MemoryListener>(hub),
          std::make_unique<MemoryDialer>(hub)};
}

}  // namespace sstferry
