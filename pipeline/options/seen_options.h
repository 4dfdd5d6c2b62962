// Reads the OPTIONS files of a database while the owner writes new ones. The
// file that describes a new family appears shortly after the family appears in
// the MANIFEST, and a newer file may replace it before it is read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pipeline/options/options_text.h"
#include "rocksdb/status.h"

namespace sstferry {

// Remembers the newest section of each family. Threads: one.
class SeenOptions {
 public:
  // `directory` is a real path.
  explicit SeenOptions(std::string directory)
      : directory_(std::move(directory)) {}

  // Reads files newer than the last one read. If it returns OK and name() is
  // empty, the directory has no OPTIONS file.
  //   TryAgain  the owner replaced all listed files before they were read, in
  //             several listings
  [[nodiscard]] rocksdb::Status Look();

  // Returns the name of the newest file that was read, such as
  // "OPTIONS-000012"; empty: no file was read.
  const std::string& name() const { return name_; }
  // Returns the text of this file, plus the sections of those `families` that
  // only older files describe.
  std::string TextFor(const std::vector<std::string>& families) const;
  // Returns the settings in this file.
  const OptionsText& newest() const { return newest_; }
  // Returns the settings in the newest complete file: a crash can leave the
  // newest file empty or truncated. If no file is complete, HasDatabase() of
  // the result is false.
  const OptionsText& database() const { return database_; }
  // Returns the names in `families` that no file describes.
  std::vector<std::string> MissingOf(
      const std::vector<std::string>& families) const;

 private:
  // Reads newer files. Sets *listed to true if the directory lists any.
  [[nodiscard]] rocksdb::Status ReadNewer(bool* listed);

  const std::string directory_;
  std::string name_;
  uint64_t number_ = 0;
  std::string text_;
  OptionsText newest_{""};  // of text_
  OptionsText database_{""};
  // Newest section of each family.
  std::map<std::string, std::string> sections_;
};

}  // namespace sstferry
