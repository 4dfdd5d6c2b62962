#include "benchmarks/support/disk_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "benchmarks/support/report.h"
#include "benchmarks/support/spinner.h"

namespace sstferry::bench {

namespace {

using rocksdb::Status;

constexpr size_t kFileBytes = 64 << 20;
constexpr size_t kWriteBytes = 1 << 20;

Status Failed(const std::string& what, const std::string& path) {
  return Status::IOError(what + " " + path, strerror(errno));
}

}  // namespace

DiskWriter::DiskWriter(const std::string& directory, uint64_t bytes_per_sec)
    : path_(directory + "/bench_disk_writer"),
      bytes_per_sec_(static_cast<double>(bytes_per_sec)) {
  if (bytes_per_sec == 0) return;
  thread_ = std::thread([this] {
    TakeIdleCpuOnly();
    status_ = Write();
  });
}

DiskWriter::~DiskWriter() { Stop().PermitUncheckedError(); }

Status DiskWriter::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  return status_;
}

Status DiskWriter::Write() {
  const Stopwatch watch;
  double written = 0;
  Status s;
  while (s.ok() && !stop_) {
    if (written < watch.Seconds() * bytes_per_sec_) {
      s = WriteOne();
      written += kFileBytes;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  unlink(path_.c_str());
  return s;
}

Status DiskWriter::WriteOne() {
  unlink(path_.c_str());
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file < 0) return Failed("open", path_);
  const std::string bytes(kWriteBytes, 'w');
  Status s;
  for (size_t i = 0; s.ok() && i < kFileBytes / kWriteBytes; ++i) {
    const ssize_t n = write(file, bytes.data(), bytes.size());
    if (n != static_cast<ssize_t>(bytes.size())) s = Failed("write", path_);
  }
  if (s.ok() && fdatasync(file) != 0) s = Failed("fdatasync", path_);
  close(file);
  return s;
}

}  // namespace sstferry::bench
