// Pulls that are interrupted and started again.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "format/hex.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/journal_state.h"
#include "sstferry/target.h"
#include "tests/pipeline/target/resume_support.h"
#include "tests/support/catch.h"

namespace sstferry::resume_test {
namespace {

namespace fs = std::filesystem;

SampleShape Shape() {
  SampleShape shape;
  shape.entries = 4000;
  return shape;
}

// The largest chunk that may be in transit when a lane stops.
constexpr uint64_t kMostOfAChunk = (256u << 10) + (16u << 10);

// Returns the last report of a transfer, which covers all its connections.
TransferReport LastReport(TestServer* server) {
  size_t n = 0;
  TransferReport report = server->Report(n);
  while (report.kept_for.count() != 0) {
    report = server->Report(++n);
  }
  return report;
}

uint64_t ChunksOf(const HostPort& source, const std::string& target) {
  const Summary summary = RunPull(PullFrom(source, target));
  REQUIRE_OK(summary.status);
  return summary.chunks;
}

// Returns how many chunks the journal records, or 0 if there is no journal.
uint64_t JournaledChunks(const ScratchDir& dir) {
  const std::string journal = dir / "target.sstferry/journal";
  JournalState state;
  if (fs::exists(journal)) {
    REQUIRE_OK(ParseJournalState(BytesOf(journal), &state));
  }
  return state.ReceivedTotals().chunks;
}

TEST_CASE("A pull cancelled at 10, 50 or 90 % is resumed", "[target][resume]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  const uint64_t chunks = ChunksOf(server.address(), dir / "whole");
  const int percent = GENERATE(10, 50, 90);
  const PullOptions options = PullFrom(server.address(), dir / "target");
  const Summary first =
      PullAndCancel(options, "LaneClient:ChunkSynced",
                    static_cast<int>(chunks * percent / 100));
  INFO(first.chunks << " of " << chunks << " chunks came");
  REQUIRE(NotesMention(first, "run the same command to resume"));
  REQUIRE_FALSE(fs::exists(dir / "target"));
  const Summary second = PullToTheEnd(dir, options);
  REQUIRE(second.chunks_resumed == first.chunks);
  REQUIRE(second.chunks_resumed >= chunks * percent / 100 - 1);
  REQUIRE(second.transfer_id == first.transfer_id);
  REQUIRE(NotesMention(second, "resuming transfer"));
  const uint64_t received =
      first.sst_bytes + second.sst_bytes - second.sst_bytes_resumed;
  REQUIRE(received - second.sst_bytes <= options.lanes * kMostOfAChunk);
}

TEST_CASE("A pull killed at any step is resumed", "[target][resume][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  struct Death {
    const char* point;
    int nth;
    uint64_t at_least;  // chunks in the journal
  };
  const Death death = GENERATE(
      Death{"Workspace:Created", 1, 0}, Death{"Puller:HeadWritten", 1, 0},
      Death{"LaneClient:ChunkWritten", 5, 3},
      Death{"LaneClient:ChunkSynced", 5, 3},
      // Each group has one chunk or more.
      Death{"Ingestor:JournalAppended", 3, 3},
      Death{"Ingestor:JournalSynced", 3, 3}, Death{"Ingestor:Ingested", 3, 3},
      Death{"Puller:TotalsAgreed", 1, 16});
  INFO(death.point);
  const PullOptions options = PullFrom(server.address(), dir / "target");
  PullAndDie(server.address(), options, death.point, death.nth);
  const uint64_t journaled = JournaledChunks(dir);
  REQUIRE(journaled >= death.at_least);
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE(summary.chunks_resumed == journaled);
  REQUIRE(NotesMention(summary, "resuming transfer") ==
          (std::string(death.point) != "Workspace:Created"));
  REQUIRE(LastReport(&server).sst_bytes <=
          summary.sst_bytes + options.lanes * kMostOfAChunk + (4u << 20));
}

TEST_CASE("A pull that is killed again while it resumes loses nothing",
          "[target][resume][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  const PullOptions options = PullFrom(server.address(), dir / "target");
  // Runs the pull until it exits at the point. Returns the number of chunks in
  // the journal.
  const auto die = [&](const char* point, int nth) {
    PullAndDie(server.address(), options, point, nth);
    return JournaledChunks(dir);
  };
  const uint64_t first = die("Ingestor:JournalSynced", 3);
  REQUIRE(first >= 3);
  const uint64_t second = die("Puller:StagedIngested", 1);
  REQUIRE(second >= first);
  // The second group that this pull ingests has a new chunk.
  const uint64_t third = die("Ingestor:Ingested", 2);
  REQUIRE(third > second);
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE(summary.chunks_resumed == third);
}

TEST_CASE("A chunk whose staged bytes are damaged or lost is fetched again",
          "[target][resume][corruption]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  const PullOptions options = PullFrom(server.address(), dir / "target");
  PullAndDie(server.address(), options, "Ingestor:JournalSynced", 2);
  const std::string staging = dir / "target.sstferry/staging";
  const std::vector<std::string> staged = NamesOf(staging);
  REQUIRE_FALSE(staged.empty());
  const bool rots = GENERATE(true, false);
  for (const std::string& name : staged) {
    std::string bytes = BytesOf(staging + "/" + name);
    if (rots) {
      bytes[bytes.size() / 2] ^= 1;
      WriteBytes(staging + "/" + name, bytes);
    } else {
      fs::remove(staging + "/" + name);
    }
  }
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE(NotesMention(summary, "were lost or damaged and are fetched again"));
  REQUIRE(summary.chunks_resumed >= 1);
}

TEST_CASE("A pull resumes with a journal that has a torn tail",
          "[target][resume][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  const PullOptions options = PullFrom(server.address(), dir / "target");
  PullAndDie(server.address(), options, "Ingestor:JournalAppended", 2);
  const std::string path = dir / "target.sstferry/journal";
  const std::string bytes = BytesOf(path);
  JournalState whole;
  REQUIRE_OK(ParseJournalState(bytes, &whole));
  // Cuts the last record. Its chunks are not ingested yet.
  const size_t cut = GENERATE(1, 8, 40);
  WriteBytes(path, bytes.substr(0, bytes.size() - cut));
  JournalState torn;
  REQUIRE_OK(ParseJournalState(BytesOf(path), &torn));
  REQUIRE(torn.torn);
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE(NotesMention(summary, "resuming transfer"));
  REQUIRE(summary.chunks_resumed == torn.ReceivedTotals().chunks);
}

TEST_CASE("A pull with a torn head of the journal starts over",
          "[target][resume][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeAndHold(dir / "source"));
  const PullOptions options = PullFrom(server.address(), dir / "target");
  PullAndDie(server.address(), options, "Puller:HeadWritten");
  const std::string path = dir / "target.sstferry/journal";
  const std::string bytes = BytesOf(path);
  WriteBytes(path, bytes.substr(0, bytes.size() - GENERATE(1, 50)));
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE_FALSE(NotesMention(summary, "resumes"));
}

TEST_CASE("A pull with a damaged journal starts over and says so",
          "[target][resume][corruption]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  const PullOptions options = PullFrom(server.address(), dir / "target");
  PullAndDie(server.address(), options, "Ingestor:Ingested", 2);
  std::string bytes = BytesOf(dir / "target.sstferry/journal");
  bytes[bytes.size() / 2] ^= 1;
  WriteBytes(dir / "target.sstferry/journal", bytes);
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE(summary.chunks_resumed == 0);
  REQUIRE(NotesMention(summary, "the journal of the unfinished pull is "
                                "damaged"));
}

TEST_CASE(
    "A pull whose unfinished database was changed starts over and says so",
    "[target][resume][corruption]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  PullOptions options = PullFrom(server.address(), dir / "target");
  PullAndDie(server.address(), options, "Ingestor:Ingested", 2);
  const std::string db = dir / "target.sstferry/db";
  const std::string what = GENERATE(as<std::string>(), ".sst", "CURRENT",
                                    "MANIFEST", "journal behind");
  INFO(what);
  if (what == "journal behind") {
    // Removes the records of ingested chunks, which no crash can do.
    JournalState state;
    const std::string path = dir / "target.sstferry/journal";
    REQUIRE_OK(ReadJournalState(rocksdb::FileSystem::Default().get(), path,
                                &state));
    std::string bytes = BytesOf(path);
    uint64_t end = kJournalMagicBytes;
    for (JournalRecord record;
         ReadJournalRecord(bytes, end, &record).ok() &&
         record.type != JournalRecordType::kChunk;) {
      end += record.total_bytes;
    }
    WriteBytes(path, bytes.substr(0, end));
  } else {
    for (const std::string& name : NamesOf(db)) {
      if (name.find(what) != std::string::npos) {
        fs::remove(db + "/" + name);
        break;
      }
    }
  }
  options.chunk_bytes = 128u << 10;  // the transfer keeps its own
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE(summary.chunks_resumed == 0);
  REQUIRE(NotesMention(summary, "the unfinished pull cannot be resumed"));
}

TEST_CASE(
    "A pull that differs from the unfinished one is refused with a reason",
    "[target][resume]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  MakeSampleDatabase(dir / "other", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  TestServer other(ServeAndHold(dir / "other"));
  const PullOptions options = PullFrom(server.address(), dir / "target");
  PullAndDie(server.address(), options, "Ingestor:Ingested", 2);
  struct Change {
    const char* sentence;
    std::function<void(PullOptions*)> make;
  };
  const std::vector<Change> changes = {
      {"of other column families (all; now 'default')",
       [](PullOptions* o) { o->selection.families = {"default"}; }},
      {"of other keys (none to none; now 'key00' to none)",
       [](PullOptions* o) { o->selection.interval.begin = "key00"; }},
      {"for another RocksDB (that of the source's application; now 8.11.4)",
       [](PullOptions* o) { o->for_rocksdb = "8.11.4"; }},
      {"of another source (sst://", [&other](PullOptions* o) {
         o->source = AddressAt(other.address());
       }}};
  for (const Change& change : changes) {
    PullOptions changed = options;
    change.make(&changed);
    const Summary refused = RunPull(changed);
    INFO(change.sentence << "\n" << refused.status.ToString());
    REQUIRE(EndStateOf(refused.status) == EndState::kRefused);
    REQUIRE(refused.status.ToString().find(change.sentence) !=
            std::string::npos);
    REQUIRE(refused.status.ToString().find("--restart discards it") !=
            std::string::npos);
  }
  // The refused pulls changed nothing.
  PullOptions changed = options;
  changed.lanes = 3;
  changed.chunk_bytes = 128u << 10;
  changed.durability = Durability::kNone;
  const Summary summary = PullToTheEnd(dir, changed);
  REQUIRE(summary.chunks_resumed >= 3);
  REQUIRE(NotesMention(summary, "--chunk-bytes 262144, with which the pull"));
  REQUIRE(NotesMention(summary, "--durability chunk, with which the pull"));
}

TransferId IdOf(const Summary& pull) {
  TransferId id{};
  for (size_t i = 0; i < id.size(); ++i) {
    id[i] = HexByte(pull.transfer_id[2 * i], pull.transfer_id[2 * i + 1])
                .value_or(0);
  }
  return id;
}

TEST_CASE("A verify can read the snapshot of an unfinished pull",
          "[target][resume]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  REQUIRE_OK(RunPull(PullFrom(server.address(), dir / "copy")).status);
  const Summary received =
      PullAndCancel(PullFrom(server.address(), dir / "target"),
                    "LaneClient:ChunkSynced", 2);
  {
    std::unique_ptr<rocksdb::DB> db;
    REQUIRE_OK(rocksdb::DB::Open({}, dir / "source", IntoDb(&db)));
    REQUIRE_OK(db->Put({}, "written since", ""));
    REQUIRE_OK(db->Close());
  }
  VerifyOptions verify;
  verify.left = PullFrom(server.address(), "").source;
  verify.right.directory = dir / "copy";
  Summary now;
  REQUIRE_FALSE(MakeVerify(verify)->Run(&now).ok());
  REQUIRE(now.differences == 1);
  verify.left_snapshot = IdOf(received);
  Summary then;
  REQUIRE_OK(MakeVerify(verify)->Run(&then));
  REQUIRE(then.differences == 0);
  // The pull can still be resumed.
  const Summary last = RunPull(PullFrom(server.address(), dir / "target"));
  REQUIRE_OK(last.status);
  REQUIRE(last.chunks_resumed > 0);
  REQUIRE(EndStateOf(MakeVerify(verify)->Run(&then)) ==
          EndState::kSnapshotGone);
}

TEST_CASE("A verify can compare files with the snapshot of an unfinished clone",
          "[target][resume]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  PullOptions clone = PullFrom(server.address(), dir / "copy");
  clone.method = PullMethod::kClone;
  REQUIRE_OK(RunPull(clone).status);
  clone.target_dir = dir / "target";
  const Summary received = PullAndCancel(clone, "UnitStore:RecordsSynced", 1);
  {
    std::unique_ptr<rocksdb::DB> db;
    REQUIRE_OK(rocksdb::DB::Open({}, dir / "source", IntoDb(&db)));
    REQUIRE_OK(db->Put({}, "written since", ""));
    REQUIRE_OK(db->Close());
  }
  VerifyOptions verify;
  verify.left = clone.source;
  verify.right.directory = dir / "copy";
  verify.left_snapshot = IdOf(received);
  Summary then;
  const rocksdb::Status status = MakeVerify(verify)->Run(&then);
  INFO(status.ToString());
  REQUIRE_OK(status);
  REQUIRE(then.compared == "files");
  REQUIRE(then.left.snapshot_transfer_id == received.transfer_id);
  // The clone can still be resumed.
  const Summary last = RunPull(clone);
  REQUIRE_OK(last.status);
  REQUIRE(last.transfer_id == received.transfer_id);
}

TEST_CASE("A pull with --restart drops an unfinished one", "[target][resume]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  PullOptions options = PullFrom(server.address(), dir / "target");
  PullAndDie(server.address(), options, "Ingestor:Ingested", 2);
  server.Report(0);  // a connected target would keep its snapshot
  options.restart = true;
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE(summary.chunks_resumed == 0);
  REQUIRE(NotesMention(summary, "discarded the unfinished pull"));
  REQUIRE(NotesMention(summary, " of " + options.source.ToString() +
                                    ", as --restart asks"));
  REQUIRE(NotesMention(summary, " was released"));
  // The source removes the pull's snapshot once it notices the pull's end.
  const auto keeps_any = [&dir] {
    const auto names = NamesOf(dir.path());
    return std::any_of(names.begin(), names.end(), [](const std::string& name) {
      return name.find(".sstferry-snapshot-") != std::string::npos;
    });
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (keeps_any()) {
    REQUIRE(std::chrono::steady_clock::now() < end);
    std::this_thread::yield();
  }
}

TEST_CASE("A pull whose snapshot is gone starts over by itself and says so",
          "[target][resume]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  PullOptions options;
  {
    TestServer server(ServeSample(dir / "source"));  // keeps no snapshot
    options = PullFrom(server.address(), dir / "target");
    PullAndDie(server.address(), options, "Ingestor:Ingested", 2);
    server.Report(0);
  }
  TestServer server(ServeSample(dir / "source"));
  options.source = AddressAt(server.address());
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE(summary.chunks_resumed == 0);
  REQUIRE(NotesMention(summary, "the source no longer has the snapshot"));
}

TEST_CASE("A pull without syncs is resumed after its process was killed",
          "[target][resume][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  PullOptions options = PullFrom(server.address(), dir / "target");
  options.durability = Durability::kNone;
  PullAndDie(server.address(), options, "Ingestor:Ingested", 2);
  const bool rebooted = GENERATE(false, true);
  if (rebooted) {
    // The same journal, but with another boot id.
    const std::string path = dir / "target.sstferry/journal";
    const std::string bytes = BytesOf(path);
    std::string changed(kJournalMagic, kJournalMagicBytes);
    uint64_t at = kJournalMagicBytes;
    for (JournalRecord record; ReadJournalRecord(bytes, at, &record).ok();
         at += record.total_bytes) {
      std::string payload = record.payload.ToString();
      if (record.type == JournalRecordType::kTransfer) {
        JournalTransfer head;
        REQUIRE_OK(Decode(payload, &head));
        head.boot_id = "another";
        payload.clear();
        Encode(head, &payload);
      }
      AppendJournalRecord(record.type, payload, changed.size(), &changed);
    }
    WriteBytes(path, changed);
  }
  options.durability = Durability::kChunk;
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE((summary.chunks_resumed >= 3) == !rebooted);
  REQUIRE(NotesMention(summary, "the machine was restarted") == rebooted);
  REQUIRE(NotesMention(summary, "keeping --durability none") ==
          !rebooted);
}

TEST_CASE("A complete pull is finished without its source",
          "[target][resume][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  PullOptions options;
  const bool verify = GENERATE(false, true);
  {
    TestServer server(ServeAndHold(dir / "source"));
    options = PullFrom(server.address(), dir / "target");
    PullAndDie(server.address(), options, "Puller:TotalsAgreed");
  }
  options.timeouts.connect = std::chrono::milliseconds(500);
  options.timeouts.retry = std::chrono::milliseconds(500);
  options.verify = verify;
  if (verify) {  // a verify needs the source
    const Summary summary = RunPull(options);
    INFO(summary.status.ToString());
    REQUIRE(EndStateOf(summary.status) == EndState::kDeadPeer);
    REQUIRE(fs::exists(dir / "target.sstferry/journal"));
    return;
  }
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE(summary.chunks_resumed == summary.chunks);
  REQUIRE(NotesMention(summary, "finished without the source"));
}

TEST_CASE("A complete pull is not finished under the name of another source",
          "[target][resume][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  PullOptions options;
  {
    TestServer server(ServeAndHold(dir / "source"));
    options = PullFrom(server.address(), dir / "target");
    PullAndDie(server.address(), options, "Puller:TotalsAgreed");
  }
  options.timeouts.connect = std::chrono::milliseconds(500);
  options.timeouts.retry = std::chrono::milliseconds(500);
  PullOptions other = options;
  SECTION("it does not answer") {
    other.source.name = "other";
    const Summary summary = RunPull(other);
    INFO(summary.status.ToString());
    REQUIRE(EndStateOf(summary.status) == EndState::kDeadPeer);
    REQUIRE(PullToTheEnd(dir, options).chunks_resumed > 0);
  }
  SECTION("it has another database") {
    MakeSampleDatabase(dir / "other", Shape());
    ServeOptions serve = ServeAndHold(dir / "other");
    serve.databases[0].name = "other";
    TestServer server(serve);
    other.source = AddressAt(server.address(), "other");
    other.timeouts.first_answer = std::chrono::seconds(60);
    const Summary summary = RunPull(other);
    INFO(summary.status.ToString());
    REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
    REQUIRE(PullToTheEnd(dir, options).chunks_resumed > 0);
  }
  SECTION("it has a changed copy, with the same database id") {
    fs::copy(dir / "source", dir / "copy", fs::copy_options::recursive);
    {
      std::unique_ptr<rocksdb::DB> db;
      REQUIRE_OK(rocksdb::DB::Open({}, dir / "copy", IntoDb(&db)));
      REQUIRE_OK(db->Put({}, "written since", ""));
      REQUIRE_OK(db->Close());
    }
    ServeOptions serve = ServeAndHold(dir / "copy");
    serve.databases[0].name = "copy";
    TestServer server(serve);
    other.source = AddressAt(server.address(), "copy");
    other.timeouts.first_answer = std::chrono::seconds(60);
    const Summary summary = RunPull(other);
    INFO(summary.status.ToString());
    REQUIRE_OK(summary.status);
    REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "copy"));
  }
}

TEST_CASE("A pull killed while it verifies is resumed and verifies",
          "[target][resume][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Shape());
  TestServer server(ServeAndHold(dir / "source"));
  PullOptions options = PullFrom(server.address(), dir / "target");
  options.verify = true;
  PullAndDie(server.address(), options, "Puller:TotalsAgreed");
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE(summary.chunks_resumed == summary.chunks);
  REQUIRE(summary.verified);
}

// Returns the number of histories: SSTFERRY_RESUMES (default: 12).
int Histories() {
  const char* text = getenv("SSTFERRY_RESUMES");
  return text == nullptr ? 12 : std::max(1, atoi(text));
}

// Runs a pull, and cancels it if it reaches the point for the nth time.
Summary PullUnlessCancelled(const PullOptions& options,
                            const std::string& point, int nth) {
  const std::unique_ptr<Operation> pull = MakePull(options);
  std::atomic<int> left{nth};
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == point && --left == 0) {
      pull->Cancel();
    }
  });
  Summary summary;
  pull->Run(&summary).PermitUncheckedError();
  TEST_SetFaultHook(nullptr);
  return summary;
}

TEST_CASE("Pulls that are cancelled anywhere and restarted copy everything",
          "[target][resume][random]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 1500;
  MakeSampleDatabase(dir / "source", shape);
  TestServer server(ServeAndHold(dir / "source"));
  const std::vector<std::string> points = {
      "Puller:HeadWritten",     "LaneClient:ChunkWritten",
      "LaneClient:ChunkSynced", "Ingestor:JournalAppended",
      "Ingestor:JournalSynced", "Ingestor:Ingested",
      "Puller:StagedIngested",  "Puller:TotalsAgreed"};
  for (int seed = 0; seed < Histories(); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    PullOptions options = PullFrom(server.address(), dir / "target");
    options.chunk_bytes = 64u << 10;
    options.durability =
        random() % 3 == 0 ? Durability::kNone : Durability::kChunk;
    uint64_t received = 0;
    bool ended = false;
    for (size_t deaths = 1 + random() % 3; deaths > 0 && !ended; --deaths) {
      options.lanes = 1 + random() % 4;
      const std::string& point = points[random() % points.size()];
      const Summary summary =
          PullUnlessCancelled(options, point, 1 + random() % 6);
      INFO(point << ": " << summary.status.ToString());
      REQUIRE((summary.status.ok() ||
               EndStateOf(summary.status) == EndState::kCancelled));
      REQUIRE(summary.chunks_resumed >= received);
      received = std::max(received, summary.chunks);
      ended = summary.status.ok();
    }
    if (!ended) {
      REQUIRE(PullToTheEnd(dir, options).chunks_resumed >= received);
    }
    REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
    fs::remove_all(dir / "target");
  }
}

}  // namespace
}  // namespace sstferry::resume_test
