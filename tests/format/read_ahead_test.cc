#include "format/read_ahead.h"

#include <string>

#include "rocksdb/slice.h"
#include "tests/support/catch.h"

namespace sstferry::read_ahead_test {
namespace {

using rocksdb::Slice;

// A source whose byte i is i / 100. It reads into the caller's memory, as a
// file does.
class Hundreds : public ByteSource {
 public:
  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     Slice* out) const override {
    ++reads;
    scratch->clear();
    for (uint64_t at = offset; at < offset + n; ++at) {
      scratch->push_back(static_cast<char>(at / 100));
    }
    *out = *scratch;
    return rocksdb::Status::OK();
  }
  uint64_t size() const override { return 10000; }

  mutable int reads = 0;
};

}  // namespace

TEST_CASE("Small reads cost one large one, and their bytes stay while others "
          "are read",
          "[format]") {
  const Hundreds file;
  const ReadAhead ahead(file, 1000);
  std::string first_scratch;
  std::string scratch;
  Slice first;
  Slice bytes;
  REQUIRE_OK(ahead.Read(0, 100, &first_scratch, &first));
  for (uint64_t at = 100; at < 1000; at += 100) {
    REQUIRE_OK(ahead.Read(at, 100, &scratch, &bytes));
    REQUIRE(bytes == std::string(100, static_cast<char>(at / 100)));
  }
  REQUIRE(file.reads == 1);
  // A parser holds the block of an index while it reads partitions elsewhere.
  REQUIRE_OK(ahead.Read(5000, 100, &scratch, &bytes));
  REQUIRE(bytes == std::string(100, '\x32'));
  REQUIRE(file.reads == 2);
  REQUIRE(first == std::string(100, '\0'));
  // More bytes than the buffer keeps, and the file's end.
  REQUIRE_OK(ahead.Read(0, 1001, &scratch, &bytes));
  REQUIRE(bytes.size() == 1001);
  REQUIRE_OK(ahead.Read(9950, 50, &scratch, &bytes));
  REQUIRE(bytes == std::string(50, '\x63'));
}

TEST_CASE("Bytes that outlive their source are not copied", "[format]") {
  const std::string all(5000, 'a');
  const SliceSource source(all);
  const ReadAhead ahead(source, 1000);
  std::string scratch;
  Slice bytes;
  REQUIRE_OK(ahead.Read(10, 20, &scratch, &bytes));
  REQUIRE(bytes.data() == all.data() + 10);
}

}  // namespace sstferry::read_ahead_test
