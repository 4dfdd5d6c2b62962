// The few file operations a snapshot needs, on plain paths: RocksDB's Env is
// not used here because these touch the source's own directory and must not do
// more there than they say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/byte_source.h"
#include "format/end_state.h"
#include "rocksdb/status.h"

namespace sstferry {

// OPTIONS grows with the families.
inline constexpr uint64_t kMaxOptionsFileBytes = 256u << 20;
// CURRENT and IDENTITY are one line.
inline constexpr uint64_t kMaxIdentityBytes = 64u << 10;

// "what PATH: reason"; ENOSPC and EDQUOT become kNoSpace whatever `state`.
[[nodiscard]] rocksdb::Status ErrnoStatus(EndState state,
                                          const std::string& what,
                                          const std::string& path, int error);

// An open file, closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

// To read; *out is not open, and the status OK, when nothing has that name.
[[nodiscard]] rocksdb::Status OpenToRead(const std::string& path,
                                         Descriptor* out);

// Which file it is and how long; a file that is gone has inode 0.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
  bool exists() const { return inode != 0; }
  bool IsSameFile(const FileId& other) const {
    return exists() && device == other.device && inode == other.inode;
  }
};
FileId FileIdOf(const std::string& path);
FileId FileIdOf(int fd);

// The bytes of an open file that may grow: size() is what it is at the call.
class DescriptorSource : public ByteSource {
 public:
  // Borrows `fd`; `name` stands in messages.
  DescriptorSource(int fd, std::string name)
      : fd_(fd), name_(std::move(name)) {}
  // kSourceError; TryAgain for a file that its owner cut meanwhile.
  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override;
  uint64_t size() const override { return FileIdOf(fd_).bytes; }

 private:
  const int fd_;
  const std::string name_;
};

// Names in a directory without "." and "..", sorted. kSourceError.
[[nodiscard]] rocksdb::Status ListDirectory(const std::string& path,
                                            std::vector<std::string>* names);

// A file that another process may remove at any moment: `*found` is false and
// the status OK when it is not there.
[[nodiscard]] rocksdb::Status ReadSmallFile(const std::string& path,
                                            uint64_t max_bytes, bool* found,
                                            std::string* contents);

// Copies the first `bytes` of an open file; `from` is for messages. `to` must
// not exist. *copied is less when its owner truncated the file meanwhile.
[[nodiscard]] rocksdb::Status CopyPrefix(int from_fd, const std::string& from,
                                         const std::string& to, uint64_t bytes,
                                         uint64_t* copied);

// A hard link. EXDEV and EPERM give kSourceError that says what to do.
[[nodiscard]] rocksdb::Status LinkFile(const std::string& from,
                                       const std::string& to, bool* found);

[[nodiscard]] rocksdb::Status WriteSmallFile(const std::string& path,
                                             const std::string& contents);

// Free for this user on the file system that holds `path`.
uint64_t FreeBytes(const std::string& path);

}  // namespace sstferry
