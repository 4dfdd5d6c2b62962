// Reads the OPTIONS files of a database while another process (the owner)
// writes new ones. After the owner has added a column family to the MANIFEST,
// it soon writes an OPTIONS file with this family. But a newer file may replace
// this file before it is read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pipeline/options/options_text.h"
#include "rocksdb/status.h"

namespace sstferry {

// Remembers the newest section of each column family. Threads: used by one
// thread.
class SeenOptions {
 public:
  // `directory` is a real path.
  explicit SeenOptions(std::string directory)
      : directory_(std::move(directory)) {}

  // Reads the files that are newer than the last file that was read. If it
  // returns OK and name() is empty, the directory has no OPTIONS file.
  //   TryAgain  each time that the directory was listed, the owner replaced all
  //             listed files before they were read
  [[nodiscard]] rocksdb::Status Look();

  // Returns the name of the newest file that was read, such as
  // "OPTIONS-000012". Returns an empty string if no file was read.
  const std::string& name() const { return name_; }
  // Returns the text of the newest file. For those `families` that only older
  // files describe, adds their sections.
  std::string TextFor(const std::vector<std::string>& families) const;
  // Returns the settings in the newest file that was read.
  const OptionsText& newest() const { return newest_; }
  // Returns the settings in the newest complete file. After a crash, the newest
  // file may be empty or truncated. If no file is complete, HasDatabase() of
  // the result returns false.
  const OptionsText& database() const { return database_; }
  // Returns the names in `families` that no file describes.
  std::vector<std::string> MissingOf(
      const std::vector<std::string>& families) const;

 private:
  // Lists the directory once, and reads the OPTIONS files that are newer than
  // the last one that was read. Sets *listed to true if the list had such a
  // file, even if the owner replaced it before it was read.
  [[nodiscard]] rocksdb::Status ReadNewer(bool* listed);

  const std::string directory_;
  std::string name_;
  uint64_t number_ = 0;
  std::string text_;
  OptionsText newest_{""};  // settings in text_
  OptionsText database_{""};
  // Newest section of each family.
  std::map<std::string, std::string> sections_;
};

}  // namespace sstferry
