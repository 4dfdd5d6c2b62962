// Tests that a plan ends as its pull would end, and changes nothing.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "pipeline/base/rocksdb_compat.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/named_comparator.h"
#include "tests/support/refreshed.h"

namespace sstferry::test::plan_checks_test {
namespace {

namespace fs = std::filesystem;

void Fill(const std::string& path, const Families& families) {
  OpenDb db(path, families);
  for (uint64_t i = 0; i < 500; ++i) {
    db.Put(NumberedKey(i), RandomBytes(200, i));
  }
  db.Flush();
}

PullOptions Between(const std::string& source, const std::string& target) {
  PullOptions options;
  options.method = PullMethod::kIngest;
  REQUIRE_OK(ParseSourceAddress(source, &options.source));
  options.target_dir = target;
  return options;
}

// Returns the contents of a directory and everything below it.
std::string All(const std::string& dir) {
  return fs::exists(dir) ? Fingerprint(dir) : "";
}

Ferried Plan(const PullOptions& options) {
  const std::string workspace = options.target_dir + ".sstferry";
  const std::string before = All(options.target_dir) + All(workspace);
  const bool begun = fs::exists(workspace);
  Ferried planned;
  planned.status = MakePlan(options)->Run(&planned.summary);
  REQUIRE(planned.summary.status.ToString() == planned.status.ToString());
  REQUIRE(All(options.target_dir) + All(workspace) == before);
  REQUIRE(fs::exists(workspace) == begun);
  return planned;
}

// Runs the plan and then the pull, and requires the same end.
void RequireSameEnd(const PullOptions& options, EndState state,
                    const std::string& text) {
  const Ferried planned = Plan(options);
  INFO(planned.message());
  REQUIRE(planned.state() == state);
  REQUIRE(planned.message().find(text) != std::string::npos);
  Ferried pulled;
  pulled.status = MakePull(options)->Run(&pulled.summary);
  INFO(pulled.message());
  REQUIRE(pulled.state() == planned.state());
  if (state != EndState::kBusy) {
    REQUIRE(pulled.message() == planned.message());
  }
}

// Holds a lock in another process during the object's lifetime.
class LockedElsewhere {
 public:
  LockedElsewhere(const std::string& path, bool whole_file) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    REQUIRE(pipe(done_) == 0);
    child_ = fork();
    if (child_ == 0) {
      const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0644);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      lock.l_whence = SEEK_SET;
      const bool received = whole_file ? flock(fd, LOCK_EX | LOCK_NB) == 0
                                   : fcntl(fd, F_SETLK, &lock) == 0;
      char byte = received ? 'y' : 'n';
      close(done_[1]);
      const bool told = write(ready[1], &byte, 1) == 1;
      _exit(told && read(done_[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(done_[0]);
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    REQUIRE(byte == 'y');
    close(ready[0]);
    close(ready[1]);
  }
  ~LockedElsewhere() {
    close(done_[1]);
    waitpid(child_, nullptr, 0);
  }
  LockedElsewhere(const LockedElsewhere&) = delete;
  LockedElsewhere& operator=(const LockedElsewhere&) = delete;

 private:
  int done_[2];
  pid_t child_ = -1;
};

TEST_CASE("A plan of a possible pull ends with OK and says what the pull needs",
          "[transfer][plan]") {
  const ScratchDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  const Ferried planned = Plan(Between(dir / "source", dir / "target"));
  INFO(planned.message());
  REQUIRE_OK(planned.status);
  REQUIRE(planned.summary.needed_bytes > 100'000);
  REQUIRE(planned.summary.free_bytes > planned.summary.needed_bytes);
  REQUIRE(planned.summary.method == "ingest");
  REQUIRE(planned.summary.methods.size() == 2);
  // Without a TARGET_DIR, no disk is checked.
  const Ferried unnamed = Plan(Between(dir / "source", ""));
  REQUIRE_OK(unnamed.status);
  REQUIRE(unnamed.summary.needed_bytes == planned.summary.needed_bytes);
  REQUIRE(unnamed.summary.free_bytes == 0);
  REQUIRE_OK(Ferry(dir / "source", dir / "target").status);
}

TEST_CASE("A plan refuses the directory that the pull refuses",
          "[transfer][plan]") {
  const ScratchDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  PullOptions options = Between(dir / "source", dir / "target");
  SECTION("a full directory") {
    Fill(dir / "target", OneFamily(Quiet()));
    RequireSameEnd(options, EndState::kRefused, "sstferry swap --adopt");
  }
  SECTION("a replica of an earlier pull") {
    REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
    RequireSameEnd(options, EndState::kRefused,
                   "next: sstferry refresh " + (dir / "source"));
  }
  SECTION("a link") {
    fs::create_directory(dir / "elsewhere");
    fs::create_directory_symlink(dir / "elsewhere", dir / "target");
    RequireSameEnd(options, EndState::kRefused, "found a file or a link");
  }
  SECTION("no parent") {
    options.target_dir = dir / "no/target";
    RequireSameEnd(options, EndState::kRefused, "does not exist");
  }
  SECTION("a workspace that sstferry did not make") {
    fs::create_directory(dir / "target.sstferry");
    fs::create_directory(dir / "target.sstferry/mine");
    RequireSameEnd(options, EndState::kRefused, "was not made by sstferry");
  }
}

TEST_CASE("A plan of a swap finds no problem with an existing replica",
          "[transfer][plan]") {
  const ScratchDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  PullOptions options = Between(dir / "source", dir / "target");
  options.mode = PullMode::kSwap;
  const Ferried planned = Plan(options);
  INFO(planned.message());
  REQUIRE_OK(planned.status);
}

TEST_CASE("A plan reports locks that the pull needs", "[transfer][plan]") {
  const ScratchDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  PullOptions options = Between(dir / "source", dir / "target");
  SECTION("a process has the database open") {
    const LockedElsewhere open(dir / "target/LOCK", /*whole_file=*/false);
    SECTION("that is refreshed in place") {
      options.mode = PullMode::kRefresh;
      RequireSameEnd(options, EndState::kBusy, "holds its LOCK");
    }
    SECTION("that is swapped") {
      options.mode = PullMode::kSwap;
      RequireSameEnd(options, EndState::kBusy, "--before-swap");
    }
    SECTION("that a command stops before the swap") {
      options.mode = PullMode::kSwap;
      options.before_swap = [](const SwapEvent&) {
        FAIL("a plan calls no command");
        return rocksdb::Status::OK();
      };
      const Ferried planned = Plan(options);
      REQUIRE_OK(planned.status);
      REQUIRE(planned.notes_mention("--before-swap must stop"));
    }
  }
  SECTION("another pull works there") {
    options.mode = PullMode::kRefresh;
    fs::create_directory(dir / "target.sstferry");
    const LockedElsewhere pull(dir / "target.sstferry/lock",
                               /*whole_file=*/true);
    RequireSameEnd(options, EndState::kBusy, "another pull holds");
  }
}

TEST_CASE("A plan of a refresh refuses another source's replica",
          "[transfer][plan]") {
  const ScratchDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  Fill(dir / "other", OneFamily(Quiet()));
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  PullOptions options = Between(dir / "source", dir / "target");
  options.mode = GENERATE(PullMode::kRefresh, PullMode::kSwap);
  REQUIRE_OK(Plan(options).status);
  options.source.directory = dir / "other";
  RequireSameEnd(options, EndState::kRefused,
                 options.mode == PullMode::kSwap ? "--adopt replaces all"
                                                 : "--adopt accepts it");
  options.adopt = true;
  REQUIRE_OK(Plan(options).status);
}

TEST_CASE("A plan reports missing space, and an owner that cannot be set",
          "[transfer][plan]") {
  const ScratchDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  PullOptions options = Between(dir / "source", dir / "target");
  options.mode = PullMode::kRefresh;
  options.min_free_percent = 100;
  const Ferried planned = Plan(options);
  INFO(planned.message());
  REQUIRE(planned.state() == EndState::kNoSpace);
  REQUIRE(planned.message().find("make room there") != std::string::npos);
  REQUIRE(planned.summary.needed_bytes < planned.summary.free_bytes);
  REQUIRE_FALSE(planned.summary.items.empty());  // the plan is still complete
  options.min_free_percent = 0;
  options.target_mode = 0700;
  if ((fs::status(dir / "target").permissions() & fs::perms(0777)) !=
      fs::perms(0700)) {
    RequireSameEnd(options, EndState::kRefused, "0700");
  }
}

TEST_CASE("A plan of a swap counts only what the target does not have",
          "[transfer][plan]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (uint64_t i = 0; i < 1000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(1000, i));
    }
    db.Flush();
  }
  PullOptions options = Between(dir / "source", dir / "target");
  options.mode = PullMode::kSwap;
  options.method = PullMethod::kClone;
  Summary seeded;
  REQUIRE_OK(MakePull(options)->Run(&seeded));
  const Ferried same = Plan(options);
  REQUIRE_OK(same.status);
  REQUIRE(same.notes_mention("already holds the data of the source: the swap "
                             "leaves it as it is"));
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put(NumberedKey(5), "changed");
    db.Flush();
  }
  const Ferried planned = Plan(options);
  INFO(planned.message());
  REQUIRE_OK(planned.status);
  REQUIRE(planned.summary.files_reused == 1);
  REQUIRE(planned.summary.bytes_reused > 900'000);
  REQUIRE(planned.summary.methods.back().method == "clone");
  REQUIRE(planned.summary.methods.back().bytes < 100'000);
  REQUIRE(planned.summary.needed_bytes < 300'000);
  Summary night;
  REQUIRE_OK(MakePull(options)->Run(&night));
  REQUIRE(night.files_reused == planned.summary.files_reused);
  REQUIRE(night.bytes_reused == planned.summary.bytes_reused);
}

TEST_CASE("A plan reports the pull that the same command would resume",
          "[transfer][plan]") {
  const ScratchDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  PullOptions options = Between(dir / "source", dir / "target");
  options.mode = PullMode::kSwap;
  options.before_swap = [](const SwapEvent&) {
    return MakeStatus(EndState::kRefused, "not now");
  };
  Summary stopped;
  REQUIRE(EndStateOf(MakePull(options)->Run(&stopped)) == EndState::kRefused);
  REQUIRE(fs::exists(dir / "target.sstferry"));
  const Ferried planned = Plan(options);
  INFO(planned.message());
  REQUIRE_OK(planned.status);
  REQUIRE(planned.notes_mention("resumes transfer " + stopped.transfer_id));
  options.selection.families = {"default"};
  const Ferried other = Plan(options);
  REQUIRE(other.state() == EndState::kRefused);
}

TEST_CASE("A plan names the column family that this program cannot create",
          "[transfer][plan]") {
  static const NamedComparator order("an order of the source's own");
  const ScratchDir dir;
  Families families = OneFamily(Quiet());
  families[0].options.comparator = &order;
  OpenDb db(dir / "source", families);
  db.Put("a", "b");
  db.Flush();
  ServeOptions serve;
  serve.databases = {{"db", "", db.get(), {db.cf()}}};
  TestServer server(serve);
  PullOptions options = Between(server.url("db"), dir / "target");
  RequireSameEnd(options, EndState::kIncompatible,
                 "an order of the source's own");
}

TEST_CASE("A plan reports what happens to another compaction style",
          "[transfer][plan]") {
  const ScratchDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  Families universal = OneFamily(Quiet());
  universal[0].options.compaction_style = rocksdb::kCompactionStyleUniversal;
  { const OpenDb changed(dir / "target", universal); }
  PullOptions options = Between(dir / "source", dir / "target");
  options.mode = PullMode::kRefresh;
  const Ferried planned = Plan(options);
  INFO(planned.message());
  REQUIRE(planned.status.ok() == kUniversalIngestsOverData);
  REQUIRE((planned.notes_mention("keeps its compaction style (universal") ||
           planned.message().find("only a swap can") != std::string::npos));
  // The refresh must end as planned.
  REQUIRE(Refresh(dir / "source", dir / "target", options).state() ==
          planned.state());
}

TEST_CASE("A plan says whether chunks can fill a family, as the pull does",
          "[transfer][plan]") {
  const ScratchDir dir;
  Families fifo = OneFamily(Quiet());
  fifo[0].options.compaction_style = rocksdb::kCompactionStyleFIFO;
  fifo[0].options.compaction_options_fifo.max_table_files_size = 1ull << 40;
  Fill(dir / "source", fifo);
  PullOptions options = Between(dir / "source", dir / "target");
  REQUIRE(Plan(options).status.ok() == kFifoIngestsToLevel0);
  REQUIRE((Ferry(dir / "source", dir / "target", options).state() ==
           EndState::kOk) == kFifoIngestsToLevel0);
  options.method = PullMethod::kAuto;
  options.target_dir = dir / "clone";
  REQUIRE(Plan(options).summary.method == "clone");
}

}  // namespace
}  // namespace sstferry::test::plan_checks_test
