#include "format/digest.h"

#include <rapidcheck.h>

#include <ctime>

#include "format/coding.h"
#include "tests/support/catch.h"

namespace sstferry::digest_test {

using rocksdb::Slice;

TEST_CASE("Digests match the published XXH3 vectors", "[format]") {
  REQUIRE(Digest64("") == 0x2d06800538d394c2u);
  REQUIRE(ToHex(DigestOf("")) == "99aa06d3014798d86001c324468d497f");
  REQUIRE(DigestOf("").high == 0x99aa06d3014798d8u);
}

TEST_CASE("A stream of parts has the digest of the whole", "[format]") {
  const std::string data(5000, 'd');
  for (uint64_t seed : {uint64_t{0}, uint64_t{12345}}) {
    Digest64Stream stream(seed);
    stream.Add(Slice(data.data(), 3));
    stream.Add(Slice(data.data() + 3, data.size() - 3));
    REQUIRE(stream.Finish() == Digest64(data, seed));
  }
  REQUIRE(Digest64(data, 1) != Digest64(data, 2));
}

TEST_CASE("A chunk's digest is that of its frames' digests in order",
          "[format]") {
  ChunkDigest chunk;
  REQUIRE(chunk.Finish() == DigestOf(""));
  std::string bytes;
  for (uint64_t digest = 1; digest < 100; ++digest) {
    chunk.AddFrame(digest << 32);
    PutFixed64(&bytes, digest << 32);
  }
  REQUIRE(chunk.Finish() == DigestOf(bytes));

  ChunkDigest swapped;
  swapped.AddFrame(2);
  swapped.AddFrame(1);
  ChunkDigest ordered;
  ordered.AddFrame(1);
  ordered.AddFrame(2);
  REQUIRE_FALSE(swapped.Finish() == ordered.Finish());
}

TEST_CASE("A part's chain is the digest of its chunks' digests in order",
          "[format]") {
  PartDigest part;
  REQUIRE(part.Finish() == DigestOf(""));
  part.AddChunk({1, 2});
  part.AddChunk({3, 4});
  std::string bytes;
  for (uint64_t half : {2, 1, 4, 3}) {
    PutFixed64(&bytes, half);
  }
  REQUIRE(part.Finish() == DigestOf(bytes));
}

TEST_CASE("A content digest is that of lengths, keys and values in order",
          "[format]") {
  using Entries = std::vector<std::pair<std::string, std::string>>;
  REQUIRE(rc::check([](const Entries& some) {
    auto entries = some;
    const size_t long_bytes = *rc::gen::inRange<size_t>(0, 10000);
    entries.emplace_back("long", std::string(long_bytes, 'v'));
    entries.emplace_back(std::string(4095, 'k'), "");
    ContentDigest content;
    std::string bytes;
    bool is_entity = false;
    for (const auto& [key, value] : entries) {
      is_entity = !is_entity;
      content.Add(key, value, is_entity);
      PutFixed32(&bytes, static_cast<uint32_t>(key.size()));
      PutFixed32(&bytes, static_cast<uint32_t>(value.size()) |
                             (is_entity ? ContentDigest::kEntityMark : 0));
      bytes += key + value;
    }
    RC_ASSERT(content.Finish() == DigestOf(bytes));
    RC_ASSERT(content.Finish() == DigestOf(bytes));
    RC_ASSERT(content.entries() == entries.size());
    RC_ASSERT(content.key_value_bytes() ==
              bytes.size() - 8 * entries.size());
  }));
}

TEST_CASE("A content digest can be taken midway and moved", "[format]") {
  ContentDigest content;
  content.Add("a", "1");
  REQUIRE(content.Finish() != ContentDigest().Finish());
  ContentDigest moved = std::move(content);
  moved.Add("b", "2");
  ContentDigest direct;
  direct.Add("a", "1");
  direct.Add("b", "2");
  REQUIRE(moved.Finish() == direct.Finish());
}

TEST_CASE("A content digest costs less CPU time per entry than reading it",
          "[format][.slow]") {
  const std::string key(16, 'k');
  const std::string value(256, 'v');
  constexpr int kEntries = 10000000;
  ContentDigest content;
  const std::clock_t start = std::clock();
  for (int i = 0; i < kEntries; ++i) {
    content.Add(key, value);
  }
  const double nanos = 1e9 * static_cast<double>(std::clock() - start) /
                       CLOCKS_PER_SEC / kEntries;
  WARN("CPU ns per entry of 16 + 256 bytes: " << nanos);
  REQUIRE(content.entries() == kEntries);
  // About 30 ns were measured. Far more means that the buffer that collects
  // small entries does not work.
  REQUIRE(nanos < 200);
}

}  // namespace sstferry::digest_test
