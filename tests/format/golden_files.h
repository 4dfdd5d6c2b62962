// Reads and writes files of tests/golden and tests/golden_errors, whose format
// golden_test.cc describes.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

struct Golden {
  std::map<std::string, std::string> notes;
  std::string bytes;
};

std::filesystem::path TestsFolder();
std::string ReadText(const std::filesystem::path& path);
void WriteText(const std::filesystem::path& path, const std::string& text);
Golden ReadGolden(const std::filesystem::path& path);

// Splits hex digits into lines of 64.
std::string Wrapped(const std::string& hex);
// Returns the name of the status code: "Corruption", ...
std::string CodeOf(const rocksdb::Status& status);

}  // namespace sstferry
