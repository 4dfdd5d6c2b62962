// Makes some of the files in tests/golden_errors: frames, journals, leases and
// streams. Most have correct digests, but wrong contents. golden_test.cc checks
// the error of each. To write them again after a deliberate change:
// test_format "[.rewrite]"
#include <functional>

#include "format/coding.h"
#include "format/lease.h"
#include "format/limits.h"
#include "format/sealed_file.h"
#include "format/stream_frame.h"
#include "tests/format/golden_files.h"
#include "tests/format/samples.h"
#include "tests/support/annotate.h"
#include "tests/support/catch.h"

namespace sstferry::golden_bad_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

struct Bad {
  std::string name;
  const char* why;
  std::string bytes;
};

std::string Fixed32(uint32_t value) {
  char bytes[4];
  EncodeFixed32(bytes, value);
  return std::string(bytes, sizeof(bytes));
}

// Returns the sample's payload with the bytes at an offset replaced.
template <typename Message>
std::string With(const Message& sample, size_t at, const std::string& bytes) {
  return Encode(sample).replace(at, bytes.size(), bytes);
}

std::vector<Bad> BadMessages() {
  const auto frame = [](FrameType type, const std::string& payload) {
    return MakeFrame(type, 0, payload);
  };
  const std::string open = Encode(SampleOpenRequest());
  const size_t purpose_at = 4 + SampleOpenRequest().database.size();
  std::string reply = Encode(SampleEntriesReply());
  reply.back() = 2;
  const std::string part_end = Encode(SamplePartEnd());
  return {
      {"message_number_too_big", "more parts than a plan may have",
       frame(FrameType::kPlanEnd,
             With(SamplePlanEnd(), 0, Fixed32(kMaxParts + 1)))},
      {"message_cut_in_field", "ends one byte before its last field does",
       frame(FrameType::kPartEnd,
             part_end.substr(0, part_end.size() - 1))},
      {"message_unknown_purpose", "there is no purpose 9",
       frame(FrameType::kOpenRequest,
             With(SampleOpenRequest(), purpose_at, "\x09"))},
      {"message_bool_2", "a boolean is 0 or 1",
       frame(FrameType::kEntriesReply, reply)},
      {"message_lane_too_big", "lanes are numbered below 64",
       frame(FrameType::kHello,
             With(SampleHello(), 29, Fixed32(kMaxLanes)))},
      {"message_text_too_long", "a text longer than any text may be",
       frame(FrameType::kEnd,
             std::string(1, '\1') + Fixed32(kMaxMessageTextBytes + 1) +
                 std::string(8, 'x'))},
      {"message_empty", "a Ping without its token",
       frame(FrameType::kPing, "")},
      {"message_unknown_chunk_kind", "there is no kind 7 of chunks",
       frame(FrameType::kChunkBegin, With(SampleChunkBegin(), 8, "\x07"))},
  };
}

std::vector<Bad> BadJournals() {
  const std::string whole = SampleJournal();
  const std::vector<uint64_t> offsets = SampleJournalOffsets();
  std::string reserved = whole;
  reserved[offsets[1] + 5] = 1;
  // The second record, encoded for a place one byte after its real one.
  JournalRecord record;
  REQUIRE_OK(ReadJournalRecord(whole, offsets[1], &record));
  std::string sealed;
  AppendJournalRecord(record.type, record.payload, offsets[1] + 1, &sealed);
  std::string moved = whole;
  moved.replace(offsets[1], sealed.size(), sealed);
  std::string huge = whole;
  huge.replace(offsets[1], 4, "\xff\xff\xff\xff");
  std::string length = whole;
  length[offsets[1] + 2] = '\x7f';
  std::string bit = whole;
  bit[offsets[1] + kJournalHeaderBytes] ^= 1;
  std::string type = whole;
  type[offsets[2] + 4] = 10;
  return {
      {"journal_length",
       "the second record claims to reach behind the end, others follow",
       length},
      {"journal_payload_bit", "one bit of the second record is flipped", bit},
      {"journal_unknown_type", "record type 10 does not exist, others follow",
       type},
      {"journal_reserved", "reserved bytes of a record must be 0", reserved},
      {"journal_moved", "a whole record that belongs to another offset",
       moved},
      {"journal_huge", "a length no record may have, others follow", huge},
  };
}

std::vector<Bad> BadLeases() {
  std::string whole;
  REQUIRE_OK(EncodeLease(SampleLease(), &whole));
  const std::string payload = whole.substr(kSealedHeaderBytes);
  const auto file = [&whole](size_t at, const std::string& bytes) {
    return std::string(whole).replace(at, bytes.size(), bytes);
  };
  // Returns a lease with changed bytes and the matching digest. A negative `at`
  // counts from the end.
  const auto sealed = [&payload](ptrdiff_t at, const std::string& bytes) {
    const ptrdiff_t from_end = static_cast<ptrdiff_t>(payload.size()) + at;
    return SealedLease(std::string(payload).replace(
        static_cast<size_t>(at < 0 ? from_end : at), bytes.size(), bytes));
  };
  return {
      {"lease_short", "one byte less than a header",
       whole.substr(0, kSealedHeaderBytes - 1)},
      {"lease_magic", "magic of a lease of another format",
       file(7, "2")},
      {"lease_cut", "its last byte is missing",
       whole.substr(0, whole.size() - 1)},
      {"lease_huge", "a length no lease may have",
       file(8, Fixed32(UINT32_MAX))},
      {"lease_reserved", "reserved bytes of the header must be 0",
       file(12, "\x01")},
      {"lease_payload_bit", "one bit of the database's name is flipped",
       file(kSealedHeaderBytes + 20, "e")},
      {"lease_empty", "whole, and says nothing", SealedLease("")},
      {"lease_name_too_long", "a name that would reach behind the end",
       sealed(16, Fixed32(UINT32_MAX))},
      {"lease_many_names", "an owner of more names than are recorded",
       sealed(-117, Fixed32(kMaxOwnerNames + 1))},
      {"lease_lanes_0", "a plan for no lane", sealed(-79, Fixed32(0))},
      {"lease_bool_2", "a boolean is 0 or 1", sealed(-61, "\x02")},
      {"lease_ttl", "a time to live of more than a month",
       sealed(-12, Fixed32(static_cast<uint32_t>(kMaxLeaseSeconds) + 1))},
      {"lease_trailing_byte", "one byte behind the last field",
       SealedLease(payload + '\0')},
  };
}

std::vector<Bad> BadStreams() {
  const std::string good = SampleStream();
  const auto with = [&good](size_t at, const std::string& bytes) {
    return std::string(good).replace(at, bytes.size(), bytes);
  };
  constexpr size_t kData = kStreamHelloBytes + kStreamFrameHeaderBytes;
  constexpr size_t kCredit = kData + kStreamFrameHeaderBytes + 5;
  return {
      {"stream_magic", "a shell said something first", with(0, "Welcome!")},
      {"stream_little_credit", "less than one frame needs",
       with(8, Fixed32(kMinStreamCreditBytes - 1))},
      {"stream_much_credit", "more than a peer may ask to be kept",
       with(8, Fixed32(kMaxStreamCreditBytes + 1))},
      {"stream_kind_0", "there is no kind 0",
       with(kStreamHelloBytes, std::string(1, '\0'))},
      {"stream_kind_5", "there is no kind 5", with(kStreamHelloBytes, "\5")},
      {"stream_reserved", "the reserved bytes must be 0",
       with(kStreamHelloBytes + 3, "\1")},
      {"stream_channel_0", "channels begin at 1",
       with(kStreamHelloBytes + 4, Fixed32(0))},
      {"stream_open_value", "an Open has no value",
       with(kStreamHelloBytes + 8, Fixed32(1))},
      {"stream_data_empty", "Data without bytes", with(kData + 8, Fixed32(0))},
      {"stream_data_long", "more Data than a frame may have",
       with(kData + 8, Fixed32(kMaxStreamDataBytes + 1))},
      {"stream_credit_huge", "more credit than a channel may have",
       with(kCredit + 8, Fixed32(kMaxStreamCreditBytes + 1))},
  };
}

Status ErrorOf(const Bad& bad, const std::string& kind) {
  std::string text;
  Lease lease;
  return kind == "journal"  ? AnnotateJournal(bad.bytes, &text)
         : kind == "lease"  ? DecodeLease(bad.bytes, &lease)
         : kind == "stream" ? AnnotateStream(bad.bytes, &text)
                            : AnnotateFrame(bad.bytes, &text);
}

void ForEach(const std::function<void(const Bad&, const std::string& kind)>&
                 visit) {
  for (const Bad& bad : BadMessages()) {
    visit(bad, "frame");
  }
  for (const Bad& bad : BadJournals()) {
    visit(bad, "journal");
  }
  for (const Bad& bad : BadLeases()) {
    visit(bad, "lease");
  }
  for (const Bad& bad : BadStreams()) {
    visit(bad, "stream");
  }
}

std::filesystem::path PathOf(const Bad& bad) {
  return TestsFolder() / "golden_errors" / (bad.name + ".hex");
}

}  // namespace

TEST_CASE("Bad golden frames, journals and leases are what their makers make",
          "[format][corruption]") {
  ForEach([](const Bad& bad, const std::string& kind) {
    INFO(bad.name);
    Golden golden = ReadGolden(PathOf(bad));
    REQUIRE(golden.notes["kind"] == kind);
    REQUIRE(golden.notes["why"] == bad.why);
    REQUIRE(ToHex(Slice(golden.bytes)) == ToHex(Slice(bad.bytes)));
  });
}

TEST_CASE("The bad golden frames, journals and leases are written again",
          "[.rewrite]") {
  ForEach([](const Bad& bad, const std::string& kind) {
    INFO(bad.name);
    const Status status = ErrorOf(bad, kind);
    REQUIRE_FALSE(status.ok());
    WriteText(PathOf(bad),
              "# kind: " + kind + "\n# why: " + bad.why + "\n# status: " +
                  CodeOf(status) + "\n# error: " + MessageOf(status) +
                  "\n" + Wrapped(ToHex(Slice(bad.bytes))));
  });
}

}  // namespace sstferry::golden_bad_test
