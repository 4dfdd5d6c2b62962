// Messages of the control connection that only a clone uses. See
// format/messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/clone_file.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Announces the list of a clone's files. It has the members of a FileSet except
// the files.
struct CloneSet {
  static constexpr char kName[] = "CloneSet";

  uint64_t unit_bytes = 0;
  uint32_t file_count = 0;  // number of CloneFile items that follow
  Digest128 content{};
  friend bool operator==(const CloneSet&, const CloneSet&) = default;
};

// Returns the encoded size in bytes of the item in a CloneFiles payload.
size_t EncodedBytes(const CloneFile& item);

// Some files of a clone. A long list is sent in several messages.
struct CloneFiles {
  static constexpr char kName[] = "CloneFiles";

  std::vector<CloneFile> files;
  friend bool operator==(const CloneFiles&, const CloneFiles&) = default;
};

}  // namespace sstferry
