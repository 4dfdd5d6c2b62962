// Tests that a refresh of a serving database leaves CPU, I/O and disk space to
// its application.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "pipeline/base/thread_priority.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/free_space.h"
#include "rocksdb/listener.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/refreshed.h"

namespace sstferry::test::refresh_manners_test {
namespace {

constexpr uint64_t kEntries = 600;

void Fill(const std::string& dir, uint64_t seed) {
  OpenDb db(dir, OneFamily(Quiet()));
  for (uint64_t i = 0; i < kEntries; ++i) {
    db.Put(NumberedKey(i), RandomBytes(1000, seed + i));
  }
  db.Flush();
}

PullOptions On(rocksdb::FileSystem* disk) {
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.chunk_bytes = 64 << 10;
  options.lanes = 2;
  options.adopt = true;
  options.file_system =
      std::shared_ptr<rocksdb::FileSystem>(disk, [](rocksdb::FileSystem*) {});
  return options;
}

// The CPU priority (nice value) and the I/O priority of a thread.
using Manners = std::pair<int, int>;
Manners MannersOfThisThread() {
  return {getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))),
          ThreadIoPriority()};
}

// Records the priorities of the threads that stage and ingest. Threads: any.
class Witness : public rocksdb::EventListener {
 public:
  void See(std::set<Manners>* where) {
    std::lock_guard<std::mutex> lock(mu_);
    where->insert(MannersOfThisThread());
  }
  void OnExternalFileIngested(
      rocksdb::DB*, const rocksdb::ExternalFileIngestionInfo&) override {
    See(&ingesting);
  }

  std::set<Manners> ingesting;  // under mu_, and all below
  std::set<Manners> staging;

 private:
  std::mutex mu_;
};

TEST_CASE("The lanes of a refresh run with low priority, but the ingesting "
          "thread does not",
          "[transfer][refresh][priority]") {
  const ScratchDir dir;
  Fill(dir / "source", 0);
  const auto witness = std::make_shared<Witness>();
  rocksdb::DBOptions with_witness;
  with_witness.listeners.push_back(witness);
  OpenDb target(dir / "target", OneFamily(Quiet()), with_witness);
  FaultyFileSystem disk;
  disk.OnStep([&](FileStep step, const std::string& path) {
    if (step == FileStep::kAppend && path.find("/staging/") != path.npos) {
      witness->See(&witness->staging);
    }
  });
  PullOptions options = On(&disk);
  options.full_rate = GENERATE(false, true);
  const Manners ours = MannersOfThisThread();
  REQUIRE_OK(RefreshOpen(dir / "source", &target, {"default"}, options).status);
  const Manners low = {std::min(ours.first + kLowerByNice, 19),
                       kLowestBestEffortIo};
  REQUIRE(witness->staging ==
          std::set<Manners>{options.full_rate ? ours : low});
  REQUIRE(witness->ingesting == std::set<Manners>{ours});
  REQUIRE(MannersOfThisThread() == ours);
}

TEST_CASE("A refresh reports that it compacts while it does",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Fill(dir / "source", 0);
  Fill(dir / "target", 1'000'000);
  FaultyFileSystem disk;
  PullOptions options = On(&disk);
  options.mode = PullMode::kRefresh;
  options.source.directory = dir / "source";
  options.target_dir = dir / "target";
  options.compact = GENERATE(true, false);
  const auto pull = MakePull(options);
  std::string published;
  std::string compacted;
  TEST_SetFaultHook([&](const std::string& point) {
    if (point == "Refresh:SummaryWritten") published = pull->progress().phase;
    if (point == "Refresh:Compacted") compacted = pull->progress().phase;
  });
  Summary summary;
  const rocksdb::Status ended = pull->Run(&summary);
  TEST_SetFaultHook(nullptr);
  REQUIRE_OK(ended);
  REQUIRE(published == "swap");
  REQUIRE(compacted == (options.compact ? "compact" : ""));
}

TEST_CASE("A refresh that would leave less than --min-free does not begin",
          "[transfer][refresh][nospace]") {
  const ScratchDir dir;
  Fill(dir / "source", 0);
  Fill(dir / "target", 1'000'000);
  FaultyFileSystem disk;
  disk.SetFreeSpace(ReserveOf(dir.path(), 5));
  PullOptions options = On(&disk);
  const Ferried refused = Refresh(dir / "source", dir / "target", options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kNoSpace);
  REQUIRE(refused.message().find("that --min-free keeps") !=
          std::string::npos);
  options.min_free_percent = 0;
  REQUIRE_OK(Refresh(dir / "source", dir / "target", options).status);
}

TEST_CASE("A refresh ends when others fill the disk, and the next run "
          "continues it",
          "[transfer][refresh][nospace]") {
  const ScratchDir dir;
  Fill(dir / "source", 0);
  Fill(dir / "target", 1'000'000);
  const auto before = EntriesOf(dir / "target", OneFamily());
  FaultyFileSystem disk;
  PullOptions options = On(&disk);
  options.lanes = 1;
  options.timeouts.stall = std::chrono::seconds(5);
  std::mutex mu;
  std::string log;  // under mu
  options.log = [&](LogLevel, const std::string& text) {
    std::lock_guard<std::mutex> lock(mu);
    log += text + "\n";
  };
  disk.OnStep([&](FileStep step, const std::string& path) {
    if (step == FileStep::kCreate && path.find("/staging/") != path.npos &&
        disk.count(FileStep::kCreate, "/staging/") == 4) {
      disk.SetFreeSpace(ReserveOf(dir.path(), 5));
    }
  });
  options.mode = PullMode::kRefresh;
  ServeOptions serve = ServeSample(dir / "source");
  serve.snapshot_ttl = std::chrono::seconds(60);
  TestServer server(serve);
  options.source = AddressAt(server.address());
  options.target_dir = dir / "target";
  Summary summary;
  const rocksdb::Status ended = MakePull(options)->Run(&summary);
  INFO(ended.ToString());
  REQUIRE(EndStateOf(ended) == EndState::kNoSpace);
  REQUIRE(log.find("waiting for disk space") != std::string::npos);
  REQUIRE(disk.count(FileStep::kCreate, "/staging/") < 8);
  REQUIRE(EntriesOf(dir / "target", OneFamily()) == before);
  disk.SetFreeSpace(uint64_t{1} << 50);
  options.timeouts.stall = std::chrono::minutes(1);
  REQUIRE_OK(MakePull(options)->Run(&summary));
  REQUIRE(summary.chunks_resumed > 0);
  ExpectSameEntries(dir / "source", dir / "target");
}

}  // namespace
}  // namespace sstferry::test::refresh_manners_test
