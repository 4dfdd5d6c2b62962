// Tests a served database whose owner puts links to other files in it: the
// source reads only files of the database, not other files that it has access
// to.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/snapshot/posix_files.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry::hostile_database_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

constexpr uid_t kApplication = 65533;
constexpr uid_t kOther = 65534;

bool MayChown() {
  if (geteuid() == 0) {
    return true;
  }
  WARN("SKIPPED: only root gives files to other accounts");
  return false;
}

void GiveTo(const std::string& path, uid_t uid) {
  REQUIRE(lchown(path.c_str(), uid, uid) == 0);
}

void GiveAllTo(const std::string& directory, uid_t uid) {
  GiveTo(directory, uid);
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    GiveTo(entry.path(), uid);
  }
}

std::string NameWith(const std::string& directory, const std::string& text) {
  for (const std::string& name : NamesOf(directory)) {
    if (name.find(text) != std::string::npos) {
      return name;
    }
  }
  FAIL("no " << text << " in " << directory);
  return "";
}

// Moves a file out of the database and leaves a symbolic link to it.
void LinkOut(const std::string& directory, const std::string& name,
             const std::string& to) {
  fs::rename(directory + "/" + name, to);
  fs::create_symlink(to, directory + "/" + name);
}

void RequireNotPulled(const ScratchDir& dir, const std::string& words) {
  for (const PullMethod method : {PullMethod::kClone, PullMethod::kIngest}) {
    PullOptions options = PullFrom(dir / "app/source", dir / "target");
    options.method = method;
    const Summary pulled = RunPull(options);
    INFO(pulled.status.ToString());
    CHECK(EndStateOf(pulled.status) == EndState::kSourceError);
    CHECK(MessageOf(pulled.status).find(words) != std::string::npos);
    CHECK_FALSE(fs::exists(dir / "target"));
  }
}

TEST_CASE("A symbolic link in place of a database file is not followed",
          "[source][hostile]") {
  const ScratchDir dir;
  fs::create_directory(dir / "app");
  SampleShape shape;
  shape.entries = 100;
  const char* const what =
      GENERATE("OPTIONS-", "IDENTITY", "CURRENT", "MANIFEST-", ".log");
  shape.in_wal_only = std::string(what) == ".log";
  const std::string source = dir / "app/source";
  MakeSampleDatabase(source, shape);
  const std::string name = NameWith(source, what);
  LinkOut(source, name, dir / "elsewhere");
  RequireNotPulled(dir, name + ": expected a regular file owned by uid " +
                            std::to_string(geteuid()));
}

TEST_CASE("A table that is a symbolic link is not hard-linked",
          "[source][hostile]") {
  const ScratchDir dir;
  fs::create_directory(dir / "app");
  const std::string source = dir / "app/source";
  MakeSampleDatabase(source);
  const std::string name = NameWith(source, ".sst");
  LinkOut(source, name, dir / "elsewhere.sst");
  RequireNotPulled(dir, name + ": expected a regular file");
}

TEST_CASE("A file of another account in a database is not read",
          "[source][hostile]") {
  const ScratchDir dir;
  fs::create_directory(dir / "app");
  if (!MayChown()) {
    return;
  }
  const std::string source = dir / "app/source";
  MakeSampleDatabase(source);
  GiveAllTo(source, kApplication);
  const std::string name =
      NameWith(source, GENERATE("OPTIONS-", ".sst", "MANIFEST-"));
  GiveTo(source + "/" + name, 0);  // as if an administrator had made it
  REQUIRE_OK(RunPull(PullFrom(source, dir / "target")).status);
  fs::remove_all(dir / "target");
  GiveTo(source + "/" + name, kOther);
  RequireNotPulled(dir, name +
                            ": expected a regular file owned by uid 65533, "
                            "the directory's owner, or by root, found a file "
                            "owned by uid 65534");
}

TEST_CASE("A FIFO in a database does not block a pull", "[source][hostile]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  MakeSampleDatabase(source);
  ServeProcess serve({"--db", "db=" + source, "--insecure"});
  REQUIRE(mkfifo((source + "/OPTIONS-999999").c_str(), 0666) == 0);
  for (const std::string& from : {source, serve.url()}) {
    Process pull(Sstferry({"pull", from, dir / "target"}));
    CHECK(pull.Wait(std::chrono::seconds(60)) == 1);
    INFO(pull.err());
    CHECK(pull.err().find("OPTIONS-999999: expected a regular file") !=
          std::string::npos);
    CHECK(pull.err().find("found a FIFO") != std::string::npos);
  }
  serve.process().Signal(SIGTERM);
  CHECK(serve.process().Wait(std::chrono::seconds(60)) >= 0);
}

TEST_CASE("An application cannot pass off another one's database as its own",
          "[source][hostile]") {
  if (!MayChown()) {
    return;
  }
  const ScratchDir dir;
  fs::create_directory(dir / "app");
  MakeSampleDatabase(dir / "other");
  fs::create_symlink(dir / "other", dir / "app/source");
  const uid_t owner = GENERATE(uid_t{0}, kOther);
  GiveAllTo(dir / "other", owner);
  REQUIRE_OK(RunPull(PullFrom(dir / "app/source", dir / "target")).status);
  fs::remove_all(dir / "target");
  GiveTo(dir / "app/source", kApplication);
  RequireNotPulled(dir, "found one of uid 65533");
}

TEST_CASE("A directory that became a link after it was resolved is not read",
          "[source][hostile]") {
  const ScratchDir dir;
  fs::create_directories(dir / "app/source");
  WriteBytes(dir / "app/source/CURRENT", "MANIFEST-000005\n");
  WriteBytes(dir / "app/source/OPTIONS-000007", "text");
  std::string real;
  REQUIRE_OK(ResolveDatabase(dir / "app/../app/source/", &real));
  Descriptor file;
  REQUIRE_OK(OpenForeign(real + "/OPTIONS-000007", &file));
  REQUIRE(file.is_open());
  fs::rename(dir / "app", dir / "moved");
  fs::create_symlink(dir / "moved", dir / "app");
  REQUIRE_FALSE(OpenForeign(real + "/OPTIONS-000007", &file).ok());
  REQUIRE_FALSE(file.is_open());
}

TEST_CASE("A wal_dir of another account is read only if the operator names it",
          "[source][hostile]") {
  if (!MayChown()) {
    return;
  }
  const ScratchDir dir;
  fs::create_directory(dir / "app");
  const std::string source = dir / "app/source";
  const std::string wals = dir / "wals";
  {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.wal_dir = wals;
    std::unique_ptr<rocksdb::DB> db;
    REQUIRE_OK(rocksdb::DB::Open(options, source, IntoDb(&db)));
    REQUIRE_OK(db->Put({}, "key", "value"));
  }
  GiveAllTo(source, kApplication);
  GiveAllTo(wals, kApplication);
  PullOptions options = PullFrom(source, dir / "target");
  REQUIRE_OK(RunPull(options).status);
  fs::remove_all(dir / "target");
  GiveAllTo(wals, kOther);
  const Summary refused = RunPull(options);
  INFO(refused.status.ToString());
  REQUIRE(EndStateOf(refused.status) == EndState::kRefused);
  REQUIRE(MessageOf(refused.status).find("--wal-dir") != std::string::npos);
  options.wal_dir = wals;
  REQUIRE_OK(RunPull(options).status);
  REQUIRE(EntriesOf(dir / "target").size() == 1);
}

}  // namespace
}  // namespace sstferry::hostile_database_test
