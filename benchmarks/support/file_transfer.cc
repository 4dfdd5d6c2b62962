#include "benchmarks/support/file_transfer.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

namespace sstferry::bench {

using rocksdb::Status;

namespace {

constexpr size_t kBufferBytes = 1u << 20;
constexpr size_t kAlignment = 4096;
constexpr uint16_t kMaxNameBytes = 255;

#pragma pack(push, 1)
struct FileHeader {
  uint16_t name_bytes;
  uint64_t file_bytes;
};
#pragma pack(pop)

// Runs body(lane, totals) in a thread per lane; returns the first error.
template <typename Body>
Status OnEveryLane(std::vector<Socket>* lanes, TransferTotals* totals,
                   const Body& body) {
  std::mutex mutex;
  Status first;
  std::vector<std::thread> threads;
  for (Socket& lane : *lanes) {
    threads.emplace_back([&] {
      TransferTotals mine;
      const Status s = body(&lane, &mine);
      std::lock_guard<std::mutex> lock(mutex);
      totals->files += mine.files;
      totals->bytes += mine.bytes;
      if (first.ok() && !s.ok()) first = s;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return first;
}

Status SendFile(const std::string& dir, const std::string& name, Socket* lane,
                TransferTotals* totals) {
  const std::string path = dir + "/" + name;
  const Socket file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (file.fd() < 0 || fstat(file.fd(), &info) != 0) return ErrnoStatus(path);
  FileHeader header = {static_cast<uint16_t>(name.size()),
                       static_cast<uint64_t>(info.st_size)};
  Status s = lane->SendAll(&header, sizeof(header));
  if (s.ok()) s = lane->SendAll(name.data(), name.size());
  uint64_t left = header.file_bytes;
  while (s.ok() && left > 0) {
    const ssize_t sent = sendfile(lane->fd(), file.fd(), nullptr, left);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return ErrnoStatus("sendfile " + path);
    left -= static_cast<uint64_t>(sent);
  }
  ++totals->files;
  totals->bytes += header.file_bytes;
  return s;
}

Status WriteAll(int fd, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(fd, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus("write");
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return Status::OK();
}

Status ReceiveContent(int fd, WriteMode mode, uint64_t bytes, char* buffer,
                      Socket* lane) {
  uint64_t left = bytes;
  while (left > 0) {
    const size_t part = std::min<uint64_t>(left, kBufferBytes);
    Status s = lane->ReceiveAll(buffer, part);
    if (!s.ok()) return s;
    size_t to_write = part;
    if (mode == WriteMode::kDirect && part % kAlignment != 0) {
      to_write = (part / kAlignment + 1) * kAlignment;
      std::memset(buffer + part, 0, to_write - part);
    }
    s = WriteAll(fd, buffer, to_write);
    if (!s.ok()) return s;
    left -= part;
  }
  if (mode == WriteMode::kDirect &&
      ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    return ErrnoStatus("ftruncate");
  }
  return fdatasync(fd) == 0 ? Status::OK() : ErrnoStatus("fdatasync");
}

Status ReceiveFile(const std::string& dir, WriteMode mode,
                   const FileHeader& header, char* buffer, Socket* lane) {
  if (header.name_bytes > kMaxNameBytes) {
    return Status::Corruption("a file name of more than 255 bytes");
  }
  std::string name(header.name_bytes, '\0');
  Status s = lane->ReceiveAll(name.data(), name.size());
  if (!s.ok()) return s;
  if (name.find('/') != std::string::npos || name == "..") {
    return Status::Corruption("a file name with a slash: " + name);
  }
  const std::string path = dir + "/" + name;
  const int direct = mode == WriteMode::kDirect ? O_DIRECT : 0;
  const Socket file(open(path.c_str(),
                         O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | direct,
                         0644));
  if (file.fd() < 0) return ErrnoStatus(path);
  return ReceiveContent(file.fd(), mode, header.file_bytes, buffer, lane);
}

}  // namespace

Status ListFiles(const std::string& dir, std::vector<std::string>* names) {
  std::vector<std::pair<uint64_t, std::string>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name == "LOCK" || name == "LOG" ||
        name.rfind("LOG.old", 0) == 0) {
      continue;
    }
    found.emplace_back(entry.file_size(), name);
  }
  if (error) return Status::IOError(dir, error.message());
  std::sort(found.rbegin(), found.rend());
  for (auto& [bytes, name] : found) names->push_back(name);
  return Status::OK();
}

Status SendFiles(const std::string& dir, const std::vector<std::string>& names,
                 std::vector<Socket>* lanes, TransferTotals* totals) {
  std::atomic<size_t> next{0};
  return OnEveryLane(lanes, totals, [&](Socket* lane, TransferTotals* mine) {
    for (size_t i = next++; i < names.size(); i = next++) {
      const Status s = SendFile(dir, names[i], lane, mine);
      if (!s.ok()) return s;
    }
    const FileHeader end = {0, 0};
    return lane->SendAll(&end, sizeof(end));
  });
}

Status ReceiveFiles(const std::string& dir, WriteMode mode,
                    std::vector<Socket>* lanes, TransferTotals* totals) {
  const Status s =
      OnEveryLane(lanes, totals, [&](Socket* lane, TransferTotals* mine) {
        std::unique_ptr<char, decltype(&std::free)> buffer(
            static_cast<char*>(std::aligned_alloc(kAlignment, kBufferBytes)),
            &std::free);
        while (true) {
          FileHeader header;
          Status received = lane->ReceiveAll(&header, sizeof(header));
          if (!received.ok() || header.name_bytes == 0) return received;
          received = ReceiveFile(dir, mode, header, buffer.get(), lane);
          if (!received.ok()) return received;
          ++mine->files;
          mine->bytes += header.file_bytes;
        }
      });
  if (!s.ok()) return s;
  const Socket directory(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd() < 0 || fsync(directory.fd()) != 0) return ErrnoStatus(dir);
  return Status::OK();
}

Status AcceptLanes(const Socket& listener, std::vector<Socket>* lanes) {
  uint32_t count = 1;
  for (uint32_t i = 0; i < count; ++i) {
    Socket lane;
    Status s = Accept(listener, &lane);
    uint32_t announced = 0;
    if (s.ok()) s = lane.ReceiveAll(&announced, sizeof(announced));
    if (!s.ok()) return s;
    if (announced == 0 || announced > 64 || (i > 0 && announced != count)) {
      return Status::Corruption("lane count " + std::to_string(announced));
    }
    count = announced;
    lanes->push_back(std::move(lane));
  }
  return Status::OK();
}

Status ConnectLanes(const std::string& host_port, uint32_t count,
                    std::vector<Socket>* lanes) {
  for (uint32_t i = 0; i < count; ++i) {
    Socket lane;
    Status s = Connect(host_port, &lane);
    if (s.ok()) s = lane.SendAll(&count, sizeof(count));
    if (!s.ok()) return s;
    lanes->push_back(std::move(lane));
  }
  return Status::OK();
}

}  // namespace sstferry::bench
