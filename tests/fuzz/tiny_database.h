// A source database for fuzz targets: two column families with a few hundred
// entries, in the temporary directory (which should be in memory).
#pragma once

#include <string>

#include "rocksdb/status.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::fuzz {

// Ends the process if a fuzz target cannot be set up.
void MustWork(const rocksdb::Status& status);

class TinyDatabase {
 public:
  TinyDatabase();
  const std::string& directory() const { return directory_; }

 private:
  const ScratchDir scratch_;
  const std::string directory_;
};

}  // namespace sstferry::fuzz
