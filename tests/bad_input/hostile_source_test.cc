// Tests a hostile source: each wrong message is found, and nothing is renamed.
#include <filesystem>

#include "format/frame.h"
#include "format/plan.h"
#include "pipeline/api/endpoint.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/follow/source_rounds.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::hostile_source_test {
namespace {

PullOptions PullFromPeer(const FakeSource& source, const ScratchDir& dir) {
  PullOptions options = PullFrom(source.address(), dir / "target");
  options.timeouts.connect = std::chrono::minutes(1);
  options.timeouts.peer = std::chrono::minutes(1);
  return options;
}

void RequireFound(const SourceLies& lies, EndState state,
                  const std::string& sentence) {
  ScratchDir dir;
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  PullOptions options = PullFromPeer(*source, dir);
  options.method = PullMethod::kIngest;  // auto might request a clone
  const Summary summary = RunPull(options);
  INFO("expected \"" << sentence << "\", found " << summary.status.ToString());
  REQUIRE(std::string(EndStateName(EndStateOf(summary.status))) ==
          EndStateName(state));
  REQUIRE(summary.status.ToString().find(sentence) != std::string::npos);
  REQUIRE(summary.status.ToString().size() < 1000);
  REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
}

TEST_CASE("A pull accepts the fake source if all messages are correct",
          "[bad_input][peer]") {
  ScratchDir dir;
  const std::unique_ptr<FakeSource> source = LyingSource({});
  const Summary summary = RunPull(PullFromPeer(*source, dir));
  REQUIRE_OK(summary.status);
  REQUIRE(summary.entries == 800);
  REQUIRE(EntriesOf(dir / "target").size() == 800);
}

Part Piece(uint32_t id, std::optional<std::string> begin,
            std::optional<std::string> end) {
  Part part;
  part.id = id;
  part.interval.begin = std::move(begin);
  part.interval.end = std::move(end);
  return part;
}

TEST_CASE("A pull refuses a plan whose parts do not tile the requested keys",
          "[bad_input][peer]") {
  const std::optional<std::string> open;
  struct Plan {
    const char* what;
    std::vector<Part> parts;
    const char* sentence;
  };
  const std::vector<Plan> plans{
      {"hole", {Piece(0, open, "b"), Piece(1, "c", open)}, "does not begin"},
      {"overlap", {Piece(0, open, "c"), Piece(1, "b", open)}, "does not begin"},
      {"backwards", {Piece(0, open, "c"), Piece(1, "c", "b")},
       "does not begin"},
      {"early end", {Piece(0, open, "c")}, "do not cover"},
      {"late begin", {Piece(0, "a", open)}, "does not begin"},
      {"twice all", {Piece(0, open, open), Piece(1, open, open)},
       "does not begin"},
      {"empty", {}, "do not cover"},
      {"ids", {Piece(1, open, open)}, "expected part 0 of a known"}};
  for (const Plan& plan : plans) {
    INFO(plan.what);
    SourceLies lies;
    lies.parts = [&plan](std::vector<Part>* parts) { *parts = plan.parts; };
    RequireFound(lies, EndState::kCorrupt, plan.sentence);
  }
}

TEST_CASE("A pull refuses the bytes of WALs", "[bad_input][peer]") {
  SourceLies lies;
  lies.after_opened = [](Channel* channel) {
    channel->SendMessage(FrameType::kWalBytes, WalBytes{1, 0, "a"})
        .PermitUncheckedError();
  };
  RequireFound(lies, EndState::kCorrupt, "found WalBytes");
}

// Asks a source once that answers each FollowRequest with what `answer` sends.
// Returns the status, and what arrived.
rocksdb::Status AskOnce(const std::function<rocksdb::Status(Channel*)>& answer,
                        Round* round) {
  FakeSource source([&answer](Channel* channel) {
    Hello hello;
    HelloAck ack;
    const WaitLimit soon = WaitLimit::Within(std::chrono::seconds(60));
    rocksdb::Status status =
        ServerHandshake(channel, "fake", "0", soon, &hello, &ack);
    Frame frame;
    while (status.ok() &&
           channel->Receive(WaitLimit::Forever(), &frame).ok()) {
      if (frame.type == FrameType::kFollowRequest) {
        status = answer(channel);
        if (status.ok()) {
          status = channel->SendMessage(FrameType::kFollowEnd, FollowEnd());
        }
      }
    }
  });
  PullOptions options;
  std::unique_ptr<Endpoint> endpoint;
  RETURN_IF_ERROR(Endpoint::Open(
      EndpointFor(AddressAt(source.address()), 1, options), &endpoint));
  SourceRounds rounds(endpoint->dialer(), options.timeouts);
  return rounds.Ask(FollowRequest(), round);
}

TEST_CASE("A follower takes WAL bytes that continue byte by byte, no others",
          "[bad_input][peer][follow]") {
  struct Answer {
    const char* what;
    std::vector<WalBytes> sent;
  };
  const auto ask = [](const std::vector<WalBytes>& sent, Round* round) {
    return AskOnce(
        [&sent](Channel* channel) {
          rocksdb::Status status;
          for (const WalBytes& bytes : sent) {
            if (status.ok()) {
              status = channel->SendMessage(FrameType::kWalBytes, bytes);
            }
          }
          return status;
        },
        round);
  };
  Round round;
  REQUIRE_OK(
      ask({{5, 7, "a"}, {5, 8, "bc"}, {6, 0, "d"}, {6, 1, "e"}}, &round));
  REQUIRE(round.logs == std::vector<WalBytes>{{5, 7, "abc"}, {6, 0, "de"}});
  const std::vector<Answer> answers{
      {"nothing", {{5, 0, ""}}},
      {"nothing after a byte", {{5, 0, "a"}, {5, 1, ""}}},
      {"a hole", {{5, 0, "a"}, {5, 2, "b"}}},
      {"the same again", {{5, 0, "a"}, {5, 0, "a"}}},
      {"an earlier WAL", {{5, 0, "a"}, {4, 0, "b"}}},
      {"the middle of a later WAL", {{5, 0, "a"}, {6, 1, "b"}}}};
  for (const Answer& answer : answers) {
    INFO(answer.what);
    const rocksdb::Status status = ask(answer.sent, &round);
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kCorrupt);
    REQUIRE(round.logs.empty());
  }
}

TEST_CASE("The memory of a follower's answer is bounded, however it is cut",
          "[bad_input][peer][follow]") {
  const uint64_t before = PeakRssBytes();
  Round round;
  uint64_t number = 0;
  const rocksdb::Status status = AskOnce(
      [&number](Channel* channel) {
        rocksdb::Status sent;
        while (sent.ok() && number < 2'000'000) {
          sent = channel->SendMessage(FrameType::kWalBytes,
                                      WalBytes{++number, 0, "a"});
        }
        return sent;
      },
      &round);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(PeakRssBytes() < before + (300u << 20));
}

TEST_CASE("A pull refuses a plan with wrong numbers", "[bad_input][peer]") {
  SourceLies lies;
  SECTION("no lanes") {
    lies.opened = [](Opened* opened) { opened->lanes = 0; };
    RequireFound(lies, EndState::kCorrupt, "lanes");
  }
  SECTION("more lanes than requested") {
    lies.opened = [](Opened* opened) { opened->lanes = 3; };
    RequireFound(lies, EndState::kCorrupt, "expected 1 to 2 lanes, found 3");
  }
  SECTION("a wrong count of parts") {
    lies.plan_end = [](PlanEnd* end) { end->part_count = 2; };
    RequireFound(lies, EndState::kCorrupt, "expected 2 parts, found 1");
  }
  SECTION("a part of an unknown family") {
    lies.parts = [](std::vector<Part>* parts) { (*parts)[0].family = 7; };
    RequireFound(lies, EndState::kCorrupt, "of a known column family");
  }
  SECTION("no families") {
    lies.opened = [](Opened* opened) { opened->family_count = 0; };
    lies.families = [](std::vector<Family>* all) { all->clear(); };
    lies.parts = [](std::vector<Part>* parts) { parts->clear(); };
    RequireFound(lies, EndState::kCorrupt, "column families");
  }
  SECTION("another family") {
    lies.families = [](std::vector<Family>* all) {
      (*all)[0].description.name = "other";
    };
    RequireFound(lies, EndState::kCorrupt, "column families");
  }
  SECTION("a family twice") {
    lies.opened = [](Opened* opened) { opened->family_count = 2; };
    lies.families = [](std::vector<Family>* all) {
      all->push_back((*all)[0]);
      all->back().index = 1;
    };
    RequireFound(lies, EndState::kCorrupt, "appears twice");
  }
  SECTION("more parts than a transfer may have, and more bytes") {
    lies.after_opened = [](Channel* channel) {
      Family family;
      family.description.name = "default";
      family.description.comparator = "leveldb.BytewiseComparator";
      family.description.table_factory = "BlockBasedTable";
      family.format_version = 5;
      rocksdb::Status status =
          channel->SendMessage(FrameType::kFamily, family);
      for (uint32_t id = 0; status.ok();) {
        Parts batch;
        for (int i = 0; i < 3; ++i) {
          batch.parts.push_back(
              Piece(id++, std::string(150'000, 'b'), std::string("c")));
        }
        status = channel->SendMessage(FrameType::kParts, batch);
      }
    };
    const uint64_t before = PeakRssBytes();
    RequireFound(lies, EndState::kCorrupt, "expected at most");
    REQUIRE(PeakRssBytes() < before + kMaxPlanBytes + (64u << 20));
  }
}

TEST_CASE("A pull applies hostile options within its rules or not at all",
          "[bad_input][peer]") {
  SourceLies lies;
  SECTION("an unknown comparator") {
    lies.families = [](std::vector<Family>* all) {
      (*all)[0].description.comparator = "evil";
    };
    RequireFound(lies, EndState::kIncompatible, "evil");
  }
  SECTION("an unknown format version") {
    lies.families = [](std::vector<Family>* all) {
      (*all)[0].format_version = 99;
    };
    ScratchDir dir;
    const std::unique_ptr<FakeSource> source = LyingSource(lies);
    const Summary summary = RunPull(PullFromPeer(*source, dir));
    REQUIRE(ExitCodeOf(EndStateOf(summary.status)) == 1);
    REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
  }
  SECTION("sizes beyond any memory, and paths") {
    lies.opened = [](Opened* opened) {
      opened->database_options = {{"wal_dir", "/etc"},
                                  {"db_log_dir", "/etc"},
                                  {"max_open_files", "-7"},
                                  {"max_background_jobs", "1000000"}};
    };
    lies.families = [](std::vector<Family>* all) {
      (*all)[0].description.options = {
          {"write_buffer_size", "18446744073709551615"},
          {"num_levels", "1000000000"},
          {"max_write_buffer_number", "-1"}};
    };
    ScratchDir dir;
    const std::unique_ptr<FakeSource> source = LyingSource(lies);
    const Summary summary = RunPull(PullFromPeer(*source, dir));
    INFO(summary.status.ToString());
    if (summary.status.ok()) {
      REQUIRE_FALSE(summary.notes.empty());
      REQUIRE(EntriesOf(dir / "target").size() == 800);
    } else {
      REQUIRE(ExitCodeOf(EndStateOf(summary.status)) == 1);
    }
  }
}

TEST_CASE("A pull refuses a chunk that differs from the announcement in its "
          "frames",
          "[bad_input][peer][corruption]") {
  SourceLies lies;
  const auto end = [&lies](std::function<void(ChunkEnd*)> lie,
                           const char* sentence) {
    lies.chunk_end = std::move(lie);
    RequireFound(lies, EndState::kCorrupt, sentence);
  };
  SECTION("entries") {
    end([](ChunkEnd* e) { e->entries++; }, "chunk 0");
  }
  SECTION("key bytes") {
    end([](ChunkEnd* e) { e->key_bytes++; }, "chunk 0");
  }
  SECTION("smallest") {
    end([](ChunkEnd* e) { e->smallest = "key1"; }, "chunk 0");
  }
  SECTION("largest") {
    end([](ChunkEnd* e) { e->largest = "key9"; }, "chunk 0");
  }
  SECTION("bounds as long as keys may be") {
    end([](ChunkEnd* e) { e->smallest.assign(200'000, 'z'); }, "chunk keys");
  }
  SECTION("digest") {
    end([](ChunkEnd* e) { e->digest = Digest128(); }, "chunk digest");
  }
  SECTION("size") {
    end([](ChunkEnd* e) { e->file_bytes--; }, "chunk bytes");
  }
  SECTION("part") {
    end([](ChunkEnd* e) { e->part_id = 3; }, "chunk keys");
  }
  SECTION("part in ChunkBegin") {
    lies.chunk_begin = [](ChunkBegin* begin) { begin->part_id = 3; };
    RequireFound(lies, EndState::kCorrupt, "chunk: expected part 0");
  }
  SECTION("ordinal") {
    lies.chunk_begin = [](ChunkBegin* begin) { begin->ordinal = 1; };
    RequireFound(lies, EndState::kCorrupt, "chunk: expected part 0 chunk 0");
  }
}

TEST_CASE("A pull refuses keys outside the part and chunks that overlap",
          "[bad_input][peer][corruption]") {
  SourceLies lies;
  SECTION("outside") {
    // All keys are in the first part, but are sent for the second one, too.
    lies.parts = [](std::vector<Part>* parts) {
      *parts = {Piece(0, std::nullopt, "key5"), Piece(1, "key5", std::nullopt)};
      (*parts)[1].bytes = 5;
    };
    RequireFound(lies, EndState::kCorrupt, "chunk");
  }
  SECTION("overlap") {
    lies.repeat_chunk = true;
    RequireFound(lies, EndState::kCorrupt, "after the previous chunk");
  }
}

TEST_CASE("A pull refuses chunks of a kind or size that was not agreed on",
          "[bad_input][peer][corruption]") {
  SourceLies lies;
  SECTION("a delta in a new database") {
    lies.chunk_begin = [](ChunkBegin* begin) {
      begin->kind = PartKind::kDelta;
    };
    RequireFound(lies, EndState::kCorrupt, "requested a rebuilt chunk");
  }
  SECTION("another size than announced") {
    lies.chunk_begin = [](ChunkBegin* begin) { begin->file_bytes = 17; };
    RequireFound(lies, EndState::kCorrupt,
                 "size announced at the start of the chunk");
  }
}

TEST_CASE("A pull refuses totals that do not add up", "[bad_input][peer]") {
  SourceLies lies;
  SECTION("entries of a part") {
    lies.part_end = [](PartEnd* end) { end->totals.entries++; };
    RequireFound(lies, EndState::kCorrupt, "end of part 0");
  }
  SECTION("chunks of a part: some are missing") {
    lies.part_end = [](PartEnd* end) { end->totals.chunks++; };
    RequireFound(lies, EndState::kCorrupt,
                 "in 2 chunks, found 800 entries in 1");
  }
  SECTION("chain of a part") {
    lies.part_end = [](PartEnd* end) { end->chain = Digest128(); };
    RequireFound(lies, EndState::kCorrupt, "end of part 0");
  }
  SECTION("another part's end") {
    lies.part_end = [](PartEnd* end) { end->part_id = 4; };
    RequireFound(lies, EndState::kCorrupt, "end of part 0");
  }
  SECTION("transfer") {
    lies.finished = [](Finish* finish) { finish->families[0].entries++; };
    RequireFound(lies, EndState::kCorrupt,
                 "expected 801 entries, found 800");
  }
  SECTION("families") {
    lies.finished = [](Finish* finish) { finish->families.resize(2); };
    RequireFound(lies, EndState::kCorrupt, "another number");
  }
}

TEST_CASE("A pull survives files that would make RocksDB abort",
          "[bad_input][peer][corruption]") {
  // The digests match the damaged file, so only the check of its contents can
  // find the damage before RocksDB opens it.
  size_t size = 0;
  SourceLies measure;
  measure.chunk_file = [&size](std::string* file) { size = file->size(); };
  ScratchDir good;
  {
    const std::unique_ptr<FakeSource> source = LyingSource(measure);
    REQUIRE_OK(RunPull(PullFromPeer(*source, good)).status);
  }
  REQUIRE(size > 1000);
  for (size_t i = 0; i < 24; ++i) {
    // Most places are in the tail, which is small and has most of the
    // structures.
    const size_t at = i < 8 ? i * size / 16 : size - 1 - (i - 8) * 61;
    ScratchDir dir;
    SourceLies lies;
    lies.chunk_file = [at](std::string* file) { (*file)[at] ^= 0x40; };
    const std::unique_ptr<FakeSource> source = LyingSource(lies);
    PullOptions options = PullFromPeer(*source, dir);
    const Summary summary = RunPull(options);
    INFO("byte " << at << " of " << size << ": "
                 << summary.status.ToString());
    REQUIRE(EndStateOf(summary.status) == EndState::kCorrupt);
    REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
  }
}

TEST_CASE("A pull refuses a chunk that is not a table file",
          "[bad_input][peer][corruption]") {
  SourceLies lies;
  SECTION("no file at all") {
    lies.chunk_file = [](std::string* file) { *file = "x"; };
  }
  SECTION("half a file") {
    lies.chunk_file = [](std::string* file) { file->resize(file->size() / 2); };
  }
  SECTION("a file of zeros") {
    lies.chunk_file = [](std::string* file) { file->assign(4096, '\0'); };
  }
  RequireFound(lies, EndState::kCorrupt, "chunk 0");
}

TEST_CASE("A pull ends if it receives unrequested frames",
          "[bad_input][peer]") {
  SourceLies lies;
  SECTION("on a lane, instead of a chunk") {
    lies.lane = [](Channel* channel) {
      channel->SendMessage(FrameType::kPing, Ping()).PermitUncheckedError();
      ReceiveEnd(channel).PermitUncheckedError();
    };
    RequireFound(lies, EndState::kCorrupt, "found Ping");
  }
  SECTION("a second plan") {
    lies.lane = [](Channel* channel) {
      ReceiveEnd(channel).PermitUncheckedError();
    };
    lies.after_opened = [](Channel* channel) {
      channel->SendMessage(FrameType::kOpened, Opened()).PermitUncheckedError();
    };
    RequireFound(lies, EndState::kCorrupt, "found Opened");
  }
  SECTION("an End with a state on a lane") {
    lies.lane = [](Channel* channel) {
      SendEnd(channel, MakeStatus(EndState::kSourceError, "disk on fire"),
              "a disk");
      ReceiveEnd(channel).PermitUncheckedError();
    };
    RequireFound(lies, EndState::kSourceError, "disk on fire");
  }
  SECTION("an End with OK instead of a plan") {
    lies.after_opened = [](Channel* channel) {
      channel->SendMessage(FrameType::kEnd, End()).PermitUncheckedError();
      ReceiveEnd(channel).PermitUncheckedError();
    };
    RequireFound(lies, EndState::kCorrupt, "End with OK");
  }
  SECTION("a lane that closes at once") {
    lies.lane = [](Channel*) {};
    RequireFound(lies, EndState::kDeadPeer, "closed the connection");
  }
}

TEST_CASE("A pull from something that is not sstferry says so",
          "[bad_input][peer]") {
  struct Stranger {
    const char* what;
    std::string bytes;
    EndState state;
  };
  const std::vector<Stranger> strangers{
      {"http", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
       EndState::kCorrupt},
      {"noise", std::string(100'000, '\xa5'), EndState::kCorrupt},
      {"ssh", "SSH-2.0-OpenSSH_9.2\r\n", EndState::kCorrupt},
      {"nothing", "", EndState::kDeadPeer}};
  for (const Stranger& stranger : strangers) {
    ScratchDir dir;
    std::unique_ptr<Listener> listener;
    REQUIRE_OK(ListenTcp(HostPort{"127.0.0.1", 0}, &listener));
    std::thread thread([&] {
      std::unique_ptr<Connection> connection;
      MustWork(listener->Accept(&connection));
      const rocksdb::Slice part(stranger.bytes);
      const WaitLimit limit = WaitLimit::Within(std::chrono::minutes(2));
      connection->Write(&part, 1, limit).PermitUncheckedError();
      char buffer[4096];
      size_t got = 1;
      while (got > 0 &&
             connection->Read(buffer, sizeof(buffer), limit, &got).ok()) {
      }
    });
    HostPort where;
    REQUIRE_OK(ParseHostPort(listener->address(), &where));
    PullOptions options = PullFrom(where, dir / "target");
    options.timeouts.connect =
        std::chrono::milliseconds(stranger.bytes.empty() ? 500 : 60'000);
    const Summary summary = RunPull(options);
    thread.join();
    INFO(stranger.what << ": " << summary.status.ToString());
    REQUIRE(EndStateOf(summary.status) == stranger.state);
    if (stranger.state == EndState::kCorrupt) {
      REQUIRE(summary.status.ToString().find("is sstferry at the other end?") !=
              std::string::npos);
    }
  }
}

TEST_CASE("A pull refuses file names that a source must not choose",
          "[bad_input][peer][other_files]") {
  for (const std::string& name : std::vector<std::string>{
           "../x", "a/b", "/tmp/x", ".x", "..", "", std::string(129, 'n'),
           "000012.sst", "000012.SST", "CURRENT", "current", "MANIFEST-000001",
           "OPTIONS-000005", "000004.log", "LOCK", "IDENTITY", "LOG",
           "sstferry.health", "Sstferry.files", "last_transfer.json",
           "core.17", "server.key", std::string("a\0b", 3)}) {
    INFO(name);
    SourceLies lies;
    lies.opened = [&name](Opened* opened) {
      opened->other_files = {{name, 6, KeptBack::kNo}};
    };
    RequireFound(lies, EndState::kCorrupt, "names of files that may be copied");
  }
  SourceLies lies;
  lies.opened = [](Opened* opened) {
    opened->other_files = {{"a", 6, KeptBack::kNo}, {"A", 6, KeptBack::kNo}};
  };
  RequireFound(lies, EndState::kCorrupt, "each name once");
}

TEST_CASE("A pull refuses files above the limits before it requests them",
          "[bad_input][peer][other_files]") {
  SourceLies lies;
  lies.opened = [](Opened* opened) {
    opened->other_files = {{"a", kMaxOtherFileBytes + 1, KeptBack::kNo}};
  };
  RequireFound(lies, EndState::kCorrupt, "bytes each");
  lies.opened = [](Opened* opened) {
    for (const char* name : {"a", "b", "c", "d", "e"}) {
      opened->other_files.push_back(
          {name, kMaxOtherFileBytes, KeptBack::kNo});
    }
  };
  RequireFound(lies, EndState::kCorrupt, "in all");
}

TEST_CASE("A pull accepts a file only with the bytes that the source announced",
          "[bad_input][peer][other_files]") {
  SourceLies lies;
  lies.opened = [](Opened* opened) {
    opened->other_files = {{"config", 6, KeptBack::kNo}};
  };
  SECTION("honest") {
    ScratchDir dir;
    const std::unique_ptr<FakeSource> source = LyingSource(lies);
    REQUIRE_OK(RunPull(PullFromPeer(*source, dir)).status);
    REQUIRE(BytesOf(dir / "target/config") == "bytes\n");
  }
  SECTION("another digest") {
    lies.other_file = [](const OtherFileRequest&, OtherFilePart* part) {
      part->content.low ^= 1;
    };
    RequireFound(lies, EndState::kCorrupt, "config: expected the bytes");
  }
  SECTION("more bytes than the file has") {
    lies.other_file = [](const OtherFileRequest&, OtherFilePart* part) {
      part->file_bytes = 5;
    };
    RequireFound(lies, EndState::kCorrupt, "config: expected the bytes");
  }
  SECTION("no bytes of a nonempty file") {
    lies.other_file = [](const OtherFileRequest&, OtherFilePart* part) {
      part->bytes.clear();
    };
    RequireFound(lies, EndState::kCorrupt, "config: expected the bytes");
  }
  SECTION("another file in each answer") {
    lies.other_file = [](const OtherFileRequest& request,
                         OtherFilePart* part) {
      part->file_bytes = 1000;
      part->content = {request.offset, 1};
    };
    ScratchDir dir;
    const std::unique_ptr<FakeSource> source = LyingSource(lies);
    const Summary summary = RunPull(PullFromPeer(*source, dir));
    REQUIRE_OK(summary.status);
    REQUIRE(summary.other_files == 0);
    REQUIRE_FALSE(std::filesystem::exists(dir / "target/config"));
  }
  SECTION("a file that cannot be read") {
    lies.other_file = [](const OtherFileRequest&, OtherFilePart* part) {
      part->problem = "it is gone";
    };
    ScratchDir dir;
    const std::unique_ptr<FakeSource> source = LyingSource(lies);
    const Summary summary = RunPull(PullFromPeer(*source, dir));
    REQUIRE_OK(summary.status);
    REQUIRE_FALSE(std::filesystem::exists(dir / "target/config"));
  }
  SECTION("more bytes in total than planned") {
    lies.opened = [](Opened* opened) {
      for (int i = 0; i < 5; ++i) {
        opened->other_files.push_back(
            {"f" + std::to_string(i), 6, KeptBack::kNo});
      }
    };
    static const std::string file(kMaxOtherFileBytes, 'x');
    static const Digest128 content = DigestOf(file);
    lies.other_file = [](const OtherFileRequest& request,
                         OtherFilePart* part) {
      part->file_bytes = file.size();
      part->content = content;
      part->bytes = file.substr(request.offset, kMaxOtherPartBytes);
    };
    ScratchDir dir;
    const std::unique_ptr<FakeSource> source = LyingSource(lies);
    const Summary summary = RunPull(PullFromPeer(*source, dir));
    REQUIRE_OK(summary.status);
    REQUIRE(summary.other_files == 4);
    REQUIRE_FALSE(std::filesystem::exists(dir / "target/f4"));
  }
}

}  // namespace
}  // namespace sstferry::hostile_source_test
