// The file `sstferry.files` in a replica's directory. It lists the
// application's files there that pulls have copied, with digests of their
// bytes, so that a swap can detect files that the replica's application has
// changed since. Normative text: format/FORMAT.md, "Other files". The file is
// one of format/sealed_file.h with magic 53 46 46 49 4c 45 53 31 ("SFFILES1").
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "format/digest.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr char kOtherFilesName[] = "sstferry.files";
inline constexpr char kOtherFilesMagic[9] = "SFFILES1";
// Files that the source no longer has stay in the record as long as the replica
// has them.
inline constexpr uint32_t kMaxCopiedFiles = 4096;
inline constexpr uint64_t kMaxCopiedFilesBytes = kMaxCopiedFiles * 152 + 64;

// State of a file when it was copied.
struct CopiedFile {
  Digest128 content{};
  // At the source, fewer accounts could read the file than the database.
  bool is_private = false;
  friend bool operator==(const CopiedFile&, const CopiedFile&) = default;
};

using CopiedFiles = std::map<std::string, CopiedFile>;  // by name

// Appends a complete file. Omits names beyond kMaxCopiedFiles: these files
// count as the replica's own.
void EncodeCopiedFiles(const CopiedFiles& files, std::string* out);

// Decodes a file. Corruption: not exactly one complete file, or a name that may
// not be copied.
[[nodiscard]] rocksdb::Status DecodeCopiedFiles(const rocksdb::Slice& file,
                                                CopiedFiles* files);

}  // namespace sstferry
