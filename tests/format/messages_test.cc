#include "format/messages.h"

#include <rapidcheck.h>

#include "format/coding.h"
#include "format/limits.h"
#include "tests/format/random_fields.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"

namespace sstferry::messages_test {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

template <typename Message>
void RequireRoundTrip(const Message& message) {
  const std::string payload = Encode(message);
  Message decoded;
  REQUIRE_OK(Decode(payload, &decoded));
  REQUIRE(decoded == message);
}

template <typename... Messages>
void RequireRoundTrips(const Messages&... messages) {
  (RequireRoundTrip(messages), ...);
}

template <typename Message>
void CheckRandom() {
  Message message = RandomMessage<Message>();
  if constexpr (std::is_same_v<Message, Hello>) {
    message.newest_version =
        std::max(message.oldest_version, message.newest_version);
  }
  const std::string payload = Encode(message);
  // old contents must be overwritten
  Message decoded = RandomMessage<Message>();
  const Status status = Decode(payload, &decoded);
  if (!status.ok()) {
    RC_FAIL(status.ToString());
  }
  RC_ASSERT(decoded == message);

  const size_t cut = *rc::gen::inRange<size_t>(0, payload.size() + 1);
  Message other;
  if (cut < payload.size()) {
    const Slice truncated(payload.data(), cut);
    RC_ASSERT(Decode(truncated, &other).IsCorruption());
  }
  RC_ASSERT(Decode(payload + "x", &other).IsCorruption());
}

template <typename... Messages>
void CheckAllRandom() {
  (CheckRandom<Messages>(), ...);
}

// Decodes `payload`, requires Corruption and returns its message.
template <typename Message>
std::string ErrorOf(const std::string& payload) {
  Message message;
  const Status status = Decode(payload, &message);
  REQUIRE(status.IsCorruption());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  return MessageOf(status);
}

}  // namespace

TEST_CASE("Every message is decoded with all its fields", "[format]") {
  RequireRoundTrips(SampleHello(), SampleHelloAck(), SampleEnd(),
                    SampleListRequest(), SampleListReply(),
                    SampleOpenRequest(), SampleOpened(), SampleFamily(),
                    SampleParts(), SamplePlanItems(),
                    SamplePlanEnd(), SamplePing(), SampleStats(),
                    SampleFinish(), SampleCompress(), SampleReceived(),
                    SampleStatusRequest(), SampleStatusReply(),
                    SampleFactsRequest(), SampleFactsReply(),
                    SamplePinRequest(), SamplePinReply(), SamplePinEnd(),
                    SampleFollowRequest(), SampleWalBytes(),
                    SampleFollowEnd(),
                    SampleOtherFileRequest(), SampleOtherFilePart(),
                    SampleCloneSet(),
                    SampleCloneFiles());
  RequireRoundTrips(SamplePartRequest(), SampleChunkBegin(),
                    SampleChunkEnd(), SamplePartEnd(), SampleDigestRequest(),
                    SampleDigestReply(), SampleEntriesRequest(),
                    SampleEntriesReply(), SampleChunkAck(),
                    SampleUnitDigestRequest(), SampleBusy(),
                    SampleGroupRequest(),
                    SampleGroupReply(), SampleDeltaRequest(),
                    SampleFileDigestRequest(), SampleFileDigestReply(),
                    SampleSiftRequest(), SampleSiftReply());
  RequireRoundTrips(SampleJournalTransfer(), SampleJournalPlan(),
                    SampleJournalChunk(), SampleJournalUnit(),
                    SampleJournalIngested(),
                    SampleJournalTargetFiles(), SampleJournalPartDone(),
                    SampleJournalComplete());
}

TEST_CASE("Every message round-trips with random contents", "[format]") {
  REQUIRE(rc::check([] {
    CheckAllRandom<Hello, HelloAck, End, ListRequest, ListReply, OpenRequest,
                   Opened, Family, Parts, PlanItems, PlanEnd, Ping, Stats,
                   Finish, Compress, Received, StatusRequest, StatusReply,
                   FactsRequest, FactsReply, FollowRequest, WalBytes, FollowEnd,
                   PinRequest, PinReply, PinEnd, OtherFileRequest,
                   OtherFilePart,
                   CloneSet, CloneFiles>();
    CheckAllRandom<PartRequest, ChunkBegin, ChunkEnd, PartEnd,
                   DigestRequest, DigestReply, EntriesRequest,
                   EntriesReply, ChunkAck, UnitDigestRequest, Busy,
                   GroupRequest, GroupReply, DeltaRequest, FileDigestRequest,
                   FileDigestReply, SiftRequest, SiftReply>();
    CheckAllRandom<JournalTransfer, JournalPlan, JournalChunk,
                   JournalIngested, JournalTargetFiles, JournalPartDone,
                   JournalComplete>();
  }));
}

TEST_CASE("Every truncation of a message is rejected",
          "[format][corruption]") {
  for (const SampleFrame& sample : SampleFrames()) {
    if (sample.type == FrameType::kChunkData) {
      continue;
    }
    REQUIRE_OK(DecodePayload(sample.type, sample.payload));
    for (size_t bytes = 0; bytes < sample.payload.size(); ++bytes) {
      const Status status =
          DecodePayload(sample.type, Slice(sample.payload.data(), bytes));
      INFO(FrameTypeName(sample.type) << " cut to " << bytes);
      REQUIRE(status.IsCorruption());
    }
    REQUIRE(DecodePayload(sample.type, sample.payload + '\0').IsCorruption());
  }
}

TEST_CASE("A decode error names message, field, bound and offset",
          "[format][corruption]") {
  std::string payload;
  PutFixed32(&payload, kMaxParts);
  REQUIRE(ErrorOf<PartRequest>(payload) ==
          "PartRequest: part_id: expected at most 262143, found 262144, "
          "offset 0");

  payload = Encode(SampleParts());
  payload[50] = '\xff';  // the highest byte of parts[1].family
  REQUIRE(ErrorOf<Parts>(payload) ==
          "Parts: parts[1].family: expected at most 16383, found 4278190080, "
          "offset 47");

  REQUIRE(ErrorOf<Ping>("1234567") ==
          "Ping: token: expected 8 bytes, found 7, offset 0");
  REQUIRE(ErrorOf<Ping>("123456789") ==
          "Ping: end: expected no more bytes, found 1, offset 8");
}

TEST_CASE("The bytes of a WAL have the number of a file",
          "[format][corruption]") {
  std::string payload = Encode(SampleWalBytes());
  payload.replace(0, 8, 8, '\0');
  REQUIRE(ErrorOf<WalBytes>(payload) ==
          "WalBytes: wal_number: expected at least 1, found 0, offset 0");
  payload.replace(0, 8, 8, '\xff');
  REQUIRE(ErrorOf<WalBytes>(payload).starts_with(
      "WalBytes: wal_number: expected at most 4611686018427387904, found "));
}

TEST_CASE("Unknown values of enums and flags are rejected",
          "[format][corruption]") {
  std::string payload = Encode(SampleEnd());
  payload[0] = kMaxEndState + 1;
  REQUIRE(ErrorOf<End>(payload) ==
          "End: state: expected at most 15, found 16, offset 0");

  payload = Encode(SampleChunkBegin());
  payload[8] = kMaxPartKind + 1;
  REQUIRE(ErrorOf<ChunkBegin>(payload).find("kind") != std::string::npos);

  payload = Encode(SamplePartRequest());
  payload[4] = 2;
  REQUIRE(ErrorOf<PartRequest>(payload).find("after") != std::string::npos);

  payload = Encode(SampleEntriesReply());
  payload.back() = 2;
  REQUIRE(ErrorOf<EntriesReply>(payload).find("complete") !=
          std::string::npos);

  Hello hello = SampleHello();
  hello.oldest_version = 3;
  REQUIRE(ErrorOf<Hello>(Encode(hello)).find("oldest_version") !=
          std::string::npos);
}

TEST_CASE("A key of the maximum length fits, a longer one does not",
          "[format][corruption]") {
  ChunkEnd chunk = SampleChunkEnd();
  chunk.smallest.assign(kMaxKeyBytes, '\0');
  chunk.largest.assign(kMaxKeyBytes, '\xff');
  RequireRoundTrip(chunk);
  REQUIRE(Encode(chunk).size() < kMaxPayloadBytes);

  std::string payload;
  PutFixed32(&payload, 0);
  PutFixed8(&payload, 1);
  PutBytes(&payload, std::string(kMaxKeyBytes + 1, 'k'));
  PutFixed32(&payload, 0);
  REQUIRE(ErrorOf<PartRequest>(payload) ==
          "PartRequest: after: expected at most 262144 bytes, found a length "
          "of 262145, offset 5");
}

TEST_CASE("A count that the rest of a payload cannot hold is rejected",
          "[format][corruption]") {
  for (uint32_t count : {2u, kMaxParts, 0xffffffffu}) {
    std::string payload;
    PutFixed32(&payload, count);
    payload.append(35, '\0');  // one part takes at least 18 bytes
    REQUIRE(ErrorOf<Parts>(payload).find("found a count of " +
                                          std::to_string(count)) !=
            std::string::npos);
  }
}

TEST_CASE("Texts for a person are truncated to fit when encoded", "[format]") {
  End end{EndState::kInternal, std::string(10000, 'm'), "w"};
  End decoded;
  REQUIRE_OK(Decode(Encode(end), &decoded));
  REQUIRE(decoded.message == std::string(kMaxMessageTextBytes, 'm'));
  REQUIRE(decoded.where == "w");
}

TEST_CASE("Batches cover a list in order and fit into frames", "[format]") {
  std::vector<Part> parts;
  for (uint32_t id = 0; id < 3000; ++id) {
    const size_t bytes = id % 1000 == 7 ? kMaxKeyBytes : id % 300;
    parts.push_back(KeyPart(
        id, 1, {std::string(bytes, 'a'), std::string(bytes, 'b')}, id));
  }
  std::vector<Part> received;
  size_t frames = 0;
  for (size_t begin = 0; begin < parts.size(); ++frames) {
    const size_t end = BatchEnd(parts, begin);
    REQUIRE(end > begin);
    const Parts batch{{parts.begin() + begin, parts.begin() + end}};
    const std::string payload = Encode(batch);
    REQUIRE(payload.size() <= kMaxPayloadBytes);
    REQUIRE((end - begin == 1 || payload.size() <= kBatchBytes + 4));
    received.insert(received.end(), batch.parts.begin(), batch.parts.end());
    begin = end;
  }
  REQUIRE(received == parts);
  REQUIRE(frames < 20);
}

TEST_CASE("EncodedBytes returns what an item adds to its payload", "[format]") {
  REQUIRE(rc::check([] {
    const auto part = RandomMessage<Part>();
    RC_ASSERT(Encode(Parts{{part}}).size() == 4 + EncodedBytes(part));
    const auto item = RandomMessage<PlanItem>();
    RC_ASSERT(Encode(PlanItems{{item}}).size() == 4 + EncodedBytes(item));
    const auto file = RandomMessage<CloneFile>();
    RC_ASSERT(Encode(CloneFiles{{file}}).size() == 4 + EncodedBytes(file));
    const ReceivedPart received;
    RC_ASSERT(Encode(Received{{received}}).size() ==
              4 + EncodedBytes(received));
    const auto entry = RandomMessage<EntryDigest>();
    RC_ASSERT(Encode(EntriesReply{{entry}, false}).size() ==
              5 + EncodedBytes(entry));
  }));
}

TEST_CASE("Totals add up field by field", "[format]") {
  Totals totals{1, 2, 3, 4};
  totals += Totals{10, 20, 30, 40};
  REQUIRE(totals == Totals{11, 22, 33, 44});
}

TEST_CASE(
    "Keys that are encoded as a difference to the previous key are decoded",
    "[format]") {
  REQUIRE(rc::check("shared bytes", [](const std::vector<std::string>& keys) {
    std::string before;
    std::string told;
    for (const std::string& key : keys) {
      GroupEntry entry{told + key, {1, 2}};  // with or without a common prefix
      const std::string whole = entry.key;
      LeaveOutShared(before, &entry);
      RC_ASSERT(entry.key.size() + entry.shared_bytes == whole.size());
      RC_ASSERT(PutBackShared(before, &entry));
      RC_ASSERT(entry.key == whole);
      RC_ASSERT(entry.shared_bytes == 0);
      before = whole;
      told = *rc::gen::element<std::string>("", before);
    }
  }));
}

TEST_CASE("A key cannot share more bytes than the previous key has",
          "[format]") {
  GroupEntry entry{"rest", {1, 2}, 4};
  REQUIRE(!PutBackShared("abc", &entry));
  REQUIRE(PutBackShared("abcd", &entry));
  REQUIRE(entry.key == "abcdrest");
  GroupEntry longest{std::string(kMaxKeyBytes - 1, 'x'), {1, 2}, 2};
  REQUIRE(!PutBackShared("ab", &longest));
}

}  // namespace sstferry::messages_test
