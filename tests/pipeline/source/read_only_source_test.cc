// Sources on a read-only file system, such as a snapshot of a volume that is
// mounted after a disaster.
#include <sys/mount.h>

#include <cstdlib>
#include <filesystem>

#include "pipeline/archive/snapshot_source.h"
#include "pipeline/snapshot/lease_file.h"
#include "pipeline/snapshot/snapshot.h"
#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"
#include "tests/support/retained_support.h"
#include "tests/support/sample_database.h"

namespace sstferry::read_only_source_test {
namespace {

namespace fs = std::filesystem;

// A source on a read-only mount. The mount is removed when the test ends.
class ReadOnlySource {
 public:
  explicit ReadOnlySource(bool in_wal_only) {
    fs::create_directory(dir / "disk");
    fs::create_directory(dir / "snapshots");
    is_mounted_ = mount("none", (dir / "disk").c_str(), "tmpfs", 0,
                        "size=64m") == 0;
    if (!is_mounted_) {
      return;
    }
    SampleShape shape;
    shape.in_wal_only = in_wal_only;
    MakeSampleDatabase(path(), shape);
    entries = EntriesOf(path());
    REQUIRE(mount("none", (dir / "disk").c_str(), "tmpfs",
                  MS_REMOUNT | MS_RDONLY, "size=64m") == 0);
  }
  ~ReadOnlySource() {
    if (is_mounted_) {
      umount((dir / "disk").c_str());
    }
  }
  bool is_mounted() const { return is_mounted_; }
  std::string path() const { return dir / "disk/source"; }
  std::string snapshots() const { return dir / "snapshots"; }

  const ScratchDir dir;
  std::map<std::string, std::string> entries;

 private:
  bool is_mounted_ = false;
};

// Sets the directory for temporary files while it exists.
class TemporaryFilesIn {
 public:
  explicit TemporaryFilesIn(const std::string& directory) {
    const char* const old = getenv("TMPDIR");
    was_set_ = old != nullptr;
    old_ = was_set_ ? old : "";
    setenv("TMPDIR", directory.c_str(), 1);
  }
  ~TemporaryFilesIn() {
    if (was_set_) {
      setenv("TMPDIR", old_.c_str(), 1);
    } else {
      unsetenv("TMPDIR");
    }
  }

 private:
  bool was_set_ = false;
  std::string old_;
};

TEST_CASE("A source on a read-only file system is read without a copy",
          "[snapshot][readonly]") {
  const ReadOnlySource source(GENERATE(true, false));
  if (!source.is_mounted()) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  SnapshotOptions options;
  options.database_dir = source.path();
  std::unique_ptr<Snapshot> snapshot;
  {
    // No directory is writable.
    const TemporaryFilesIn there(fs::path(source.path()).parent_path());
    const rocksdb::Status refused = Snapshot::Create(options, &snapshot);
    REQUIRE(EndStateOf(refused) == EndState::kSourceError);
    REQUIRE(MessageOf(refused).find(
                "expected a writable directory, which --snapshot-dir can name "
                "(on any file system") != std::string::npos);
  }
  SECTION("with links in a directory that an option names") {
    options.snapshot_dir = source.snapshots();
    REQUIRE_OK(Snapshot::Create(options, &snapshot));
  }
  SECTION("with links in the directory for temporary files") {
    const TemporaryFilesIn there(source.snapshots());
    REQUIRE_OK(Snapshot::Create(options, &snapshot));
  }
  REQUIRE(ReadAll(*snapshot, "default") == source.entries);
  REQUIRE(fs::path(snapshot->directory()).parent_path() ==
          source.snapshots());
  snapshot.reset();
  REQUIRE(fs::is_empty(source.snapshots()));
}

TEST_CASE("A pull from a read-only file system needs no option",
          "[snapshot][readonly]") {
  const ReadOnlySource source(GENERATE(true, false));
  if (!source.is_mounted()) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  const TemporaryFilesIn there(source.snapshots());
  const bool clones = GENERATE(true, false);
  PullOptions options = PullFrom(source.path(), source.dir / "target");
  options.method = clones ? PullMethod::kClone : PullMethod::kIngest;
  const Summary pulled = RunPull(options);
  REQUIRE_OK(pulled.status);
  REQUIRE(EntriesOf(source.dir / "target") == source.entries);
  REQUIRE(fs::is_empty(source.snapshots()));
}

// A source on a read-only mount of a directory that another mount can change.
class SharedSource {
 public:
  SharedSource() {
    fs::create_directory(dir / "disk");
    MakeSampleDatabase(dir / "disk/source");
    fs::create_directory(dir / "read-only");
    fs::create_directory(dir / "snapshots");
    const std::string shown = dir / "read-only";
    is_mounted_ = mount((dir / "disk").c_str(), shown.c_str(), nullptr, MS_BIND,
                        nullptr) == 0;
    if (is_mounted_) {
      REQUIRE(mount("none", shown.c_str(), nullptr,
                    MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0);
    }
  }
  ~SharedSource() {
    if (is_mounted_) {
      umount((dir / "read-only").c_str());
    }
  }
  bool is_mounted() const { return is_mounted_; }
  std::string path() const { return dir / "read-only/source"; }
  // Removes a table through the other mount. `replaces`: puts another file with
  // the same bytes there, so that only the file's identity differs.
  void Change(bool replaces) const {
    for (const auto& file : fs::directory_iterator(dir / "disk/source")) {
      if (file.path().extension() != ".sst") {
        continue;
      }
      fs::copy_file(file.path(), dir / "disk/copy");
      fs::remove(file.path());
      if (replaces) {
        fs::rename(dir / "disk/copy", file.path());
      }
      return;
    }
  }

  const ScratchDir dir;

 private:
  bool is_mounted_ = false;
};

TEST_CASE("A pull fails if another mount of a read-only source changes a file",
          "[snapshot][readonly]") {
  const SharedSource source;
  if (!source.is_mounted()) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  const TemporaryFilesIn there(source.dir / "snapshots");
  const int what = GENERATE(0, 1, 2);
  PullOptions options = PullFrom(source.path(), source.dir / "target");
  options.method = GENERATE(PullMethod::kClone, PullMethod::kIngest);
  options.on_transfer = [&](const std::string&) {
    if (what != 0) source.Change(/*replaces=*/what == 2);
  };
  const Summary pulled = RunPull(options);
  INFO(pulled.status.ToString());
  if (what == 0) {
    REQUIRE_OK(pulled.status);
    return;
  }
  REQUIRE(EndStateOf(pulled.status) == EndState::kSourceError);
  REQUIRE_FALSE(fs::exists(source.dir / "target"));
}

TEST_CASE("A push fails if another mount of a read-only source changes a file",
          "[snapshot][readonly]") {
  const SharedSource source;
  if (!source.is_mounted()) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  const TemporaryFilesIn there(source.dir / "snapshots");
  SnapshotOptions options;
  options.database_dir = source.path();
  std::unique_ptr<SnapshotSource> pushed;
  REQUIRE_OK(SnapshotSource::Take(options, &pushed));
  REQUIRE_OK(pushed->Finish());
  source.Change(/*replaces=*/GENERATE(false, true));
  REQUIRE(EndStateOf(pushed->Finish()) == EndState::kSourceError);
}

TEST_CASE("A snapshot of a read-only source is resumed by the next server",
          "[held][readonly]") {
  const ReadOnlySource source(false);
  if (!source.is_mounted()) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  const bool by_option = GENERATE(true, false);
  const TemporaryFilesIn there(by_option ? "/tmp" : source.snapshots());
  ServeOptions serve = ServeSample(source.path());
  serve.snapshot_ttl = std::chrono::seconds(100);
  serve.snapshot_dir = by_option ? source.snapshots() : "";
  auto server = std::make_unique<TestServer>(serve);
  std::unique_ptr<Channel> control;
  Announced opened;
  REQUIRE_OK(OpenAs(server->address(), SampleRequest(), &control, &opened));
  control->Close();
  server = std::make_unique<TestServer>(serve);
  REQUIRE(SnapshotsIn(source.snapshots()).size() == 1);
  REQUIRE_OK(OpenAs(server->address(), ResumeOf(opened.opened.transfer_id),
                    &control, &opened));
  REQUIRE(opened.opened.resumed);
}

TEST_CASE("A retained snapshot with symbolic links is not accepted",
          "[held][readonly]") {
  const ScratchDir dir;
  fs::create_directory(dir / "db");
  WriteBytes(dir / "file", "bytes");
  fs::create_hard_link(dir / "file", dir / "db/000001.sst");
  REQUIRE(HoldsOnlyFiles(dir / "db"));
  fs::create_symlink(dir / "file", dir / "db/000002.sst");
  REQUIRE_FALSE(HoldsOnlyFiles(dir / "db"));
}

}  // namespace
}  // namespace sstferry::read_only_source_test
