// Digests with a secret, as FORMAT.md specifies them.
#include "format/digest_key.h"

#include <string>

#include "tests/support/catch.h"

namespace sstferry::digest_key_test {
namespace {

TEST_CASE("Digests with a secret are as FORMAT.md specifies", "[format]") {
  // Computed with the xxHash library alone, following FORMAT.md.
  const DigestKey key(rocksdb::Slice("\1\2\3\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
  REQUIRE(ToHex(key.DigestOf("abc")) == "c6838f18b7cd0ca3b8c24f5de0c7b337");
  REQUIRE(ToHex(key.DigestOf(std::string(100, 'd'))) == "e4253838aaa79d6eb73270c599621dc3");
  REQUIRE(ToHex(key.DigestOf(std::string(300, 'd'))) == "9e9f11902fc6b7ebaef5541979c93d73");
}

TEST_CASE("Another secret gives other digests", "[format]") {
  REQUIRE_FALSE(DigestKey("one").DigestOf("abc") ==
                DigestKey("two").DigestOf("abc"));
  REQUIRE_FALSE(DigestKey("one").DigestOf("abc") == DigestOf("abc"));
}

}  // namespace
}  // namespace sstferry::digest_key_test
