// The files of tests/golden and tests/golden_errors. See golden_test.cc.
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

// In lines of 64.
std::string Wrapped(const std::string& hex);
// "Corruption", ...
std::string CodeOf(const rocksdb::Status& status);

}  // namespace sstferry
