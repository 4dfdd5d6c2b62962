// The OPTIONS files of a database, as its owner writes new ones: one that
// describes a family comes a moment after the MANIFEST names that family, and
// the next may come before anybody read it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Threads: one.
class SeenOptions {
 public:
  explicit SeenOptions(std::string directory)
      : directory_(std::move(directory)) {}

  // Reads what is newer than what was read.
  [[nodiscard]] rocksdb::Status Look();

  // The newest file that was seen, "OPTIONS-000012"; empty: there is none.
  const std::string& name() const { return name_; }
  // Its text, with the sections of `families` that only older ones have.
  std::string TextFor(const std::vector<std::string>& families) const;
  // Those of `families` that none describes.
  std::vector<std::string> MissingOf(
      const std::vector<std::string>& families) const;

 private:
  const std::string directory_;
  std::string name_;
  uint64_t number_ = 0;
  std::string text_;
  std::map<std::string, std::string> sections_;  // by family, the newest seen
};

}  // namespace sstferry
