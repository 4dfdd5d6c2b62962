// The few file operations a snapshot needs, on plain paths: RocksDB's Env is
// not used here because these touch the source's own directory and must not do
// more there than they say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "rocksdb/status.h"

namespace sstferry {

// OPTIONS grows with the families.
inline constexpr uint64_t kMaxOptionsFileBytes = 256u << 20;

// "what PATH: reason"; ENOSPC and EDQUOT become kNoSpace whatever `state`.
[[nodiscard]] rocksdb::Status ErrnoStatus(EndState state,
                                          const std::string& what,
                                          const std::string& path, int error);

// Names in a directory without "." and "..", sorted. kSourceError.
[[nodiscard]] rocksdb::Status ListDirectory(const std::string& path,
                                            std::vector<std::string>* names);

// A file that another process may remove at any moment: `*found` is false and
// the status OK when it is not there.
[[nodiscard]] rocksdb::Status ReadSmallFile(const std::string& path,
                                            uint64_t max_bytes, bool* found,
                                            std::string* contents);

// Copies the bytes the file has at the moment of the call; bytes appended
// later are not in the copy. `to` must not exist.
[[nodiscard]] rocksdb::Status CopyFile(const std::string& from,
                                       const std::string& to, bool* found,
                                       uint64_t* bytes);
// The same from an open descriptor; `from` is for messages.
[[nodiscard]] rocksdb::Status CopyDescriptor(int from_fd,
                                             const std::string& from,
                                             const std::string& to,
                                             uint64_t* bytes);

// A hard link. EXDEV and EPERM give kSourceError that says what to do.
[[nodiscard]] rocksdb::Status LinkFile(const std::string& from,
                                       const std::string& to, bool* found);

[[nodiscard]] rocksdb::Status WriteSmallFile(const std::string& path,
                                             const std::string& contents);

}  // namespace sstferry
