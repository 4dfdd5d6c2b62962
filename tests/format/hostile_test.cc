// Decodes hostile frames, payloads and journals: none may crash a receiver or
// take much memory.
#include <random>

#include "format/limits.h"
#include "tests/format/allocations.h"
#include "tests/format/samples.h"
#include "tests/support/annotate.h"
#include "tests/support/catch.h"

namespace sstferry::hostile_test {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

using Random = std::mt19937_64;

// Damages a few places: changes single bytes or 32-bit lengths, cuts, inserts.
void Mutate(Random* random, std::string* bytes) {
  for (uint64_t n = 1 + (*random)() % 4; n > 0 && !bytes->empty(); --n) {
    const size_t at = (*random)() % bytes->size();
    switch ((*random)() % 5) {
      case 0:
        (*bytes)[at] = static_cast<char>((*random)());
        break;
      case 1:
        for (size_t i = at; i < std::min(at + 4, bytes->size()); ++i) {
          (*bytes)[i] = (*random)() % 2 == 0 ? '\xff' : '\0';
        }
        break;
      case 2:
        bytes->resize(at);
        break;
      case 3:
        bytes->insert(at, 1 + (*random)() % 32, '\0');
        break;
      default:
        (*bytes)[at] ^= static_cast<char>(1u << ((*random)() % 8));
        break;
    }
  }
}

// Decodes a payload. Requires that the memory for it is in proportion to its
// size.
Status DecodeWithinBounds(FrameType type, const Slice& payload) {
  const size_t before = AllocatedBytes();
  const Status status = DecodePayload(type, payload);
  const size_t allocated = AllocatedBytes() - before;
  if (allocated > 10 * payload.size() + 4096) {
    FAIL(FrameTypeName(type) << " of " << payload.size() << " bytes took "
                             << allocated << " bytes of memory");
  }
  return status;
}

void SurviveFrames(uint64_t count, uint64_t seed) {
  Random random(seed);
  const std::vector<SampleFrame> samples = SampleFrames();
  uint64_t decoded = 0;
  uint64_t refused = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const SampleFrame& sample = samples[random() % samples.size()];
    std::string payload = sample.payload;
    Mutate(&random, &payload);
    std::string frame = MakeFrame(sample.type, i, payload);
    if (random() % 2 == 0) {
      Mutate(&random, &frame);
    }
    FrameHeader header;
    Status status = DecodeFrameHeader(frame, &header);
    if (status.ok()) {
      const Slice rest(frame.data() + kFrameHeaderBytes,
                       frame.size() - kFrameHeaderBytes);
      REQUIRE(header.payload_bytes <= kMaxPayloadBytes);
      status = CheckFrameDigest(frame.data(), header, rest);
      if (status.ok()) {
        status = DecodeWithinBounds(header.type, rest);
      }
    }
    ++(status.ok() ? decoded : refused);
  }
  // If either is rare, the mutations are too weak or too strong.
  REQUIRE(decoded > count / 50);
  REQUIRE(refused > count / 2);
}

}  // namespace

TEST_CASE("Mutated frames are refused or decoded within memory bounds",
          "[format][corruption]") {
  SurviveFrames(200000, 1);
}

TEST_CASE("A million mutated frames are refused or decoded within bounds",
          "[format][corruption][.slow]") {
  SurviveFrames(1000000, 2);
}

TEST_CASE("Random bytes are refused by every message without harm",
          "[format][corruption]") {
  Random random(3);
  for (int i = 0; i < 5000; ++i) {
    std::string payload(random() % 200, '\0');
    for (char& byte : payload) {
      byte = static_cast<char>(random() % 4 == 0 ? random() : 0);
    }
    for (const SampleFrame& sample : SampleFrames()) {
      DecodeWithinBounds(sample.type, payload).PermitUncheckedError();
    }
  }
}

TEST_CASE("Lists of the smallest items stay within memory bounds",
          "[format][corruption]") {
  // A count followed by zeros: the most items that a payload can contain.
  for (const SampleFrame& sample : SampleFrames()) {
    for (uint32_t count = 1; count < (1u << 18); count *= 2) {
      std::string payload(256u << 10, '\0');
      for (int i = 0; i < 4; ++i) {
        payload[i] = static_cast<char>(count >> (8 * i));
      }
      DecodeWithinBounds(sample.type, payload).PermitUncheckedError();
    }
  }
}

TEST_CASE("Mutated journals and frames are dumped without harm",
          "[format][corruption]") {
  Random random(4);
  for (int i = 0; i < 2000; ++i) {
    std::string journal = SampleJournal();
    Mutate(&random, &journal);
    std::string text;
    AnnotateJournal(journal, &text).PermitUncheckedError();
    const SampleFrame sample =
        SampleFrames()[static_cast<size_t>(random() % 26)];
    std::string payload = sample.payload;
    Mutate(&random, &payload);
    AnnotateFrame(MakeFrame(sample.type, 0, payload), &text)
        .PermitUncheckedError();
    REQUIRE(text.size() < 100000);
  }
}

}  // namespace sstferry::hostile_test
