#include "pipeline/base/thread_waits.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;

// Maximum number of bytes that are read of a file in /proc. The thread's id,
// name and state are at the start of a stat file.
constexpr size_t kMostBytesRead = 512;

bool ReadBegin(const std::string& path,
               std::array<char, kMostBytesRead>* buffer,
               rocksdb::Slice* text) {
  const Descriptor file = OpenPath(path, O_RDONLY);
  const ssize_t got =
      file.is_open() ? read(file.get(), buffer->data(), buffer->size()) : -1;
  *text = rocksdb::Slice(buffer->data(), got > 0 ? static_cast<size_t>(got) : 0);
  return got > 0;
}

bool AddThread(const std::string& directory, ThreadWaits* waits) {
  std::array<char, kMostBytesRead> buffer;
  rocksdb::Slice text;
  if (!ReadBegin(directory + "/schedstat", &buffer, &text) ||
      !AddSchedstat(text, waits)) {
    return false;
  }
  if (ReadBegin(directory + "/stat", &buffer, &text) && IsInDiskWait(text)) {
    waits->in_disk_wait++;
  }
  return true;
}

}  // namespace

bool AddSchedstat(const rocksdb::Slice& text, ThreadWaits* waits) {
  const char* at = text.data();
  const char* const end = at + text.size();
  std::array<uint64_t, 2> nanos{};
  for (uint64_t& value : nanos) {
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || next == end || *next != ' ') {
      return false;
    }
    at = next + 1;
  }
  waits->ran_micros += nanos[0] / 1000;
  waits->cpu_waited_micros += nanos[1] / 1000;
  return true;
}

// Finds the state, which follows the name in parentheses. The name may contain
// any bytes, even ')', so the name ends at the last ')'.
bool IsInDiskWait(const rocksdb::Slice& stat) {
  const std::string_view text(stat.data(), stat.size());
  const size_t end = text.rfind(") ");
  return end != std::string_view::npos && end + 2 < text.size() &&
         text[end + 2] == 'D';
}

bool ReadProcessWaits(pid_t process, ThreadWaits* waits) {
  *waits = ThreadWaits();
  std::error_code error;
  fs::directory_iterator it("/proc/" + std::to_string(process) + "/task",
                            error);
  int seen = 0;
  for (; !error && it != fs::directory_iterator() && seen < kMaxThreadsSeen;
       it.increment(error)) {
    seen += AddThread(it->path().string(), waits) ? 1 : 0;
  }
  return seen > 0;
}

bool ReadOwnWaits(ThreadWaits* waits) {
  *waits = ThreadWaits();
  return AddThread("/proc/thread-self", waits);
}

}  // namespace sstferry
