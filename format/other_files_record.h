// The file `sstferry.files` in a replica's directory. It lists the
// application's files that pulls have copied into the directory, with digests
// of their bytes. A pull that replaces the replica (a swap) detects by these
// digests which files the replica's application has changed. The file has the
// format of format/sealed_file.h with magic 53 46 46 49 4c 45 53 31
// ("SFFILES1"). Normative text: format/FORMAT.md, "Other files".
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
// Limits for the record. A file that the source no longer has stays in the
// record as long as the replica has the file.
inline constexpr uint32_t kMaxCopiedFiles = 4096;
inline constexpr uint64_t kMaxCopiedFilesBytes = kMaxCopiedFiles * 152 + 64;

// State of a file when it was copied.
struct CopiedFile {
  Digest128 content{};
  // True if fewer accounts of the source's machine could read the file than
  // could read the database.
  bool is_private = false;
  friend bool operator==(const CopiedFile&, const CopiedFile&) = default;
};

using CopiedFiles = std::map<std::string, CopiedFile>;  // by name

// Appends a complete file. Omits names beyond kMaxCopiedFiles. The omitted
// files then count as the replica's own files.
void EncodeCopiedFiles(const CopiedFiles& files, std::string* out);

// Decodes a file. Returns Corruption unless `file` is exactly one complete file
// that has only names that may be copied.
[[nodiscard]] rocksdb::Status DecodeCopiedFiles(const rocksdb::Slice& file,
                                                CopiedFiles* files);

}  // namespace sstferry
