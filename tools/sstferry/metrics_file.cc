#include "tools/sstferry/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "format/end_state.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr std::chrono::seconds kInterval{15};

// Returns an error with the text of errno. `step` says what failed, for example
// "--metrics-file: cannot write".
Status Failed(const std::string& step, const std::string& path) {
  return MakeStatus(EndState::kInternal,
                    step + " " + path + ": " + std::strerror(errno));
}

Status WriteAll(int fd, const std::string& step, const std::string& path,
                const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = write(fd, text.data() + at, text.size() - at);
    if (wrote < 0 && errno != EINTR) {
      return Failed(step, path);
    }
    at += wrote < 0 ? 0 : static_cast<size_t>(wrote);
  }
  // Syncs the file. Otherwise it could be truncated after a power cut.
  return fchmod(fd, 0644) == 0 && fsync(fd) == 0 ? Status::OK()
                                                 : Failed(step, path);
}

}  // namespace

std::string ReadMetricsFile(const std::string& path) {
  const Descriptor file = OpenLinked(path, O_RDONLY);
  struct stat info;
  if (!file.is_open() || fstat(file.get(), &info) != 0 ||
      !S_ISREG(info.st_mode) ||
      info.st_size > static_cast<off_t>(kMaxMetricsBytes)) {
    return "";
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  const ssize_t got = read(file.get(), text.data(), text.size());
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

Status WriteWholeFile(const std::string& what, const std::string& path,
                      const std::string& text) {
  // The name does not end in .prom, so that node_exporter ignores the file.
  const std::string draft = path + "." + std::to_string(getpid()) + ".tmp";
  unlink(draft.c_str());  // a killed process may have left it
  Status status;
  {
    const Descriptor file =
        OpenPath(draft, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!file.is_open()) {
      return Failed(what + ": cannot create", draft);
    }
    status = WriteAll(file.get(), what + ": cannot write", draft, text);
  }
  if (status.ok() && std::rename(draft.c_str(), path.c_str()) != 0) {
    status = Failed(what + ": cannot rename a draft to", path);
  }
  if (!status.ok()) {
    unlink(draft.c_str());
  }
  return status;
}

Status WriteMetricsFile(const std::string& path, const std::string& text) {
  return WriteWholeFile("--metrics-file", path, text);
}

MetricsFileWriter::MetricsFileWriter(std::string path,
                                     std::function<std::string()> text,
                                     LogFunction log)
    : path_(std::move(path)),
      text_(std::move(text)),
      log_(std::move(log)),
      thread_(&MetricsFileWriter::Run, this) {}

MetricsFileWriter::~MetricsFileWriter() {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
  Write();
}

void MetricsFileWriter::Run() {
  std::unique_lock<std::mutex> lock(mu_);
  while (!changed_.wait_for(lock, kInterval, [this] { return stopped_; })) {
    lock.unlock();
    Write();
    lock.lock();
  }
}

void MetricsFileWriter::Write() {
  const Status written = WriteMetricsFile(path_, text_());
  if (written.ok() == failing_) {
    log_(written.ok() ? LogLevel::kInfo : LogLevel::kError,
         written.ok() ? "--metrics-file: " + path_ + " is written again"
                      : MessageOf(written));
  }
  failing_ = !written.ok();
}

}  // namespace sstferry
