#include "tests/crash/kill_world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/compacted.h"
#include "tests/support/relay.h"
#include "tests/support/sample_database.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr uint64_t kKeysAtRest = 20'000;
constexpr char kAtRest[] = "at_rest";
constexpr char kLive[] = "live";
// Maximum number of starts of a pull after the last kill. More mean that
// something is wrong.
constexpr uint64_t kMaxStartsAfterKills = 20;

// Picks a port below the ephemeral ports, so that no other socket takes it
// while its process is dead. Does not use the seed: several worlds with one
// seed may run at the same time.
uint16_t PickPort() {
  std::random_device random;
  for (int tries = 0; tries < 1000; ++tries) {
    const auto port = static_cast<uint16_t>(15'000 + random() % 15'000);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool free =
        bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    close(fd);
    if (free) {
      return port;
    }
  }
  FAIL("no free port");
  return 0;
}

std::string Loopback(uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

}  // namespace

// Runs as a process of its own until it is killed.
TEST_CASE("child: a relay", "[.child]") {
  const char* port = std::getenv("SSTFERRY_TEST_RELAY_PORT");
  const char* server = std::getenv("SSTFERRY_TEST_SERVER_PORT");
  if (port == nullptr || server == nullptr) {
    return;
  }
  Relay relay({"127.0.0.1", static_cast<uint16_t>(std::atoi(server))},
              static_cast<uint16_t>(std::atoi(port)));
  printf("relaying\n");
  fflush(stdout);
  while (true) {
    pause();
  }
}

WrittenDatabase::WrittenDatabase(const std::string& path) : path_(path) {
  rocksdb::ColumnFamilyOptions live;
  live.write_buffer_size = 256 << 10;
  families_ = {{rocksdb::kDefaultColumnFamilyName, live},
               {kLive, live},
               {kAtRest, test::SmallFiles()}};
  db_ = std::make_unique<test::OpenDb>(path, families_);
  test::FillCompacted(db_.get(), 0, kKeysAtRest, kAtRest);
  sequence_at_rest_ = (*db_)->GetLatestSequenceNumber();
  writer_ = std::thread([this] { WriteUntilStopped(); });
}

WrittenDatabase::~WrittenDatabase() { StopWriting(); }

void WrittenDatabase::StopWriting() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  if (writer_.joinable()) {
    writer_.join();
  }
}

void WrittenDatabase::WriteUntilStopped() {
  std::unique_lock<std::mutex> lock(mu_);
  for (uint64_t batch = 0; !stop_; ++batch) {
    lock.unlock();
    rocksdb::WriteBatch writes =
        ToWriteBatch(HistoryBatch(batch, 2), {db_->cf(), db_->cf(kLive)});
    const rocksdb::Status status =
        (*db_)->Write(rocksdb::WriteOptions(), &writes);
    if (!status.ok()) {
      fprintf(stderr, "write: %s\n", status.ToString().c_str());
      std::abort();
    }
    lock.lock();
    // Limits the load of the writer, so that it leaves disk time to the pulls.
    stop_changed_.wait_for(lock, std::chrono::microseconds(500),
                           [this] { return stop_; });
  }
}

uint64_t WrittenDatabase::RequireEqualSnapshot(const std::string& target,
                                               bool shares) {
  const nlohmann::json last =
      nlohmann::json::parse(BytesOf(target + "/last_transfer.json"));
  const uint64_t sequence = last["snapshot_sequence"];
  INFO(target << " at sequence " << sequence);
  chunks_built_ += last["chunks_built"].get<uint64_t>();
  if (!last["chunks_cloned"].is_null()) {  // a clone
    chunks_cloned_ += last["chunks_cloned"].get<uint64_t>();
  }
  REQUIRE(sequence >= sequence_at_rest_);
  if (shares && sequence < compared_) {
    model_ = HistoryModel(2);
  }
  compared_ = sequence;
  REQUIRE(model_.AdvanceTo(sequence - sequence_at_rest_));
  for (size_t i = 0; i < 2; ++i) {
    const auto found = test::EntriesOf(target, families_,
                                       i == 0 ? "default" : kLive);
    REQUIRE(std::map<std::string, std::string>(found.begin(), found.end()) ==
            model_.family(i));
  }
  const auto at_rest = test::EntriesOf(target, families_, kAtRest);
  REQUIRE(at_rest.size() == kKeysAtRest);
  for (uint64_t i = 0; i < kKeysAtRest; ++i) {
    const bool equal = at_rest[i].first == test::NumberedKey(i) &&
                       at_rest[i].second == test::RandomBytes(200, i);
    if (!equal) {
      FAIL("differs at " << at_rest[i].first);
    }
  }
  return sequence;
}

KilledPull::KilledPull(WrittenDatabase* database, const KilledTarget& what,
                       const std::string& target, const std::string& url)
    : database_(database), what_(what), target_(target), url_(url) {}

void KilledPull::Launch() {
  starts_++;
  std::vector<std::string> arguments = {
      "pull",    url_, target_,         "--method", what_.method, "--json",
      "--lanes", "2",  "--chunk-bytes", "256Ki",    "--max-rate", "10M",
      "--progress", "never"};
  if (what_.method == "ingest") {
    arguments.push_back("--verify");
  }
  if (what_.shares) {
    arguments.insert(arguments.end(), {"--snapshot", "latest"});
  }
  process_ = std::make_unique<Process>(Sstferry(arguments));
}

void KilledPull::Start() {
  fs::remove_all(target_);
  done_ = false;
  starts_ = 0;
  Launch();
}

void KilledPull::Kill() {
  if (done_) {
    return;
  }
  process_->Signal(SIGKILL);
  process_->Wait();
  Launch();
}

bool KilledPull::Step(milliseconds limit) {
  const int code = done_ ? 0 : process_->Wait(limit);
  if (done_ || code == -1) {
    return done_;
  }
  INFO(target_ << " ended with " << code << ": " << process_->out()
               << process_->err());
  if (code == 0) {
    done_ = true;
  } else if (fs::exists(target_)) {
    // The pull was killed after its rename and before its end.
    REQUIRE(process_->err().find("REFUSED") != std::string::npos);
    done_ = true;
  } else {
    REQUIRE(code == ExitCodeOf(EndState::kDeadPeer));
    last_words_ = process_->err();
    Launch();
  }
  return done_;
}

uint64_t KilledPull::RequireComplete() {
  REQUIRE(done_);
  REQUIRE_FALSE(fs::exists(target_ + ".sstferry"));
  return database_->RequireEqualSnapshot(target_, what_.shares);
}

KillWorld::KillWorld(uint64_t seed, const std::vector<KilledTarget>& targets)
    : random_(seed) {
  server_port_ = PickPort();
  relay_port_ = PickPort();
  for (const KilledTarget& one : targets) {
    std::unique_ptr<WrittenDatabase>& database = databases_[one.database];
    if (database == nullptr) {
      database = std::make_unique<WrittenDatabase>(dir_ / one.database);
    }
    pulls_.push_back(std::make_unique<KilledPull>(
        database.get(), one, dir_ / ("target-" + one.name),
        "sst://" + Loopback(relay_port_) + "/" + one.database));
  }
  StartServer();
  StartRelay();
}

void KillWorld::StartServer() {
  std::vector<std::string> arguments = {"--snapshot-ttl", "5s",
                                        "--share-snapshots", "5s"};
  for (const auto& [name, database] : databases_) {
    arguments.insert(arguments.end(), {"--db", name + "=" + database->path()});
  }
  server_ = std::make_unique<ServeProcess>(arguments, Loopback(server_port_));
}

void KillWorld::StartRelay() {
  relay_ = std::make_unique<Process>(
      CaseOfThisProgram("child: a relay"),
      std::map<std::string, std::string>{
          {"SSTFERRY_TEST_RELAY_PORT", std::to_string(relay_port_)},
          {"SSTFERRY_TEST_SERVER_PORT", std::to_string(server_port_)}});
  REQUIRE(relay_->WaitForOut("relaying"));
}

// Waits for a random time, and restarts pulls that ended meanwhile.
void KillWorld::WaitUpTo(uint64_t milliseconds_at_most) {
  const uint64_t each =
      random_() % (milliseconds_at_most / pulls_.size() + 1);
  for (const auto& pull : pulls_) {
    pull->Step(milliseconds(each));
  }
}

void KillWorld::KillOne() {
  const uint64_t victim = random_() % 3;
  const uint64_t which = random_() % pulls_.size();
  static constexpr const char* kNames[] = {"source", "relay", "target"};
  printf("cycle %llu: kill the %s%s\n",
         static_cast<unsigned long long>(++cycles_), kNames[victim],
         victim == 2 ? (" " + pulls_[which]->what().name).c_str() : "");
  kills_[victim]++;
  if (victim == 2) {
    pulls_[which]->Kill();
    return;
  }
  Process& process = victim == 0 ? server_->process() : *relay_;
  process.Signal(SIGKILL);
  REQUIRE(process.Wait() == 128 + SIGKILL);
  WaitUpTo(200);  // the killed process stays away for a while
  if (victim == 0) {
    StartServer();
  } else {
    StartRelay();
  }
}

void KillWorld::FinishPulls() {
  for (const auto& pull : pulls_) {
    const uint64_t starts = pull->starts();
    while (!pull->Step(std::chrono::seconds(60))) {
      INFO(pull->last_words());
      REQUIRE(pull->starts() < starts + kMaxStartsAfterKills);
    }
  }
  std::map<std::pair<std::string, uint64_t>, uint64_t> targets;
  for (const auto& pull : pulls_) {
    const uint64_t sequence = pull->RequireComplete();
    shared_ += targets[{pull->what().database, sequence}]++ > 0 ? 1 : 0;
  }
}

void KillWorld::Round(int kills) {
  for (const auto& pull : pulls_) {
    pull->Start();
  }
  for (int i = 0; i < kills; ++i) {
    WaitUpTo(800);
    KillOne();
  }
  FinishPulls();
}

std::vector<std::string> KillWorld::Leftovers() const {
  std::vector<std::string> found;
  for (const std::string& name : NamesOf(dir_.path())) {
    if (name.find("sstferry") != std::string::npos) {
      found.push_back(name);
    }
  }
  return found;
}

void KillWorld::Finish() {
  for (const auto& [name, database] : databases_) {
    database->StopWriting();
  }
  // After the restart, targets cannot share an older snapshot.
  server_->process().Signal(SIGTERM);
  REQUIRE(server_->process().Wait() == 0);
  StartServer();
  Round(0);
  for (const auto& pull : pulls_) {
    Process verify(Sstferry({"verify",
                             "sst://" + Loopback(server_port_) + "/" +
                                 pull->what().database,
                             pull->target()}));
    const int code = verify.Wait();
    INFO(verify.out() << verify.err());
    REQUIRE(code == 0);
  }
  // Snapshots of pulls that were killed before they had recorded their request;
  // each is removed when its lease ends.
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::promise<void> never;
  while (!Leftovers().empty() && std::chrono::steady_clock::now() < until) {
    never.get_future().wait_for(std::chrono::milliseconds(50));
    never = std::promise<void>();
  }
  server_->process().Signal(SIGTERM);
  REQUIRE(server_->process().Wait() == 0);
  std::string left;
  for (const std::string& name : Leftovers()) {
    left += name + " ";
  }
  REQUIRE(left.empty());
}

uint64_t KillWorld::chunks_built() const {
  uint64_t chunks = 0;
  for (const auto& [name, database] : databases_) {
    chunks += database->chunks_built();
  }
  return chunks;
}

uint64_t KillWorld::chunks_cloned() const {
  uint64_t chunks = 0;
  for (const auto& [name, database] : databases_) {
    chunks += database->chunks_cloned();
  }
  return chunks;
}

void KillWorld::Report() {
  printf(
      "%llu kills: %llu of the source, %llu of the relay, %llu of a target;"
      " %llu chunks rebuilt, %llu cloned in the targets compared; %llu of "
      "these had the snapshot of another one\n",
      static_cast<unsigned long long>(cycles_),
      static_cast<unsigned long long>(kills_[0]),
      static_cast<unsigned long long>(kills_[1]),
      static_cast<unsigned long long>(kills_[2]),
      static_cast<unsigned long long>(chunks_built()),
      static_cast<unsigned long long>(chunks_cloned()),
      static_cast<unsigned long long>(shared_));
}

}  // namespace sstferry
