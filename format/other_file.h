// The application's own files in a database's directory, which a seed takes
// over. They are the only files whose names come from a peer: both sides check
// each name by MayBeCopied(). Normative text: format/FORMAT.md, "Other files".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

inline constexpr uint32_t kMaxOtherNameBytes = 128;
inline constexpr uint64_t kMaxOtherFileBytes = 16u << 20;
// All of one directory together. A source lists no more files than these, those
// that it does not send included.
inline constexpr uint64_t kMaxOtherFilesBytes = 64u << 20;
inline constexpr uint32_t kMaxOtherFiles = 256;
// A name that a file system can have.
inline constexpr uint32_t kMaxFileNameBytes = 255;

// Says why a source does not send a file.
enum class KeptBack : uint8_t {
  kNo = 0,
  kKind = 1,     // a link, a FIFO: no regular file
  kName = 2,     // no name that a target may use
  kSecret = 3,   // by its name a core dump or a private key
  kSize = 4,     // too large, alone or with those before it
  kAccount = 5,  // not of the account that owns the directory
};
inline constexpr uint8_t kMaxKeptBack = 5;

// Returns words for it, such as "is no regular file"; "" for kNo.
const char* KeptBackName(KeptBack why);

struct OtherFile {
  std::string name;
  uint64_t bytes = 0;
  KeptBack kept_back = KeptBack::kNo;
  friend bool operator==(const OtherFile&, const OtherFile&) = default;
};

// True for the names that RocksDB and sstferry give the files in a database's
// directory, temporary ones too.
bool IsDatabaseFileName(std::string_view name);

// Returns why a file of this name is not sent: kName, kSecret or kNo. What
// looks like a database's file, also in other case, is never sent.
KeptBack JudgeOtherName(std::string_view name);

// True if a peer may ask for that file, and a target may make it.
inline bool MayBeCopied(std::string_view name) {
  return JudgeOtherName(name) == KeptBack::kNo;
}

// Checks a list that a peer sent. Of the files that are to come: each name may
// be copied, none comes twice, also in other case, and the sizes are in their
// limits. Corruption.
[[nodiscard]] rocksdb::Status CheckOtherFiles(
    const std::vector<OtherFile>& files);

}  // namespace sstferry
