#include "pipeline/disk/free_space.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <system_error>

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Status;

std::string SpaceText(uint64_t bytes) {
  std::array<char, 32> text{};
  const bool large = bytes >= 10'000'000'000;
  std::snprintf(text.data(), text.size(), large ? "%.2f GB" : "%.2f MB",
                static_cast<double>(bytes) / (large ? 1e9 : 1e6));
  return text.data();
}

Status FreeBytes(rocksdb::FileSystem* file_system, const std::string& dir,
                 uint64_t* bytes) {
  const rocksdb::IOStatus asked =
      file_system->GetFreeSpace(dir, rocksdb::IOOptions(), bytes, nullptr);
  if (asked.IsNotSupported()) {
    *bytes = std::numeric_limits<uint64_t>::max();
    return Status::OK();
  }
  // If this process runs as root, RocksDB's number includes blocks that the
  // file system reserves for root. Subtracts these blocks, so that root can
  // still write when the disk is full. If the number cannot come from this file
  // system, keeps it; an application may use its own FileSystem.
  struct statvfs info;
  if (asked.ok() && statvfs(dir.c_str(), &info) == 0) {
    if (info.f_blocks == 0 && *bytes == 0) {
      // ramfs and some FUSE file systems do not report a size.
      *bytes = std::numeric_limits<uint64_t>::max();
      return Status::OK();
    }
    const uint64_t available = uint64_t{info.f_bavail} * info.f_frsize;
    const uint64_t free = uint64_t{info.f_bfree} * info.f_frsize;
    const bool with_reserve =
        *bytes > available && *bytes <= free + free / 100;
    *bytes = with_reserve ? available : *bytes;
  }
  return WithContext(asked, EndState::kInternal, "free space of " + dir);
}

uint64_t BytesBelow(const std::string& dir) {
  namespace fs = std::filesystem;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(dir, error), end;
       !error && at != end; at.increment(error)) {
    std::error_code gone;  // another process may remove the file
    const bool alone = at->is_regular_file(gone) && !gone &&
                       fs::hard_link_count(at->path(), gone) == 1 && !gone;
    const uint64_t size = alone ? fs::file_size(at->path(), gone) : 0;
    bytes += gone ? 0 : size;
  }
  return bytes;
}

uint64_t ReserveOf(const std::string& dir, double percent) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(dir, error);
  return error ? 0
               : static_cast<uint64_t>(static_cast<double>(space.capacity) *
                                       percent / 100);
}

SpaceNeed SpaceNeedOf(const std::vector<Part>& parts, uint64_t chunk_bytes,
                      uint32_t lanes) {
  SpaceNeed need;
  std::vector<uint64_t> chunks;
  for (const Part& part : parts) {
    // Adds nothing for a part that is compared, because it is unknown how much
    // of it differs.
    need.estimated_bytes +=
        part.need == PartNeed::kCompare ? 0 : part.bytes;
    chunks.push_back(std::min(part.bytes, chunk_bytes));
  }
  const size_t at_once = std::min<size_t>(lanes, chunks.size());
  std::partial_sort(chunks.begin(), chunks.begin() + at_once, chunks.end(),
                    std::greater<>());
  for (size_t i = 0; i < at_once; ++i) {
    need.chunk_bytes += chunks[i];
  }
  return need;
}

Status CheckFreeSpace(rocksdb::FileSystem* file_system, const std::string& dir,
                      const SpaceNeed& need) {
  uint64_t free_bytes = 0;
  const Status asked = FreeBytes(file_system, dir, &free_bytes);
  if (!asked.ok() || free_bytes >= need.bytes()) {
    return asked;
  }
  return MakeStatus(
      EndState::kNoSpace,
      "disk of " + dir + ": needs " + SpaceText(need.bytes()) +
          " free (the source's estimate of " +
          SpaceText(need.estimated_bytes) + ", plus 10 %, plus " +
          SpaceText(need.chunk_bytes) + " for chunks in transit" +
          (need.reserve_bytes == 0 ? ""
                                   : ", plus " + SpaceText(need.reserve_bytes) +
                                         " that --min-free keeps") +
          "), found " + SpaceText(free_bytes) +
          "; make room there, or name a TARGET_DIR on another file system, "
          "and pull again");
}

}  // namespace sstferry
