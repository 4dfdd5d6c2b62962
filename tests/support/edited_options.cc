#include "tests/support/edited_options.h"

#include <fstream>

#include "rocksdb/env.h"
#include "rocksdb/utilities/options_util.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"

namespace sstferry::test {

std::string NewestOptions(const std::string& dir) {
  std::string name;
  REQUIRE_OK(rocksdb::GetLatestOptionsFileName(
      dir, rocksdb::Env::Default(), &name));
  return dir + "/" + name;
}

void EditOptions(const std::string& dir, const std::string& from,
                 const std::string& to) {
  const std::string path = NewestOptions(dir);
  std::ifstream in(path, std::ios::binary);
  std::string text = BytesIn(in);
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace sstferry::test
