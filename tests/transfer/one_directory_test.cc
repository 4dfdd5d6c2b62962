// Tests that one directory as both source and target is refused under any name,
// before anything is made in it.
#include <sys/mount.h>

#include <filesystem>
#include <fstream>

#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/refreshed.h"
#include "tests/support/test_db.h"

namespace sstferry::test::one_directory_test {
namespace {

namespace fs = std::filesystem;

struct Mode {
  const char* name;
  void (*set)(PullOptions*);
};

const Mode kModes[] = {
    {"pull", [](PullOptions*) {}},
    {"refresh",
     [](PullOptions* options) {
       options->mode = PullMode::kRefresh;
       options->adopt = true;
     }},
    {"swap",
     [](PullOptions* options) {
       options->mode = PullMode::kSwap;
       options->adopt = true;
     }},
};

void MakeSource(const std::string& path, const std::string& wal_dir = "") {
  rocksdb::DBOptions options;
  options.wal_dir = wal_dir;
  OpenDb db(path, OneFamily(Quiet()), options);
  for (int i = 0; i < 100; ++i) {
    db.Put(NumberedKey(i), "value");
  }
  db.Flush();
  db.Put("in the WAL", "value");
}

Summary Run(const PullOptions& options) {
  Summary summary;
  MakePull(options)->Run(&summary).PermitUncheckedError();
  return summary;
}

// A bind mount, which the destructor removes.
class BindMount {
 public:
  BindMount(const std::string& what, const std::string& where)
      : where_(where),
        is_there_(mount(what.c_str(), where.c_str(), nullptr, MS_BIND,
                        nullptr) == 0) {}
  ~BindMount() {
    if (is_there_) {
      umount(where_.c_str());
    }
  }
  BindMount(const BindMount&) = delete;
  BindMount& operator=(const BindMount&) = delete;
  bool is_there() const { return is_there_; }

 private:
  const std::string where_;
  const bool is_there_;
};

// Requires that pulls from a directory, and from a server on this machine, are
// refused.
void RequireRefused(const ScratchDir& dir, const std::string& source,
                    const std::string& target,
                    const std::vector<std::string>& watched) {
  for (const Mode& mode : kModes) {
    for (const bool over_tcp : {false, true}) {
      std::string before;
      for (const std::string& path : watched) {
        before += Fingerprint(path);
      }
      PullOptions options;
      options.method = PullMethod::kIngest;
      options.target_dir = target;
      options.snapshot_ttl = std::chrono::seconds(0);
      mode.set(&options);
      Summary summary;
      if (over_tcp) {
        ServeOptions serve;
        serve.snapshot_ttl = std::chrono::seconds(0);
        serve.databases.push_back({"db", source, nullptr, {}});
        TestServer server(serve);
        options.source = AddressAt(server.address());
        summary = Run(options);
      } else {
        options.source.directory = source;
        summary = Run(options);
      }
      INFO(mode.name << (over_tcp ? " over TCP: " : ": ")
                     << summary.status.ToString());
      // From a bind mount, pinning may fail first: no file can be linked from
      // one mount to another.
      const bool not_pinned =
          EndStateOf(summary.status) == EndState::kSourceError &&
          source.ends_with("/M");
      REQUIRE((EndStateOf(summary.status) == EndState::kRefused || not_pinned));
      REQUIRE(MessageOf(summary.status).find(dir.path()) != std::string::npos);
      std::string after;
      for (const std::string& path : watched) {
        after += Fingerprint(path);
      }
      REQUIRE(after == before);
    }
  }
  for (const auto& entry : fs::recursive_directory_iterator(dir.path())) {
    REQUIRE_FALSE(entry.path().string().ends_with(".sstferry"));
  }
}

TEST_CASE("A source is refused as its own target, inside it, and around it",
          "[transfer][untouched]") {
  ScratchDir dir;
  MakeSource(dir / "S");
  SECTION("the same path") {
    RequireRefused(dir, dir / "S", dir / "S", {dir / "S"});
  }
  SECTION("the same path, written differently") {
    RequireRefused(dir, dir / "S", dir / "S/../S/", {dir / "S"});
  }
  SECTION("a new directory in it") {
    RequireRefused(dir, dir / "S", dir / "S/sub", {dir / "S"});
  }
  SECTION("a symbolic link to the source") {
    fs::create_directory_symlink(dir / "S", dir / "L");
    RequireRefused(dir, dir / "L", dir / "S", {dir / "S"});
    RequireRefused(dir, dir / "S", dir / "L", {dir / "S"});
    RequireRefused(dir, dir / "S", dir / "L/sub", {dir / "S"});
  }
  SECTION("a snapshot in the target") {
    fs::create_directory(dir / "T");
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.source.directory = dir / "S";
    options.target_dir = dir / "T";
    options.snapshot_dir = dir / "T";
    options.mode = PullMode::kSwap;
    const Summary summary = Run(options);
    INFO(summary.status.ToString());
    REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
    REQUIRE(Fingerprint(dir / "T").empty());
  }
  SECTION("a source inside the target") {
    fs::create_directory(dir / "T");
    fs::rename(dir / "S", dir / "T/S");
    RequireRefused(dir, dir / "T/S", dir / "T", {dir / "T"});
  }
  SECTION("a source in the target's workspace") {
    fs::create_directory(dir / "T.work");
    fs::create_directory(dir / "T.work/db");
    MakeSource(dir / "T.work/db");
    std::ofstream(dir / "T.work/lock") << "sstferry workspace 1\n";
    std::ofstream(dir / "T.work/journal") << "x";
    fs::rename(dir / "T.work", dir / "T.sstferry");
    const std::string before = Fingerprint(dir / "T.sstferry");
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.source.directory = dir / "T.sstferry/db";
    options.target_dir = dir / "T";
    const Summary summary = Run(options);
    INFO(summary.status.ToString());
    REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
    REQUIRE(Fingerprint(dir / "T.sstferry") == before);
  }
}

TEST_CASE("A directory that is mounted a second time is the same one",
          "[transfer][untouched]") {
  ScratchDir dir;
  MakeSource(dir / "S");
  fs::create_directory(dir / "M");
  const BindMount mounted(dir / "S", dir / "M");
  if (!mounted.is_there()) {
    WARN("nothing may be mounted here");
    return;
  }
  RequireRefused(dir, dir / "M", dir / "S", {dir / "S"});
  RequireRefused(dir, dir / "S", dir / "M", {dir / "S"});
  RequireRefused(dir, dir / "S", dir / "M/sub", {dir / "S"});
  RequireRefused(dir, dir / "M", dir / "S/sub", {dir / "S"});
}

TEST_CASE("A target in the source's WAL directory is refused",
          "[transfer][untouched]") {
  ScratchDir dir;
  fs::create_directory(dir / "W");
  MakeSource(dir / "S", dir / "W");
  SECTION("the directory itself") {
    RequireRefused(dir, dir / "S", dir / "W", {dir / "S", dir / "W"});
  }
  SECTION("a directory in it") {
    RequireRefused(dir, dir / "S", dir / "W/T", {dir / "S", dir / "W"});
  }
}

TEST_CASE("A target in a WAL directory that only an option names is refused",
          "[transfer][untouched]") {
  ScratchDir dir;
  MakeSource(dir / "S");
  fs::create_directory(dir / "W");
  std::ofstream(dir / "W/kept") << "x";
  const std::string before = Fingerprint(dir / "W");
  ServeOptions serve;
  serve.snapshot_ttl = std::chrono::seconds(0);
  serve.databases.push_back({"db", dir / "S", nullptr, {}, {}, dir / "W"});
  TestServer server(serve);
  for (const bool over_tcp : {false, true}) {
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.target_dir = dir / "W/T";
    if (over_tcp) {
      options.source = AddressAt(server.address());
    } else {
      options.source.directory = dir / "S";
      options.wal_dir = dir / "W";
    }
    const Summary summary = Run(options);
    INFO(summary.status.ToString());
    REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
    REQUIRE(Fingerprint(dir / "W") == before);
  }
}

TEST_CASE("WALs in the target are not overwritten", "[transfer][untouched]") {
  ScratchDir dir;
  fs::create_directories(dir / "T/W");
  MakeSource(dir / "S", dir / "T/W");
  RequireRefused(dir, dir / "S", dir / "T", {dir / "S", dir / "T"});
}

TEST_CASE("An application's own database is not refreshed from itself",
          "[transfer][untouched]") {
  ScratchDir dir;
  OpenDb db(dir / "S", OneFamily(Quiet()));
  db.Put("key", "value");
  db.Flush();
  const std::string before = Fingerprint(dir / "S");
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.adopt = true;
  const Ferried moved = RefreshOpen(dir / "S", &db, {"default"}, options);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(Fingerprint(dir / "S") == before);
}

TEST_CASE("Siblings in one directory count as two directories",
          "[transfer][untouched]") {
  ScratchDir dir;
  MakeSource(dir / "S");
  REQUIRE_OK(Ferry(dir / "S", dir / "T").status);
  REQUIRE_OK(Ferry(dir / "S", dir / "T2", {}, Via::kTcp).status);
  REQUIRE_OK(Refresh(dir / "S", dir / "T").status);
}

}  // namespace
}  // namespace sstferry::test::one_directory_test
