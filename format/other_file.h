// The application's own files in a database's directory, which a seed also
// copies. No other names of files come from a peer, so both sides check each
// name with MayBeCopied(). Normative text: format/FORMAT.md, "Other files".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

inline constexpr uint32_t kMaxOtherNameBytes = 128;
inline constexpr uint64_t kMaxOtherFileBytes = 16u << 20;
// Limits for all files of one directory together. A source lists at most this
// many files, including files that it does not send.
inline constexpr uint64_t kMaxOtherFilesBytes = 64u << 20;
inline constexpr uint32_t kMaxOtherFiles = 256;
// Maximum length of a name in a file system.
inline constexpr uint32_t kMaxFileNameBytes = 255;

// Why a source does not send a file.
enum class KeptBack : uint8_t {
  kNo = 0,
  kKind = 1,     // a link or a FIFO, not a regular file
  kName = 2,     // targets may not create this name
  kSecret = 3,   // a core dump or a private key, judging by its name
  kSize = 4,     // too large, alone or with the files before it
  kAccount = 5,  // owner of the file is not the directory's owner
};
inline constexpr uint8_t kMaxKeptBack = 5;

// Returns a sentence part such as "is not a regular file"; "" for kNo.
const char* KeptBackName(KeptBack why);

struct OtherFile {
  std::string name;
  uint64_t bytes = 0;
  KeptBack kept_back = KeptBack::kNo;
  friend bool operator==(const OtherFile&, const OtherFile&) = default;
};

// Returns true for names of files that RocksDB and sstferry create in a
// database's directory, including temporary files.
bool IsDatabaseFileName(std::string_view name);

// Returns the reason why a file with this name is not sent (kName or kSecret),
// or kNo. A file is never sent if its name resembles the name of a database
// file, in upper or lower case.
KeptBack JudgeOtherName(std::string_view name);

// Returns true if a peer may request this file, and a target may create it.
inline bool MayBeCopied(std::string_view name) {
  return JudgeOtherName(name) == KeptBack::kNo;
}

// Checks a list of files that a peer sent. Returns Corruption unless the names
// of the files to send are allowed and, ignoring case, unique, and the sizes
// are within the limits.
[[nodiscard]] rocksdb::Status CheckOtherFiles(
    const std::vector<OtherFile>& files);

}  // namespace sstferry
