// Tests situations that users of other tools reported publicly as bugs. Each
// comment names the report.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::public_reports_test {
namespace {

namespace fs = std::filesystem;

int Run(std::vector<std::string> words,
        const std::map<std::string, std::string>& environment = {}) {
  Process process(words, environment);
  const int code = process.Wait();
  INFO(process.err());
  CHECK(process.err().find("terminate called") == std::string::npos);
  return code;
}

std::vector<std::string> WithLimit(const std::string& command,
                                   const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"/bin/sh", "-c", command + "; exec \"$@\"",
                                    "sh"};
  for (const std::string& word : Sstferry(arguments)) {
    words.push_back(word);
  }
  return words;
}

// Kills a slow pull of dir/source once its journal has begun: the next pull
// resumes. Without a journal it would begin anew, and the source would keep the
// snapshot of the killed pull until its lease ends.
void PullAndDie(const ScratchDir& dir) {
  Process pull(Sstferry({"pull", dir / "source", dir / "target", "--max-rate",
                         "300K", "--chunk-bytes", "64Ki"}));
  REQUIRE(pull.WaitForBytesIn(dir / "target.sstferry/journal"));
  pull.Signal(SIGKILL);
  pull.Wait();
}

// facebook/rocksdb#14119: tables without write permission cannot be ingested.
TEST_CASE("Tables without the right to write are pulled, refreshed and swapped",
          "[bad_input][reports]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  const auto protect = [](const std::string& db) {
    for (const std::string& name : NamesOf(db)) {
      if (name.ends_with(".sst")) {
        REQUIRE(chmod((db + "/" + name).c_str(), 0444) == 0);
      }
    }
  };
  protect(dir / "source");
  if (geteuid() == 0) {  // root may write despite modes
    REQUIRE(Run({"/bin/chown", "-R", "65534", dir.path()}) == 0);
  }
  for (const char* command : {"pull", "refresh", "swap"}) {
    INFO(command);
    std::vector<std::string> words =
        Sstferry({command, dir / "source", dir / "target"});
    if (geteuid() == 0) {
      words.insert(words.begin(), {"/usr/bin/setpriv", "--reuid=65534",
                                   "--regid=65534", "--clear-groups"});
    }
    REQUIRE(Run(words) == 0);
    protect(dir / "target");
  }
  REQUIRE(EntriesOf(dir / "source") == EntriesOf(dir / "target"));
}

// siodb/siodb#120, akumuli/Akumuli#227: a locale that does not exist ends C++
// programs. paradigmxyz/reth#22005, facebook/rocksdb#4089: few descriptors.
TEST_CASE("A locale that does not exist, or few descriptors, do not disturb a "
          "pull",
          "[bad_input][reports]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  REQUIRE(Run(Sstferry({"pull", dir / "source", dir / "a"}),
              {{"LC_ALL", "xx_YY.UTF-8"}, {"LANG", "nowhere"}}) == 0);
  REQUIRE(Run(WithLimit("ulimit -n 64", {"pull", dir / "source", dir / "b"})) ==
          0);
  REQUIRE(EntriesOf(dir / "source") == EntriesOf(dir / "b"));
}

// KAFKA-7334 (apache/kafka#9380): a cleaner of temporary files deletes files
// that are in use.
TEST_CASE("A resumed pull detects that a cleaner deleted files in its "
          "workspace",
          "[bad_input][reports]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  PullAndDie(dir);
  for (const char* place : {"/staging", "/db"}) {
    const std::string taken = (dir / "target.sstferry") + place;
    std::error_code error;
    for (fs::directory_iterator it(taken, error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == ".sst") {
        fs::remove(it->path());
        break;
      }
    }
  }
  REQUIRE(Run(Sstferry({"pull", dir / "source", dir / "target", "--verify"})) ==
          0);
  REQUIRE(EntriesOf(dir / "source") == EntriesOf(dir / "target"));
}

// LinuxGSM#2916, garethgeorge/backrest#543: the lock of a killed run blocks all
// later runs. rocicorp/mono#6355: failed runs leave files that accumulate.
TEST_CASE("Killed runs leave no lock, and no files that accumulate",
          "[bad_input][reports]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  std::vector<std::string> left;
  for (int i = 0; i < 3; ++i) {
    PullAndDie(dir);
    const std::vector<std::string> names = NamesOf(dir.path());
    REQUIRE((left.empty() || names.size() == left.size()));
    left = names;
  }
  REQUIRE(Run(Sstferry({"pull", dir / "source", dir / "target"})) == 0);
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source", "target"});
}

// FLINK-11743 (apache/flink#7841): a restore deletes files that are not its
// own.
TEST_CASE("Files with names like those of a pull's own files are not deleted",
          "[bad_input][reports]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  WriteBytes(dir / "target.tmp", "mine");
  for (const char* name : {"target.old", "target.sstferry-x", "target.bak"}) {
    fs::create_directory(dir / name);
    WriteBytes((dir / name) + "/kept", "mine");
  }
  REQUIRE(Run(Sstferry({"pull", dir / "source", dir / "target"})) == 0);
  REQUIRE(Run(Sstferry({"swap", dir / "source", dir / "target"})) == 0);
  REQUIRE(BytesOf(dir / "target.tmp") == "mine");
  for (const char* name : {"target.old", "target.sstferry-x", "target.bak"}) {
    REQUIRE(BytesOf((dir / name) + "/kept") == "mine");
  }
}

}  // namespace
}  // namespace sstferry::public_reports_test
