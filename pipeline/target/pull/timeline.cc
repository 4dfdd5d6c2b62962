#include "pipeline/target/pull/timeline.h"

#include <chrono>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Status;
using std::chrono::steady_clock;

Timeline::Timeline(std::string path, std::vector<std::string> columns,
                   std::function<std::vector<uint64_t>()> sample)
    : path_(std::move(path)),
      columns_(std::move(columns)),
      sample_(std::move(sample)) {}

Timeline::~Timeline() { Stop().PermitUncheckedError(); }

Status Timeline::Start() {
  out_.open(path_, std::ios::trunc);
  out_ << "seconds";
  for (const std::string& column : columns_) {
    out_ << ',' << column;
  }
  out_ << '\n' << std::flush;
  if (!out_) {
    return MakeStatus(EndState::kInternal, "cannot write " + path_);
  }
  thread_ = std::thread([this] {
    const steady_clock::time_point start = steady_clock::now();
    steady_clock::time_point next = start;
    std::unique_lock<std::mutex> lock(mu_);
    bool stop = false;
    while (!stop) {
      next += std::chrono::seconds(1);
      stop = changed_.wait_until(lock, next, [this] { return stopping_; });
      const std::chrono::duration<double> elapsed =
          steady_clock::now() - start;
      WriteLine(elapsed.count());
    }
  });
  return Status::OK();
}

void Timeline::WriteLine(double seconds) {
  out_ << seconds;
  for (uint64_t value : sample_()) {
    out_ << ',' << value;
  }
  out_ << '\n' << std::flush;
}

Status Timeline::Stop() {
  if (!thread_.joinable()) {
    return Status::OK();
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  out_.close();
  return out_ ? Status::OK()
              : MakeStatus(EndState::kInternal, "cannot write " + path_);
}

}  // namespace sstferry
