// Tests the application's own files: a seed copies them, and a swap keeps those
// that the replica's application changed.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>

#include "format/other_file.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/other_files.h"
#include "pipeline/snapshot/other_files.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/denied_calls.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::other_files_test {
namespace {

namespace fs = std::filesystem;

std::string TextIn(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return BytesIn(in);
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

void MakeSource(const std::string& path, int round = 0) {
  OpenDb db(path, OneFamily());
  for (int i = 0; i < 50; ++i) {
    db.Put(NumberedKey(i), "value " + std::to_string(i + round));
  }
  db.Flush();
}

mode_t ModeOf(const std::string& path) {
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

PullOptions By(PullMethod method) {
  PullOptions options;
  options.method = method;
  return options;
}

TEST_CASE("A seed by any method copies the application's files",
          "[transfer][other_files]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  MakeSource(source);
  const std::string big = RandomBytes(700'000, 3);  // several messages
  Write(source + "/NAME-config.json", "{\"raw_mode\": true}");
  Write(source + "/SESSION_ID", big);
  Write(source + "/empty", "");
  REQUIRE(chmod((source + "/NAME-config.json").c_str(), 0755) == 0);
  REQUIRE(chmod((source + "/SESSION_ID").c_str(), 0600) == 0);
  const PullMethod method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  const Via via = GENERATE(Via::kDirectory, Via::kTcp);
  const Ferried ferried = Ferry(source, dir / "target", By(method), via);
  INFO(ferried.message());
  REQUIRE_OK(ferried.status);
  REQUIRE(TextIn(dir / "target/NAME-config.json") == "{\"raw_mode\": true}");
  REQUIRE(TextIn(dir / "target/SESSION_ID") == big);
  REQUIRE(fs::file_size(dir / "target/empty") == 0);
  REQUIRE(ferried.summary.other_files == 3);
  REQUIRE(ferried.summary.other_files_bytes == 700'018);
  REQUIRE(ferried.notes_mention("not as of the same point in time"));
  // A copied file has the mode of the database's files, but no permission that
  // the source's file does not have, and none to execute.
  const mode_t files = ModeOf(dir / "target/CURRENT");
  REQUIRE((files & 0111) == 0);
  REQUIRE(ModeOf(dir / "target/NAME-config.json") == files);
  REQUIRE(ModeOf(dir / "target/SESSION_ID") == (files & 0600));
  ExpectSameEntries(source, dir / "target");
}

TEST_CASE("A seed does not copy the application's files if it is told so",
          "[transfer][other_files]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  Write(dir / "source/config.json", "{}");
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.other_files = OtherFiles::kIgnore;
  const Ferried ferried = Ferry(dir / "source", dir / "target", options);
  REQUIRE_OK(ferried.status);
  REQUIRE(ferried.summary.other_files == 0);
  REQUIRE_FALSE(ferried.notes_mention("application's files"));
  REQUIRE_FALSE(fs::exists(dir / "target/config.json"));
  REQUIRE_FALSE(fs::exists(dir / "target/sstferry.files"));
}

TEST_CASE("Files that must not be copied are named in a note and are not "
          "copied",
          "[transfer][other_files]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  MakeSource(source);
  for (const char* name : {"core.17", "server.key", "cert.pem", "a b", ".x",
                           "notes.log", "current.txt"}) {
    Write(source + "/" + name, "secret");
  }
  fs::create_symlink("/etc/passwd", source + "/passwd");
  fs::create_directory(source + "/below");
  Write(source + "/below/file", "not looked at");
  Write(source + "/good", "good");
  const Ferried ferried = Ferry(source, dir / "target");
  INFO(ferried.message());
  REQUIRE_OK(ferried.status);
  REQUIRE(ferried.summary.other_files == 1);
  REQUIRE(TextIn(dir / "target/good") == "good");
  for (const char* name :
       {"core.17", "server.key", "cert.pem", "a b", ".x", "notes.log",
        "current.txt", "passwd", "below"}) {
    INFO(name);
    REQUIRE_FALSE(fs::exists(fs::symlink_status(dir / "target/" + name)));
    REQUIRE(ferried.notes_mention(name) == (std::string(name) != "below"));
  }
}

TEST_CASE("A file of 16 MiB is copied, but no larger one, and not more than 64 "
          "MiB in all",
          "[transfer][other_files]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  MakeSource(source);
  const auto make = [&source](const std::string& name, uint64_t bytes) {
    Write(source + "/" + name, "");
    fs::resize_file(source + "/" + name, bytes);
  };
  for (const char* name : {"a", "b", "c", "d"}) {
    make(name, kMaxOtherFileBytes);
  }
  make("a2", kMaxOtherFileBytes + 1);
  make("e", 1);
  make("f", 0);
  const Ferried ferried =
      Ferry(source, dir / "target", By(PullMethod::kClone), Via::kTcp);
  INFO(ferried.message());
  REQUIRE_OK(ferried.status);
  REQUIRE(ferried.summary.other_files == 5);
  REQUIRE(ferried.summary.other_files_bytes == kMaxOtherFilesBytes);
  REQUIRE(fs::file_size(dir / "target/d") == kMaxOtherFileBytes);
  REQUIRE(fs::exists(dir / "target/f"));
  REQUIRE_FALSE(fs::exists(dir / "target/a2"));
  REQUIRE_FALSE(fs::exists(dir / "target/e"));
  REQUIRE(ferried.notes_mention("a2, e (each is larger than 16 MiB"));
}

TEST_CASE("A file that vanishes or grows too large after the plan is named in "
          "a note",
          "[transfer][other_files]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  MakeSource(source);
  Write(source + "/gone", "soon");
  Write(source + "/grown", "soon");
  Write(source + "/rewritten", "old");
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.source.directory = source;
  options.target_dir = dir / "target";
  options.on_transfer = [&](const std::string&) {
    fs::remove(source + "/gone");
    fs::resize_file(source + "/grown", kMaxOtherFileBytes + 1);
    Write(source + "/rewritten", "new");
  };
  Ferried ferried;
  ferried.status = MakePull(options)->Run(&ferried.summary);
  REQUIRE_OK(ferried.status);
  REQUIRE(ferried.notes_mention("gone was not copied"));
  REQUIRE(ferried.notes_mention("grown was not copied"));
  REQUIRE_FALSE(fs::exists(dir / "target/gone"));
  REQUIRE_FALSE(fs::exists(dir / "target/grown"));
  REQUIRE(TextIn(dir / "target/rewritten") == "new");
}

struct SwapWorld {
  ScratchDir dir;
  int rounds = 0;

  SwapWorld() {
    MakeSource(source());
    Write(source() + "/config", "one");
  }
  std::string source() const { return dir / "source"; }
  std::string target() const { return dir / "target"; }
  std::string Config() const { return TextIn(target() + "/config"); }

  // Changes the source and swaps the replica.
  Ferried Night(PullMethod method = PullMethod::kIngest,
                OtherFiles other = OtherFiles::kCopy) {
    MakeSource(source(), ++rounds);
    PullOptions options = By(method);
    options.source.directory = source();
    options.target_dir = target();
    options.mode = PullMode::kSwap;
    options.other_files = other;
    Ferried ferried;
    ferried.status = MakePull(options)->Run(&ferried.summary);
    INFO(ferried.message());
    REQUIRE_OK(ferried.status);
    REQUIRE(ferried.summary.exchanged);
    REQUIRE_FALSE(fs::exists(target() + ".sstferry"));
    ExpectSameEntries(source(), target());
    return ferried;
  }
};

constexpr char kKept[] = "config, which is not part of the database";

TEST_CASE("A swap replaces a copied file by the source's new version",
          "[transfer][other_files][swap]") {
  SwapWorld world;
  const PullMethod method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  world.Night(method);
  REQUIRE(world.Config() == "one");
  Write(world.source() + "/config", "two");
  REQUIRE_FALSE(world.Night(method).notes_mention(kKept));
  REQUIRE(world.Config() == "two");
  // A file that the source deleted stays.
  fs::remove(world.source() + "/config");
  world.Night(method);
  REQUIRE(world.Config() == "two");
  // The next version of the source's file is copied again.
  Write(world.source() + "/config", "three");
  REQUIRE_FALSE(world.Night(method).notes_mention(kKept));
  REQUIRE(world.Config() == "three");
}

TEST_CASE("A swap keeps the replica's own files and those that it changed",
          "[transfer][other_files][swap]") {
  SwapWorld world;
  const PullMethod method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  world.Night(method);
  Write(world.target() + "/own", "own");
  Write(world.target() + "/.hidden", "own");
  Write(world.target() + "/core.1", "own");
  REQUIRE(chmod((world.target() + "/own").c_str(), 0751) == 0);
  Write(world.target() + "/config", "mine");
  const Ferried alone = world.Night(method);
  REQUIRE(world.Config() == "mine");  // only the replica changed it
  REQUIRE_FALSE(alone.notes_mention(kKept));
  Write(world.source() + "/config", "two");
  const Ferried both = world.Night(method);
  REQUIRE(world.Config() == "mine");
  REQUIRE(both.notes_mention(kKept));
  REQUIRE(world.Night(method).notes_mention(kKept));  // at each swap
  REQUIRE(TextIn(world.target() + "/own") == "own");
  REQUIRE(ModeOf(world.target() + "/own") == 0751);
  REQUIRE(fs::exists(world.target() + "/.hidden"));
  REQUIRE(fs::exists(world.target() + "/core.1"));
  // Once both are equal again, there is no note.
  Write(world.target() + "/config", "two");
  REQUIRE_FALSE(world.Night(method).notes_mention(kKept));
  Write(world.source() + "/config", "three");
  REQUIRE_FALSE(world.Night(method).notes_mention(kKept));
  REQUIRE(world.Config() == "three");
}

TEST_CASE("A file that no pull copied belongs to the replica, whatever the "
          "source has",
          "[transfer][other_files][swap]") {
  SwapWorld world;
  world.Night(PullMethod::kIngest, OtherFiles::kIgnore);
  REQUIRE_FALSE(fs::exists(world.target() + "/config"));
  Write(world.target() + "/config", "mine");
  REQUIRE(world.Night().notes_mention(kKept));
  REQUIRE(world.Config() == "mine");
  SECTION("also if the record of copied files is damaged") {
    Write(world.target() + "/config", "one");
    REQUIRE_FALSE(world.Night().notes_mention(kKept));
    Write(world.target() + "/sstferry.files", "damaged");
    Write(world.source() + "/config", "two");
    REQUIRE(world.Night().notes_mention(kKept));
    REQUIRE(world.Config() == "one");
  }
}

TEST_CASE("A swap that copies no files keeps the replica's files and the "
          "record of copied files",
          "[transfer][other_files][swap]") {
  SwapWorld world;
  world.Night();
  Write(world.source() + "/config", "two");
  world.Night(PullMethod::kIngest, OtherFiles::kIgnore);
  REQUIRE(world.Config() == "one");
  REQUIRE_FALSE(world.Night().notes_mention(kKept));
  REQUIRE(world.Config() == "two");
}

TEST_CASE("A refresh in place does not change the application's files",
          "[transfer][other_files]") {
  SwapWorld world;
  world.Night();
  Write(world.source() + "/config", "two");
  Write(world.source() + "/more", "more");
  MakeSource(world.source(), 100);
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.source.directory = world.source();
  options.target_dir = world.target();
  options.mode = PullMode::kRefresh;
  Summary planned;
  REQUIRE_OK(MakePlan(options)->Run(&planned));
  REQUIRE(planned.other_files == 0);
  Summary summary;
  REQUIRE_OK(MakePull(options)->Run(&summary));
  REQUIRE(world.Config() == "one");
  REQUIRE_FALSE(fs::exists(world.target() + "/more"));
  REQUIRE(summary.other_files == 0);
  world.Night();
  REQUIRE(world.Config() == "two");  // the record of copied files was kept
}

TEST_CASE("After a crash, files are placed again as they are then",
          "[transfer][other_files][swap]") {
  const ScratchDir dir;
  rocksdb::FileSystem* const files = rocksdb::FileSystem::Default().get();
  for (const char* name : {"other", "old", "db"}) {
    fs::create_directory(dir / name);
  }
  Write(dir / "db/CURRENT", "");
  REQUIRE_OK(WriteOtherFile(files, dir / "other", "config", "source's"));
  REQUIRE_OK(WriteCopiedFiles(files, dir / "other",
                              {{"config", {DigestOf("source's"), false}}}));
  Write(dir / "old/own", "own");
  Write(dir / "old/config", "mine");
  std::vector<std::string> kept;
  REQUIRE_OK(PlaceOtherFiles(files, dir / "other", dir / "old", dir / "db",
                             &kept));
  REQUIRE(kept == std::vector<std::string>{"config"});
  REQUIRE(TextIn(dir / "db/config") == "mine");
  // The application ran again before the next try of the exchange.
  fs::remove(dir / "old/own");
  fs::remove(dir / "old/config");
  Write(dir / "old/new", "new");
  REQUIRE_OK(PlaceOtherFiles(files, dir / "other", dir / "old", dir / "db",
                             &kept));
  REQUIRE(kept.empty());
  REQUIRE(TextIn(dir / "db/config") == "source's");
  REQUIRE_FALSE(fs::exists(dir / "db/own"));
  REQUIRE(TextIn(dir / "db/new") == "new");
  // Before permissions are set in db/, it must have no hard links to files of
  // TARGET_DIR.
  REQUIRE_OK(RemovePlacedFiles(files, dir / "db"));
  REQUIRE(fs::hard_link_count(dir / "old/new") == 1);
  REQUIRE(fs::hard_link_count(dir / "other/config") == 1);
}

TEST_CASE("A file of the application that cannot be read stays",
          "[transfer][other_files][swap]") {
  const ScratchDir dir;
  rocksdb::FileSystem* const files = rocksdb::FileSystem::Default().get();
  for (const char* name : {"other", "old", "db"}) {
    fs::create_directory(dir / name);
  }
  Write(dir / "db/CURRENT", "");
  const bool was_copied = GENERATE(false, true);
  const std::string theirs = was_copied ? "source's" : "";
  if (was_copied) {  // an empty one
    REQUIRE_OK(WriteCopiedFiles(files, dir / "old",
                                {{"config", {DigestOf(""), false}}}));
  }
  REQUIRE_OK(WriteOtherFile(files, dir / "other", "config", theirs));
  REQUIRE_OK(WriteCopiedFiles(files, dir / "other",
                              {{"config", {DigestOf(theirs), false}}}));
  const std::string mine(16384, 'm');
  Write(dir / "old/config", mine);
  std::vector<std::string> kept;
  rocksdb::Status placed;
  // Only reads of that many bytes fail.
  if (!RunWithDenied({{SYS_pread64, EIO, 2, 16384}}, [&] {
        placed = PlaceOtherFiles(files, dir / "other", dir / "old", dir / "db",
                                 &kept);
      })) {
    return;
  }
  REQUIRE_OK(placed);
  REQUIRE(TextIn(dir / "db/config") == mine);
  REQUIRE(kept == std::vector<std::string>{"config"});
  // A record that cannot be read ends the exchange: it may name files.
  REQUIRE(RunWithDenied({{SYS_pread64, EIO}}, [&] {
    placed = PlaceOtherFiles(files, dir / "other", dir / "old", dir / "db",
                             &kept);
  }));
  REQUIRE_FALSE(placed.ok());
}

TEST_CASE("A source lists at most 256 of the application's files",
          "[transfer][other_files]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  for (int i = 0; i < 260; ++i) {
    Write(dir / "source/f" + std::to_string(1000 + i), "x");
  }
  const Ferried ferried = Ferry(dir / "source", dir / "target");
  REQUIRE_OK(ferried.status);
  REQUIRE(ferried.summary.other_files == 256);
  REQUIRE(ferried.notes_mention("4 more are not sent"));
}

TEST_CASE("If two names differ only in case, the first one is copied",
          "[transfer][other_files]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  Write(dir / "source/Config", "upper");
  Write(dir / "source/config", "lower");
  const Ferried ferried = Ferry(dir / "source", dir / "target");
  REQUIRE_OK(ferried.status);
  REQUIRE(TextIn(dir / "target/Config") == "upper");
  REQUIRE_FALSE(fs::exists(dir / "target/config"));
}

TEST_CASE("A file is read completely or not at all",
          "[transfer][other_files]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  std::string contents;
  bool is_private = false;
  REQUIRE(EndStateOf(ReadOtherFile(dir / "source", "none", &contents,
                                   &is_private)) == EndState::kSourceError);
  fs::create_symlink(dir / "source/CURRENT", dir / "source/link");
  REQUIRE(EndStateOf(ReadOtherFile(dir / "source", "link", &contents,
                                   &is_private)) == EndState::kSourceError);
  if (geteuid() == 0) {
    Write(dir / "source/theirs", "of another account");
    REQUIRE(chown((dir / "source/theirs").c_str(), 12345, 12345) == 0);
    REQUIRE(EndStateOf(ReadOtherFile(dir / "source", "theirs", &contents,
                                     &is_private)) == EndState::kSourceError);
    // A file of root in a directory of another account is not read.
    Write(dir / "source/roots", "of root");
    REQUIRE(chown((dir / "source").c_str(), 12345, 12345) == 0);
    REQUIRE(EndStateOf(ReadOtherFile(dir / "source", "roots", &contents,
                                     &is_private)) == EndState::kSourceError);
    REQUIRE_OK(ReadOtherFile(dir / "source", "theirs", &contents,
                             &is_private));
    std::vector<OtherFile> files;
    uint64_t unlisted = 0;
    REQUIRE_OK(ListOtherFiles(dir / "source", &files, &unlisted));
    for (const OtherFile& file : files) {
      REQUIRE((file.name != "roots" ||
               file.kept_back == KeptBack::kAccount));
    }
  }
}

}  // namespace
}  // namespace sstferry::test::other_files_test
