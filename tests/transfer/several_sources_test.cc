// Pulls from several sources at once.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "pipeline/target/disk/durable.h"
#include "rocksdb/table.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/process.h"
#include "tests/support/relay.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr uint64_t kEntries = 9'000;  // of 1000 bytes
// With this chunk_bytes a table is one unit and its tail.
constexpr uint64_t kTwoUnits = 1u << 20;

rocksdb::ColumnFamilyOptions SourceOptions(rocksdb::ChecksumType checksum) {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  rocksdb::BlockBasedTableOptions table;
  table.checksum = checksum;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// Five tables of 1.8 MB and a WAL.
void MakeSource(const std::string& directory,
                rocksdb::ChecksumType checksum = rocksdb::kXXH3) {
  OpenDb db(directory, OneFamily(SourceOptions(checksum)));
  for (uint64_t i = 0; i < kEntries; ++i) {
    db.Put(NumberedKey(i), RandomBytes(1000, i));
    if ((i + 1) % (kEntries / 5) == 0) db.Flush();
  }
  db.Put("last", "in the WAL");
}

PullOptions Cloning(const std::vector<HostPort>& sources,
                    const std::string& target) {
  PullOptions options = PullFrom(sources.front(), target);
  for (size_t i = 1; i < sources.size(); ++i) {
    options.more_sources.push_back(AddressAt(sources[i]));
  }
  options.method = PullMethod::kClone;
  options.compression = WireCompression::kNone;
  options.chunk_bytes = 64u << 10;  // units of 128 KiB
  options.lanes = 2;
  options.peer_timeout = milliseconds(5'000);
  options.retry_for = milliseconds(60'000);
  return options;
}

void MakeClone(const HostPort& source, const std::string& target) {
  const Summary summary = RunPull(Cloning({source}, target));
  INFO(summary.status.ToString());
  REQUIRE(summary.status.ok());
}

bool NotesMention(const Summary& summary, const std::string& text) {
  for (const std::string& note : summary.notes) {
    if (note.find(text) != std::string::npos) return true;
  }
  return false;
}

std::string NotesOf(const Summary& summary) {
  std::string text = summary.status.ToString();
  for (const std::string& note : summary.notes) text += "\n" + note;
  for (const SourceSummary& one : summary.sources) {
    text += "\n" + one.url + " " + one.state + " " +
            std::to_string(one.units) + " units";
  }
  return text;
}

// The tables of both directories, byte for byte, and all entries.
void RequireSame(const std::string& source, const std::string& target) {
  for (const std::string& path : PathsWith(source, ".sst")) {
    const std::string name = fs::path(path).filename();
    CAPTURE(name);
    REQUIRE(sstferry::BytesOf(target + "/" + name) ==
            sstferry::BytesOf(path));
  }
  REQUIRE(sstferry::EntriesOf(target) == sstferry::EntriesOf(source));
}

// Waits for lines of a log.
class Lines {
 public:
  LogFunction log() {
    return [this](LogLevel, const std::string& line) {
      std::lock_guard<std::mutex> lock(mu_);
      text_ += line + "\n";
      changed_.notify_all();
    };
  }
  bool WaitFor(const std::string& text) {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] {
      return text_.find(text) != std::string::npos;
    });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::string text_;  // under mu_
};

// A source a, and b, which is a clone of it; a has a slow link, so that b has
// something to do.
struct TwoSources {
  explicit TwoSources(rocksdb::ChecksumType checksum = rocksdb::kXXH3,
                      uint64_t rate_of_a = 5'000'000) {
    MakeSource(dir / "a", checksum);
    a = std::make_unique<TestServer>(ServeSample(dir / "a"));
    MakeClone(a->address(), dir / "b");
    b = std::make_unique<TestServer>(ServeSample(dir / "b"));
    to_a = std::make_unique<Relay>(a->address());
    to_b = std::make_unique<Relay>(b->address());
    to_a->SetRate(Relay::kToClient, rate_of_a);
  }
  PullOptions Options() const {
    return Cloning({to_a->address(), to_b->address()}, dir / "target");
  }
  void RequireWhole(const Summary& summary) const {
    INFO(NotesOf(summary));
    REQUIRE(summary.status.ok());
    RequireSame(dir / "a", dir / "target");
    REQUIRE(NamesOf(dir.path()) ==
            std::vector<std::string>{"a", "b", "target"});
  }

  const TempDir dir;
  std::unique_ptr<TestServer> a;
  std::unique_ptr<TestServer> b;
  std::unique_ptr<Relay> to_a;
  std::unique_ptr<Relay> to_b;
};

TEST_CASE("A clone takes units from two sources at once",
          "[transfer][sources]") {
  TwoSources two;
  PullOptions options = two.Options();
  options.verify = GENERATE(false, true);
  options.compression =
      options.verify ? WireCompression::kZstd : WireCompression::kNone;
  const Summary summary = RunPull(options);
  two.RequireWhole(summary);
  REQUIRE(summary.verified == options.verify);
  REQUIRE(summary.sources.size() == 2);
  REQUIRE(summary.sources[0].url == options.source.ToString());
  REQUIRE(summary.sources[0].state == "used");
  REQUIRE(summary.sources[0].units > 0);
  REQUIRE(summary.sources[1].state == "used");
  REQUIRE(summary.sources[1].bytes > summary.sources[0].bytes);
  REQUIRE(summary.sources[0].bytes + summary.sources[1].bytes ==
          summary.sst_bytes);
  REQUIRE(summary.sources[0].units + summary.sources[1].units ==
          summary.chunks);
  // b was asked for its own transfer, which ended well.
  const TransferReport report = two.b->Report(0);
  INFO(report.status.ToString());
  REQUIRE(report.status.ok());
}

TEST_CASE("A clone ends without a source that is lost in the middle",
          "[transfer][sources][net]") {
  TwoSources two;
  two.to_b->SetRate(Relay::kToClient, 5'000'000);
  std::thread killer([&] {
    two.to_b->WaitForBytes(Relay::kToClient, 1'000'000);
    two.to_b->SetRefuse(true);
    two.to_b->ResetAll();
  });
  const Summary summary = RunPull(two.Options());
  killer.join();
  two.RequireWhole(summary);
  REQUIRE(summary.sources[1].state == "lost");
  REQUIRE(summary.sources[1].units > 0);
}

TEST_CASE("A clone uses a source again that returns",
          "[transfer][sources][net]") {
  TwoSources two(rocksdb::kXXH3, 2'000'000);
  two.to_b->SetRate(Relay::kToClient, 2'000'000);
  Lines lines;
  PullOptions options = two.Options();
  options.log = lines.log();
  std::atomic<bool> lost{false};
  uint64_t bytes_before = 0;
  std::thread killer([&] {
    two.to_b->WaitForBytes(Relay::kToClient, 500'000);
    two.to_b->SetRefuse(true);
    two.to_b->ResetAll();
    lost = lines.WaitFor("it is tried again");
    bytes_before = two.to_b->bytes(Relay::kToClient);
    two.to_b->SetRefuse(false);
  });
  const Summary summary = RunPull(options);
  killer.join();
  two.RequireWhole(summary);
  REQUIRE(lost);
  REQUIRE(summary.sources[1].state == "used");
  REQUIRE(two.to_b->bytes(Relay::kToClient) > bytes_before + 500'000);
}

// Changes a bit in each 32 KiB of each table, but for its last 10th part.
void Falsify(const std::string& directory) {
  for (const std::string& path : PathsWith(directory, ".sst")) {
    std::string bytes = sstferry::BytesOf(path);
    for (size_t at = 500; at < bytes.size() / 10 * 9; at += 32u << 10) {
      bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    }
    sstferry::WriteBytes(path, bytes);
  }
}

TEST_CASE("A source that sends other bytes is refused and none of them is kept",
          "[transfer][sources][corruption]") {
  // Its blocks have a checksum which is wrong; or none, so that only what the
  // first source says of its bytes shows it.
  const auto checksum = GENERATE(rocksdb::kXXH3, rocksdb::kNoChecksum);
  TwoSources two(checksum);
  Falsify(two.dir / "b");
  const Summary summary = RunPull(two.Options());
  two.RequireWhole(summary);
  REQUIRE(summary.sources[1].state == "refused");
  REQUIRE(NotesMention(summary, two.Options().more_sources[0].ToString()));
  REQUIRE(NotesMention(summary, "these bytes are not kept"));
  REQUIRE(summary.sources[0].bytes + summary.sources[1].bytes ==
          summary.sst_bytes);
}

TEST_CASE("Another source replaces a first one whose bytes are wrong",
          "[transfer][sources][corruption]") {
  TwoSources two;
  Falsify(two.dir / "a");
  const Summary summary = RunPull(two.Options());
  INFO(NotesOf(summary));
  REQUIRE(summary.status.ok());
  RequireSame(two.dir / "b", two.dir / "target");
  REQUIRE(summary.source == two.Options().more_sources[0].ToString());
  REQUIRE(summary.sources[0].url == two.Options().source.ToString());
  REQUIRE(summary.sources[0].state == "refused");
  REQUIRE(NotesMention(summary, "another source is asked first"));
}

TEST_CASE("A source of another database is not used", "[transfer][sources]") {
  TwoSources two;
  MakeSource(two.dir / "other");
  TestServer other(ServeSample(two.dir / "other"));
  const Summary summary = RunPull(
      Cloning({two.a->address(), other.address()}, two.dir / "target"));
  INFO(NotesOf(summary));
  REQUIRE(summary.status.ok());
  RequireSame(two.dir / "a", two.dir / "target");
  REQUIRE(summary.sources[1].units == 0);
  // Unless all had come before it was asked.
  const bool late = summary.sources[1].state == "unused";
  REQUIRE((late || summary.sources[1].state == "different"));
  REQUIRE((late || NotesMention(summary, "it has no file of the snapshot")));
}

TEST_CASE("An older clone sends the files that it still has in common",
          "[transfer][sources]") {
  TwoSources two;
  {
    OpenDb db(two.dir / "a", OneFamily(SourceOptions(rocksdb::kXXH3)));
    for (uint64_t i = 0; i < 1000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(1000, kEntries + i));
    }
    db.Flush();
    db.Put("later", "in another WAL");
  }
  const Summary summary = RunPull(two.Options());
  two.RequireWhole(summary);
  REQUIRE(summary.sources[1].state == "used");
  REQUIRE(summary.sources[1].units > 0);
  REQUIRE(summary.sources[0].units > 0);
}

TEST_CASE("Another source takes over from a first one that is gone, and what "
          "came stays", "[transfer][sources][net]") {
  TwoSources two;
  two.to_b->SetRate(Relay::kToClient, 5'000'000);
  PullOptions options = two.Options();
  options.chunk_bytes = kTwoUnits;
  options.lanes = 1;  // the second large unit has begun when the source goes
  options.retry_for = milliseconds(1'000);
  std::thread killer([&] {
    two.to_a->WaitForBytes(Relay::kToClient, 3'000'000);
    two.to_a->SetRefuse(true);
    two.to_a->ResetAll();
  });
  const Summary summary = RunPull(options);
  killer.join();
  two.RequireWhole(summary);
  INFO(NotesOf(summary));
  REQUIRE(summary.source == options.more_sources[0].ToString());
  REQUIRE(summary.sources[0].state == "lost");
  REQUIRE(summary.sources[0].units > 0);
  REQUIRE(summary.sources[1].state == "used");
  REQUIRE(NotesMention(summary, "files that the unfinished pull had received"));
  REQUIRE(summary.files_reused > 0);
}

TEST_CASE("A first source that does not answer is passed over",
          "[transfer][sources][net]") {
  TwoSources two;
  two.to_a->SetRefuse(true);
  PullOptions options = two.Options();
  options.method = GENERATE(PullMethod::kClone, PullMethod::kIngest);
  options.retry_for = milliseconds(500);
  const Summary summary = RunPull(options);
  INFO(NotesOf(summary));
  REQUIRE(summary.status.ok());
  REQUIRE(sstferry::EntriesOf(two.dir / "target") ==
          sstferry::EntriesOf(two.dir / "a"));
  REQUIRE(summary.sources[0].state == "unreachable");
  REQUIRE(summary.sources[1].state == "used");
  REQUIRE(summary.sources[1].bytes == summary.sst_bytes);
  // Nobody is there at all.
  two.to_b->SetRefuse(true);
  fs::remove_all(two.dir / "target");
  const Summary nobody = RunPull(options);
  REQUIRE(EndStateOf(nobody.status) == EndState::kDeadPeer);
}

TEST_CASE("A source that grants one lane is the only one that is used",
          "[transfer][sources]") {
  TwoSources two;
  ServeOptions serve = ServeSample(two.dir / "a");
  serve.max_lanes = 1;
  TestServer narrow(serve);
  const Summary summary = RunPull(
      Cloning({narrow.address(), two.b->address()}, two.dir / "target"));
  two.RequireWhole(summary);
  REQUIRE(summary.sources[1].state == "unused");
  REQUIRE(NotesMention(summary, "it grants no lane"));
}

TEST_CASE("A chain of clones sends the same files on", "[transfer][sources]") {
  TwoSources two;
  MakeClone(two.b->address(), two.dir / "c");
  TestServer c(ServeSample(two.dir / "c"));
  Relay to_b(two.b->address());
  to_b.SetRate(Relay::kToClient, 5'000'000);
  const Summary summary =
      RunPull(Cloning({to_b.address(), c.address()}, two.dir / "target"));
  INFO(NotesOf(summary));
  REQUIRE(summary.status.ok());
  RequireSame(two.dir / "a", two.dir / "target");
  REQUIRE(summary.sources[0].units > 0);
  REQUIRE(summary.sources[1].units > 0);
}

std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

TEST_CASE("child: a pull from several sources that dies", "[.child]") {
  std::vector<SourceAddress> sources;
  if (Setting("SSTFERRY_TEST_SOURCES").empty()) {
    return;
  }
  REQUIRE_OK(ParseSourceAddresses(Setting("SSTFERRY_TEST_SOURCES"), &sources));
  // Of 14 units, of which 5 are the tails of tables. At most three of all are not
  // recorded, so two tables are whole, whatever came first.
  std::atomic<int> left{13};
  TEST_SetFaultHook([&left](const std::string& name) {
    if (name == "LaneClient:ChunkSynced" && --left == 0) _exit(99);
  });
  PullOptions options = Cloning({HostPort{"127.0.0.1", 1}},
                                Setting("SSTFERRY_TEST_TARGET"));
  options.chunk_bytes = kTwoUnits;
  options.source = sources[0];
  options.more_sources = {sources[1]};
  (void)RunPull(options);
}

TEST_CASE("A clone from several sources resumes, whichever of them is left",
          "[transfer][sources][crash]") {
  TwoSources two;
  ServeOptions serve = ServeSample(two.dir / "a");
  serve.snapshot_ttl = std::chrono::seconds(60);
  TestServer keeps(serve);
  Relay to_a(keeps.address());
  const HostPort a = to_a.address();
  const HostPort b = two.to_b->address();
  Process child(CaseOfThisProgram("child: a pull from several sources that "
                                  "dies"),
                {{"SSTFERRY_TEST_SOURCES", AddressAt(a).ToString() + "," +
                                               AddressAt(b).ToString()},
                 {"SSTFERRY_TEST_TARGET", two.dir / "target"}});
  REQUIRE(child.Wait() == 99);
  REQUIRE_FALSE(fs::exists(two.dir / "target"));
  const bool first_is_gone = GENERATE(false, true);
  CAPTURE(first_is_gone);
  (first_is_gone ? to_a : *two.to_b).SetRefuse(true);
  // In another order than before.
  PullOptions options = Cloning({b, a}, two.dir / "target");
  options.chunk_bytes = kTwoUnits;
  options.wait_for_source = milliseconds(300);
  const Summary summary = RunPull(options);
  INFO(NotesOf(summary));
  REQUIRE(summary.status.ok());
  RequireSame(two.dir / "a", two.dir / "target");
  REQUIRE(summary.source == AddressAt(first_is_gone ? b : a).ToString());
  if (first_is_gone) {
    REQUIRE(summary.files_reused > 0);
  } else {
    REQUIRE(summary.chunks_resumed > 0);
  }
}

TEST_CASE("What is not for several sources is refused before one is asked",
          "[transfer][sources]") {
  const TempDir dir;
  PullOptions options = Cloning({{"127.0.0.1", 1}, {"127.0.0.1", 2}},
                                dir / "target");
  std::string expected;
  SECTION("a snapshot of one of them") {
    options.snapshot_of.emplace();
    expected = "--snapshot new or latest";
  }
  SECTION("the same one twice") {
    options.more_sources.push_back(options.source);
    expected = "each once";
  }
  SECTION("a directory") {
    options.more_sources[0] = SourceAddress();
    options.more_sources[0].directory = dir / "source";
    expected = "sst://HOST[:PORT]/NAME for each";
  }
  SECTION("a refresh in place") {
    fs::create_directory(dir / "target");
    std::ofstream(dir / "target/CURRENT") << "MANIFEST-000001\n";
    options.mode = PullMode::kRefresh;
    options.method = PullMethod::kAuto;
    expected = "a pull that makes a new database";
  }
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(MessageOf(summary.status).find(expected) != std::string::npos);
}

}  // namespace
}  // namespace sstferry::test
