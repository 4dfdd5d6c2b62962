// Tests databases whose machine lost power, with files torn at any byte: every
// method must deliver what the application recovers.
// (tests/support/random_histories.h explains the environment variables.)
#include <filesystem>
#include <iostream>
#include <map>
#include <random>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "tests/support/catch.h"
#include "tests/support/power_loss_file_system.h"
#include "tests/support/random_histories.h"
#include "tests/support/replica_contents.h"
#include "tests/support/restored.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::test::power_cut_source_test {
namespace {

namespace fs = std::filesystem;
using Mode = rocksdb::WALRecoveryMode;

// Only every 8th database is pushed, because an archive has hundreds of
// objects.
constexpr uint64_t kPushedOneOf = 8;
// Number of bytes at the end of the newest WAL that are compared with zeros.
constexpr size_t kTailBytes = 16;

const Families& AllFamilies() {
  static const Families families = {{"default", Quiet()}, {"other", Quiet()}};
  return families;
}

// An application and its machine. The seed determines all of its actions.
class Machine {
 public:
  Machine(const std::string& root, uint64_t seed)
      : root_(root), random_(seed), seed_(seed) {
    fs::create_directories(root);
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.avoid_flush_during_recovery = Chance(2);
    options_.avoid_flush_during_shutdown = true;
    options_.wal_recovery_mode =
        !Chance(4) ? Mode::kPointInTimeRecovery
                   : static_cast<Mode>(random_() % 4);
    options_.manual_wal_flush = Chance(6);
    options_.track_and_verify_wals_in_manifest = Chance(4);
    if (Chance(4)) options_.wal_compression = rocksdb::kZSTD;
  }

  std::string db() const { return root_ + "/db"; }
  const rocksdb::DBOptions& options() const { return options_; }

  // Writes, then closes the database or loses power.
  void Live(bool loses_power) {
    PowerLossFileSystem power(root_);
    const auto file_system = std::shared_ptr<rocksdb::FileSystem>(
        &power, [](rocksdb::FileSystem*) {});
    const std::unique_ptr<rocksdb::Env> env =
        rocksdb::NewCompositeEnv(file_system);
    rocksdb::DBOptions options = options_;
    options.env = env.get();
    std::unique_ptr<rocksdb::DB> db;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    REQUIRE_OK(rocksdb::DB::Open(options, this->db(), AllFamilies(), &handles,
                                 IntoDb(&db)));
    const size_t steps = 5 + random_() % 60;
    for (size_t i = 0; i < steps; ++i) {
      Step(db.get(), handles);
    }
    if (loses_power) {
      power.LosePower(Survival::kRandom, seed_);
    }
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
    db->Close().PermitUncheckedError();  // fails without power
  }

 private:
  bool Chance(uint64_t one_of) { return random_() % one_of == 0; }

  void Step(rocksdb::DB* db,
            const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
    rocksdb::ColumnFamilyHandle* const family =
        handles[random_() % handles.size()];
    const std::string key = NumberedKey(random_() % 50);
    rocksdb::WriteOptions write;
    write.sync = Chance(8);
    if (Chance(20)) {
      REQUIRE_OK(db->Flush(rocksdb::FlushOptions(), family));
    } else if (Chance(10)) {
      REQUIRE_OK(db->Delete(write, family, key));
    } else {
      // A value may consist of zeros. A WAL that ends with them has no hole.
      const size_t bytes = Chance(10) ? random_() % 70'000 : random_() % 300;
      REQUIRE_OK(db->Put(write, family, key,
                         std::string(bytes, static_cast<char>(random_()))));
    }
  }

  const std::string root_;
  std::mt19937_64 random_;
  const uint64_t seed_;
  rocksdb::DBOptions options_;
};

bool EndsWithZeros(const std::string& db) {
  const std::vector<std::string> wals = PathsWith(db, ".log");
  if (wals.empty()) {
    return false;
  }
  const std::string bytes = BytesOf(wals.back());
  return bytes.size() > kTailBytes &&
         bytes.compare(bytes.size() - kTailBytes, kTailBytes,
                       std::string(kTailBytes, '\0')) == 0;
}

// Opens a copy as the application does. Returns nullopt if it does not open.
std::optional<Contents> Recovered(const Machine& machine,
                                  const std::string& from,
                                  const std::string& copy) {
  fs::copy(from, copy, fs::copy_options::recursive);
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DBOptions options = machine.options();
  const rocksdb::Status opened = rocksdb::DB::Open(
      options, copy, AllFamilies(), &handles, IntoDb(&db));
  if (!opened.ok()) {
    return std::nullopt;
  }
  Contents contents;
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    FamilyContents& family = contents[handle->GetName()];
    const std::unique_ptr<rocksdb::Iterator> it(
        db->NewIterator(rocksdb::ReadOptions(), handle));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      family[it->key().ToString()] = it->value().ToString();
    }
    REQUIRE_OK(it->status());
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    REQUIRE_OK(db->DestroyColumnFamilyHandle(handle));
  }
  return contents;
}

struct Counts {
  int opened = 0;
  int ended_with_zeros = 0;
  int not_openable = 0;
  int pushed = 0;
};

void PlayOne(uint64_t seed, Counts* counts) {
  INFO("seed " << seed);
  const ScratchDir dir;
  Machine machine(dir / "machine", seed);
  machine.Live(/*loses_power=*/false);
  PullOptions chunks = PullFrom(machine.db(), dir / "refreshed");
  chunks.method = PullMethod::kIngest;
  REQUIRE_OK(RunPull(chunks).status);
  machine.Live(/*loses_power=*/true);
  counts->ended_with_zeros += EndsWithZeros(machine.db()) ? 1 : 0;

  const std::string before = Fingerprint(machine.db());
  const std::optional<Contents> expected =
      Recovered(machine, machine.db(), dir / "recovered");
  std::map<std::string, PullOptions> pulls;
  pulls["auto"] = PullFrom(machine.db(), dir / "auto");
  pulls["ingest"] = PullFrom(machine.db(), dir / "ingest");
  pulls["ingest"].method = PullMethod::kIngest;
  pulls["clone"] = PullFrom(machine.db(), dir / "clone");
  pulls["clone"].method = PullMethod::kClone;
  pulls["refresh"] = PullFrom(machine.db(), dir / "refreshed");
  pulls["refresh"].mode = PullMode::kRefresh;
  for (const auto& [name, pull] : pulls) {
    INFO(name);
    const rocksdb::Status status = RunPull(pull).status;
    INFO(status.ToString());
    if (!expected.has_value()) {
      // A clone may be as damaged as its source.
      REQUIRE((!status.ok() || pull.method == PullMethod::kClone));
      continue;
    }
    REQUIRE(status.ok());
    const std::optional<Contents> found =
        Recovered(machine, pull.target_dir, dir / (name + " opened"));
    REQUIRE(found.has_value());
    REQUIRE(*found == *expected);
  }
  if (expected.has_value() && seed % kPushedOneOf == 0) {
    InitArchive(dir / "archive");
    PushTo(dir / "archive", machine.db());
    REQUIRE_OK(RestoreFrom(dir / "archive", dir / "restored").status);
    REQUIRE(Recovered(machine, dir / "restored", dir / "restored opened") ==
            expected);
    counts->pushed++;
  }
  REQUIRE(Fingerprint(machine.db()) == before);
  counts->opened += expected.has_value() ? 1 : 0;
  counts->not_openable += expected.has_value() ? 0 : 1;
}

}  // namespace

TEST_CASE("Every method delivers what an application recovers after a power "
          "cut",
          "[transfer][exact][recovery]") {
  const int databases = HistoryCount(10);
  Counts counts;
  for (int i = 0; i < databases; ++i) {
    PlayOne(static_cast<uint64_t>(i), &counts);
  }
  std::cerr << databases << " torn databases: " << counts.opened
            << " opened and equal by every method, " << counts.ended_with_zeros
            << " with zeros at the end of their newest WAL, "
            << counts.not_openable << " that RocksDB does not open, "
            << counts.pushed << " through an archive\n";
  REQUIRE(counts.opened > 0);
  REQUIRE(counts.pushed > 0);
}

}  // namespace sstferry::test::power_cut_source_test
