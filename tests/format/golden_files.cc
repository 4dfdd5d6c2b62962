#include "tests/format/golden_files.h"

#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"

namespace sstferry {
namespace {

std::string FromHex(const std::string& hex) {
  std::string bytes;
  std::string digits;
  for (const char c : hex) {
    if (isxdigit(static_cast<unsigned char>(c)) != 0) {
      digits.push_back(c);
    }
    if (digits.size() == 2) {
      bytes.push_back(static_cast<char>(std::stoi(digits, nullptr, 16)));
      digits.clear();
    }
  }
  REQUIRE(digits.empty());
  return bytes;
}

}  // namespace

std::filesystem::path TestsFolder() {
  return std::filesystem::path(SSTFERRY_SOURCE_DIR) / "tests";
}

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path);
  INFO(path.string());
  REQUIRE(in.good());
  return test::BytesIn(in);
}

void WriteText(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  REQUIRE(out.good());
}

Golden ReadGolden(const std::filesystem::path& path) {
  Golden golden;
  std::istringstream in(ReadText(path));
  std::string line;
  std::string hex;
  while (std::getline(in, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("# ", 0) == 0 && colon != std::string::npos) {
      golden.notes[line.substr(2, colon - 2)] = line.substr(colon + 2);
    } else {
      hex += line;
    }
  }
  golden.bytes = FromHex(hex);
  return golden;
}

std::string Wrapped(const std::string& hex) {
  std::string lines;
  for (size_t i = 0; i < hex.size(); i += 64) {
    lines += hex.substr(i, 64) + "\n";
  }
  return lines;
}

std::string CodeOf(const rocksdb::Status& status) {
  if (status.IsCorruption()) return "Corruption";
  if (status.IsIncomplete()) return "Incomplete";
  if (status.IsNotSupported()) return "NotSupported";
  return "other";
}

}  // namespace sstferry
