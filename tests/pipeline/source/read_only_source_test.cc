// Sources on a file system that is mounted read-only, as a snapshot of a volume
// is after a disaster.
#include <sys/mount.h>

#include <filesystem>

#include "pipeline/source/directory/lease_file.h"
#include "pipeline/source/snapshot/snapshot.h"
#include "tests/support/held_support.h"
#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;

// Mounted until the test ends, however it ends.
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

TEST_CASE("A source on a read-only file system is read where it is",
          "[snapshot][readonly]") {
  const ReadOnlySource source(GENERATE(true, false));
  if (!source.is_mounted()) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  SnapshotOptions options;
  options.database_dir = source.path();
  std::unique_ptr<Snapshot> snapshot;
  const rocksdb::Status refused = Snapshot::Create(options, &snapshot);
  REQUIRE(EndStateOf(refused) == EndState::kSourceError);
  REQUIRE(MessageOf(refused).find(
              "give a writable directory with --snapshot-dir (on any file "
              "system") != std::string::npos);
  options.snapshot_dir = source.snapshots();
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  REQUIRE(ReadAll(*snapshot, "default") == source.entries);
  snapshot.reset();
  REQUIRE(fs::is_empty(source.snapshots()));
}

TEST_CASE("A snapshot of a read-only source is resumed by the next server",
          "[held][readonly]") {
  const ReadOnlySource source(false);
  if (!source.is_mounted()) {
    WARN("SKIPPED: this process may not mount");
    return;
  }
  ServeOptions serve = ServeSample(source.path());
  serve.snapshot_ttl = std::chrono::seconds(100);
  serve.snapshot_dir = source.snapshots();
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

TEST_CASE("A link in a retained snapshot counts only if nobody can replace it",
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
}  // namespace sstferry
