// The file systems through which sstferry opens an application's database.
#include "pipeline/refresh/replica_files.h"
#include "tests/support/catch.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::replica_files_test {
namespace {

const char kVersion[] = "# head\n\n[Version]\n  rocksdb_version=9.10.0\n\n";
const char kDatabase[] = "[DBOptions]\n  app_option=1\n\n";
const char kDefault[] =
    "[CFOptions \"default\"]\n  compaction_filter=app.F\n\n"
    "[TableOptions/BlockBasedTable \"default\"]\n  block_size=1\n\n";
const char kUsers[] =
    "[CFOptions \"users [of\"]\n  ttl=1\n  \n"
    "[TableOptions/BlockBasedTable \"users [of\"]\n  block_size=2\n";
const char kStranger[] = "[Version]\n  rocksdb_version=7.8.3\n[DBOptions]\n";

std::string Text(std::initializer_list<const char*> parts) {
  std::string text;
  for (const char* part : parts) {
    text += part;
  }
  return text;
}

TEST_CASE("OPTIONS keep their text when families are added and removed",
          "[target]") {
  const std::string kept = Text({kVersion, kDatabase, kDefault, kUsers});
  const std::string defaults = "[CFOptions \"default\"]\n  ttl=5\n";
  const std::string users = "[CFOptions \"users [of\"]\n  ttl=5\n";
  const std::string more = "[CFOptions \"more\"]\n  ttl=6\n";
  REQUIRE(MergeOptionsTexts(kept, kStranger + defaults + users) == kept);
  REQUIRE(MergeOptionsTexts(kept, kStranger + defaults) ==
          Text({kVersion, kDatabase, kDefault}));
  REQUIRE(MergeOptionsTexts(kept, kStranger + defaults + users + more) ==
          kept + more);
  // The last line may have no line break.
  REQUIRE(MergeOptionsTexts(Text({kVersion, kDatabase}) + "[CFOptions \"a\"]",
                            kStranger + std::string("[CFOptions \"a\"]\n") +
                                more) ==
          Text({kVersion, kDatabase}) + "[CFOptions \"a\"]\n" + more);
}

TEST_CASE("After a failed step, only temporary files are deleted", "[target]") {
  ScratchDir dir;
  auto disk = std::make_shared<FaultyFileSystem>();
  const auto replica = MakeReplicaFileSystem(
      disk, dir / "db", "", std::make_shared<std::string>());
  const rocksdb::IOOptions io;
  REQUIRE_OK(replica->CreateDir(dir / "db", io, nullptr));
  for (const char* name : {"db/1.sst", "db/2.sst", "db/a.dbtmp", "staged"}) {
    WriteBytes(dir / name, "bytes");
  }
  REQUIRE_OK(replica->DeleteFile(dir / "db/1.sst", io, nullptr));
  std::unique_ptr<rocksdb::FSWritableFile> manifest;
  REQUIRE_OK(replica->NewWritableFile(dir / "db/MANIFEST-1", {}, &manifest,
                                      nullptr));
  disk->FailAt(FileStep::kSync, 1, DiskBroken());
  REQUIRE_OK(manifest->Append("edit", io, nullptr));
  REQUIRE_FALSE(manifest->Sync(io, nullptr).ok());
  REQUIRE_OK(manifest->Sync(io, nullptr));
  REQUIRE_FALSE(replica->DeleteFile(dir / "db/2.sst", io, nullptr).ok());
  REQUIRE_OK(replica->DeleteFile(dir / "db/a.dbtmp", io, nullptr));
  REQUIRE_OK(replica->DeleteFile(dir / "staged", io, nullptr));
  REQUIRE_OK(manifest->Close(io, nullptr));
  REQUIRE(NamesOf(dir / "db") ==
          std::vector<std::string>{"2.sst", "MANIFEST-1"});
}

TEST_CASE("Nothing is written through a read-only file system", "[target]") {
  ScratchDir dir;
  WriteBytes(dir / "file", "bytes");
  const auto reads = MakeReadOnlyFileSystem(rocksdb::FileSystem::Default());
  const rocksdb::IOOptions io;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  std::unique_ptr<rocksdb::FSRandomRWFile> random;
  REQUIRE_FALSE(reads->NewWritableFile(dir / "a", {}, &file, nullptr).ok());
  REQUIRE_FALSE(
      reads->ReopenWritableFile(dir / "file", {}, &file, nullptr).ok());
  REQUIRE_FALSE(
      reads->ReuseWritableFile(dir / "a", dir / "file", {}, &file, nullptr)
          .ok());
  REQUIRE_FALSE(
      reads->NewRandomRWFile(dir / "file", {}, &random, nullptr).ok());
  REQUIRE_FALSE(reads->DeleteFile(dir / "file", io, nullptr).ok());
  REQUIRE_FALSE(reads->Truncate(dir / "file", 1, io, nullptr).ok());
  REQUIRE_FALSE(reads->CreateDir(dir / "d", io, nullptr).ok());
  REQUIRE_FALSE(reads->CreateDirIfMissing(dir / "d", io, nullptr).ok());
  REQUIRE_FALSE(reads->RenameFile(dir / "file", dir / "b", io, nullptr).ok());
  REQUIRE_FALSE(reads->LinkFile(dir / "file", dir / "b", io, nullptr).ok());
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"file"});
  REQUIRE(BytesOf(dir / "file") == "bytes");
}

}  // namespace
}  // namespace sstferry::replica_files_test
