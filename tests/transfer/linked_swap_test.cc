// Tests swaps of replicas that were made of chunks: the new directory consists
// of links to the old one's files, and of what changed.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/durable.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::linked_swap_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

PullOptions Swapping(const ScratchDir& dir) {
  PullOptions options;
  options.source.directory = dir / "source";
  options.target_dir = dir / "target";
  options.method = PullMethod::kIngest;
  options.mode = PullMode::kSwap;
  return options;
}

Ferried Run(const PullOptions& options) {
  Ferried ran;
  ran.status = MakePull(options)->Run(&ran.summary);
  return ran;
}

Families TwoFamilies() {
  return {{"default", Quiet()}, {"second", Quiet()}};
}

// Makes 2 MB in each of two families.
void MakeSource(const std::string& path) {
  OpenDb db(path, TwoFamilies());
  for (const char* family : {"default", "second"}) {
    for (int i = 0; i < 2000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(1000, i), family);
    }
    db.Flush();
    db.Compact(family);
  }
}

// Changes, adds and removes some keys.
void ChangeSource(const std::string& path) {
  OpenDb db(path, TwoFamilies());
  for (int i = 0; i < 2000; i += 100) {
    db.Put(NumberedKey(i), "changed");
    db.Delete(NumberedKey(i + 1), "second");
  }
  db.Put(NumberedKey(5000), "new");
  db.Flush();
}

// Seeds the target, then changes the source.
void MakeNight(const ScratchDir& dir) {
  MakeSource(dir / "source");
  PullOptions options;
  options.method = PullMethod::kIngest;
  const Ferried first = Ferry(dir / "source", dir / "target", options);
  INFO(first.message());
  REQUIRE_OK(first.status);
  ChangeSource(dir / "source");
}

void ExpectAsAtSource(const ScratchDir& dir) {
  Expectation expected;
  expected.families = TwoFamilies();
  ExpectSameEntries(dir / "source", dir / "target", expected);
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
}

// Returns the bytes and attributes of each file, without those that a new hard
// link changes (link count and ctime).
std::map<std::string, std::string> StateOf(const std::string& directory) {
  std::map<std::string, std::string> state;
  for (const std::string& path : PathsWith(directory, "")) {
    struct stat info;
    REQUIRE(lstat(path.c_str(), &info) == 0);
    std::ifstream in(path, std::ios::binary);
    state[fs::path(path).filename()] =
        std::to_string(info.st_ino) + " " + std::to_string(info.st_uid) + " " +
        std::to_string(info.st_gid) + " " + std::to_string(info.st_mode) + " " +
        std::to_string(info.st_size) + " " +
        std::to_string(info.st_mtim.tv_sec) + "." +
        std::to_string(info.st_mtim.tv_nsec) + " " +
        BytesIn(in);
  }
  REQUIRE(state.count("CURRENT") == 1);
  return state;
}

// Returns the old directory, which is complete while after_swap runs.
std::string OldOf(const ScratchDir& dir) { return dir / "target.sstferry/db"; }

uint64_t SharedTables(const std::string& a, const std::string& b) {
  std::map<ino_t, uint64_t> names;
  for (const std::string& directory : {a, b}) {
    for (const std::string& path : PathsWith(directory, ".sst")) {
      struct stat info;
      REQUIRE(lstat(path.c_str(), &info) == 0);
      names[info.st_ino]++;
    }
  }
  uint64_t shared = 0;
  for (const auto& [inode, count] : names) {
    shared += count == 2 ? 1 : 0;
  }
  return shared;
}

TEST_CASE("A swap of an ingested replica sends only what changed",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  for (const PullMethod method : {PullMethod::kIngest, PullMethod::kAuto}) {
    PullOptions options = Swapping(dir);
    options.method = method;
    options.verify = method == PullMethod::kAuto;
    const Ferried night = Run(options);
    INFO(night.message());
    REQUIRE_OK(night.status);
    REQUIRE(night.summary.mode == "swap");
    REQUIRE(night.summary.exchanged);
    REQUIRE(night.summary.files_reused >= 2);
    REQUIRE(night.summary.bytes_reused > 3'900'000);
    REQUIRE(night.summary.sst_bytes < 40'000);
    REQUIRE(night.summary.verified == options.verify);
    ExpectAsAtSource(dir);
    OpenDb(dir / "source", TwoFamilies()).Put(NumberedKey(7), "another");
  }
}

TEST_CASE("A plan of a swap counts what is linked", "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  const auto before = Fingerprint(dir / "target");
  Summary plan;
  REQUIRE_OK(MakePlan(Swapping(dir))->Run(&plan));
  REQUIRE(plan.files_reused >= 2);
  REQUIRE(plan.bytes_reused > 3'900'000);
  REQUIRE(plan.needed_bytes > 0);
  // The estimate includes a chunk for each lane, because it is unknown which
  // keys differ.
  REQUIRE(plan.needed_bytes < 4'500'000);
  REQUIRE(Fingerprint(dir / "target") == before);
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
}

TEST_CASE("Everything that is not the source's is gone, as after a rebuild",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  {  // (dummy)
    rocksdb::ColumnFamilyOptions other = Quiet();
    other.write_buffer_size = 1 << 20;
    OpenDb db(dir / "target", {{"default", other}, {"second", other}});
    db.Create({"own", Quiet()});
    db.Put("mine", "1");
    db.Put(NumberedKey(3), "mine");
    db.Delete(NumberedKey(4), "second");
    db.Put("mine", "2", "own");
    db.Flush();
    db.DeleteRange(NumberedKey(900), NumberedKey(950));
    db.Put("in the WAL", "3");
  }
  {
    OpenDb db(dir / "source", TwoFamilies());
    db.Create({"third", Quiet()});
    db.Put("new", "family", "third");
    db.Drop("second");
  }
  const Ferried night = Run(Swapping(dir));
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.files_reused > 0);
  Expectation expected;
  expected.families = {{"default", Quiet()}, {"third", Quiet()}};
  ExpectSameEntries(dir / "source", dir / "target", expected);
  std::vector<std::string> families;
  REQUIRE_OK(rocksdb::DB::ListColumnFamilies({}, dir / "target", &families));
  REQUIRE(std::set<std::string>(families.begin(), families.end()) ==
          std::set<std::string>{"default", "third"});

  const std::string options_text = [&] {
    const auto paths = PathsWith(dir / "target", "");
    std::string text;
    for (const std::string& path : paths) {
      if (path.find("/OPTIONS-") != std::string::npos) {
        REQUIRE(text.empty());  // expects one OPTIONS file
        std::ifstream in(path);
        text = BytesIn(in);
      }
    }
    return text;
  }();
  PullOptions anew = Swapping(dir);
  anew.adopt = true;
  const Ferried again = Run(anew);
  REQUIRE_OK(again.status);
  REQUIRE(again.summary.files_reused == 0);
  for (const std::string& path : PathsWith(dir / "target", "")) {
    if (path.find("/OPTIONS-") != std::string::npos) {
      std::ifstream in(path);
      REQUIRE(BytesIn(in) ==
              options_text);
    }
  }
}

TEST_CASE("A swap by links changes nothing of the old directory",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  fs::permissions(dir / "target", fs::perms{0750});
  for (const std::string& path : PathsWith(dir / "target", "")) {
    fs::permissions(path, fs::perms{0640});
  }
  auto app = std::make_unique<OpenDb>(dir / "target", TwoFamilies());
  app->Put("in the WAL", "of the application");
  std::map<std::string, std::string> before;
  PullOptions options = Swapping(dir);
  options.before_swap = [&](const SwapEvent&) {
    app.reset();
    for (const std::string& path : PathsWith(dir / "target", "")) {
      fs::permissions(path, fs::perms{0640});
    }
    before = StateOf(dir / "target");
    return Status::OK();
  };
  uint64_t shared = 0;
  options.after_swap = [&](const SwapEvent& event) {
    REQUIRE(event.exchanged);
    auto after = StateOf(OldOf(dir));
    after.erase("LOCK");  // the exchange held this lock
    before.erase("LOCK");
    for (const auto& [name, state] : before) {
      INFO(name);
      REQUIRE(after[name] == state);
    }
    REQUIRE(after.size() == before.size());
    shared = SharedTables(OldOf(dir), dir / "target");
    return Status::OK();
  };
  const Ferried night = Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(shared >= 2);
  ExpectAsAtSource(dir);
  struct stat info;
  REQUIRE(stat((dir / "target/CURRENT").c_str(), &info) == 0);
  REQUIRE((info.st_mode & 07777) == 0640);
}

TEST_CASE("Both directories of a swap by links may be written to",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  const std::string kept = dir / "kept";
  PullOptions options = Swapping(dir);
  options.after_swap = [&](const SwapEvent&) {
    // Keeps hard links, because the swap deletes the old directory afterwards.
    fs::create_directory(kept);
    for (const std::string& path : PathsWith(OldOf(dir), "")) {
      const std::string name = fs::path(path).filename();
      name.ends_with(".sst") ? fs::create_hard_link(path, kept + "/" + name)
                             : fs::copy(path, kept + "/" + name);
    }
    return Status::OK();
  };
  REQUIRE_OK(Run(options).status);
  REQUIRE(SharedTables(kept, dir / "target") >= 2);
  using Entries = std::vector<std::pair<std::string, std::string>>;
  std::map<std::string, std::map<std::string, Entries>> expected;
  const std::vector<std::string> both = {kept, dir / "target"};
  for (int round = 0; round < 2; ++round) {
    for (const std::string& directory : both) {
      OpenDb db(directory, TwoFamilies());
      for (int i = round; i < 2000; i += 7) {
        db.Put(NumberedKey(i), directory + std::to_string(round));
        db.Delete(NumberedKey(i + 1), "second");
      }
      db.DeleteRange(NumberedKey(300 + round), NumberedKey(600), "second");
      db.Flush();
      if (round == 0 || directory == kept) {
        db.Compact("default");
        db.Compact("second");
      }
    }
    for (const std::string& directory : both) {
      for (const char* family : {"default", "second"}) {
        const Entries entries = EntriesOf(directory, TwoFamilies(), family);
        REQUIRE(entries.size() > 1000);
        for (const auto& [key, value] : entries) {
          const bool is_others =
              value.starts_with(directory == kept ? dir / "target" : kept);
          REQUIRE_FALSE(is_others);
        }
        expected[directory][family] = entries;
      }
    }
  }
  fs::remove_all(kept);
  for (const char* family : {"default", "second"}) {
    REQUIRE(EntriesOf(dir / "target", TwoFamilies(), family) ==
            expected[dir / "target"][family]);
  }
}

TEST_CASE("A file that must get another mode is copied, not linked",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  std::map<std::string, std::string> before;
  PullOptions options = Swapping(dir);
  options.target_mode = 0700;
  for (const std::string& path : PathsWith(dir / "target", "")) {
    fs::permissions(path, fs::perms{0644});
  }
  options.before_swap = [&](const SwapEvent&) {
    before = StateOf(dir / "target");
    return Status::OK();
  };
  options.after_swap = [&](const SwapEvent&) {
    auto after = StateOf(OldOf(dir));
    for (const auto& [name, state] : before) {
      INFO(name);
      REQUIRE((name == "LOCK" || after[name] == state));
    }
    REQUIRE(SharedTables(OldOf(dir), dir / "target") == 0);
    return Status::OK();
  };
  const Ferried night = Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.notes.size() > 0);
  REQUIRE(night.notes_mention("are copied, not linked"));
  REQUIRE(night.summary.files_reused == 0);
  REQUIRE(night.summary.sst_bytes < 40'000);
  ExpectAsAtSource(dir);
  for (const std::string& path : PathsWith(dir / "target", "")) {
    struct stat info;
    REQUIRE(lstat(path.c_str(), &info) == 0);
    REQUIRE((info.st_mode & 07777) == 0600);
  }
}

TEST_CASE("A swap rebuilds what cannot be linked, and says why",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  std::string why;
  SECTION("a SingleDelete of the replica's application") {
    OpenDb db(dir / "target", TwoFamilies());
    db.Put("once", "1");
    db.Flush();
    REQUIRE_OK(db->SingleDelete({}, db.cf(), "once"));
    db.Flush();
    why = "SingleDelete";
  }
  SECTION("other levels") {
    rocksdb::ColumnFamilyOptions fewer = Quiet();
    fewer.num_levels = 9;
    OpenDb db(dir / "source", {{"default", fewer}, {"second", fewer}});
    why = "the number of levels is 7 in TARGET_DIR and 9 at the source";
  }
  SECTION("a table that is damaged") {
    const std::string table = PathsWith(dir / "target", ".sst").front();
    fs::resize_file(table, fs::file_size(table) - 1000);
    why = "expected";
  }
  SECTION("a fault is known") {
    std::ofstream(dir / "target/sstferry.health") << "torn";
    why = "known";
  }
  const Ferried night = Run(Swapping(dir));
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.notes_mention(
      "builds the new database without the files of the old one: "));
  REQUIRE(night.notes_mention(why));
  REQUIRE(night.summary.files_reused == 0);
  REQUIRE(night.summary.bytes_reused == 0);
  ExpectAsAtSource(dir);
  REQUIRE_FALSE(fs::exists(dir / "target/sstferry.health"));
}

TEST_CASE("After a verify, a bit that the disk changed in the replica is not "
          "in the new one",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  // Damages a place where no interval changed, so that only the verify reads
  // it.
  const std::string table = PathsWith(dir / "target", ".sst").front();
  const auto middle = static_cast<std::streamoff>(fs::file_size(table) / 2);
  {
    std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(middle);
    const int byte = file.get();
    file.seekp(middle);
    file.put(static_cast<char>(byte ^ 0x10));
    REQUIRE(file.good());
  }
  PullOptions options = Swapping(dir);
  options.verify = true;
  const Ferried night = Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.verified);
  REQUIRE(night.summary.files_reused == 0);
  REQUIRE(night.notes_mention("builds the new database without"));
  ExpectAsAtSource(dir);
}

TEST_CASE("A swap that failed in its hook does not link again when it resumes",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  int calls = 0;
  PullOptions options = Swapping(dir);
  options.before_swap = [&](const SwapEvent&) {
    calls++;
    return MakeStatus(EndState::kRefused, "not now");
  };
  const Ferried night = Run(options);
  REQUIRE(night.state() == EndState::kRefused);
  REQUIRE(calls == 1);
  options.before_swap = nullptr;
  const Ferried again = Run(options);
  INFO(again.message());
  REQUIRE_OK(again.status);
  REQUIRE(again.summary.files_reused == night.summary.files_reused);
  REQUIRE(again.summary.bytes_reused == night.summary.bytes_reused);
  REQUIRE(again.summary.files_reused >= 2);
  ExpectAsAtSource(dir);
}

TEST_CASE("A swap does not resume with links of another directory, or with "
          "other permissions",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  fs::permissions(dir / "target", fs::perms{0755});
  for (const std::string& path : PathsWith(dir / "target", "")) {
    fs::permissions(path, fs::perms{0644});
  }
  PullOptions options = Swapping(dir);
  {
    const std::unique_ptr<Operation> pull = MakePull(options);
    TEST_SetFaultHook([&](const std::string& name) {
      if (name == "Puller:TotalsAgreed") pull->Cancel();
    });
    Summary stopped;
    const Status status = pull->Run(&stopped);
    TEST_SetFaultHook(nullptr);
    REQUIRE(EndStateOf(status) == EndState::kCancelled);
  }
  std::string linked = dir / "target";
  const bool is_moved = GENERATE(true, false);
  if (is_moved) {
    linked = dir / "aside";
    fs::rename(dir / "target", linked);
    fs::copy(linked, dir / "target", fs::copy_options::recursive);
  } else {
    options.target_mode = 0700;
  }
  const std::map<std::string, std::string> before = StateOf(linked);
  options.before_swap = [&](const SwapEvent&) {
    auto after = StateOf(linked);
    for (const auto& [name, state] : before) {
      INFO(name);
      REQUIRE((name == "LOCK" || after[name] == state));
    }
    REQUIRE(SharedTables(linked, dir / "target.sstferry/db") == 0);
    return Status::OK();
  };
  const Ferried night = Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.exchanged);
  ExpectAsAtSource(dir);
}

ino_t InodeOf(const std::string& path) {
  struct stat info {};
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_ino;
}

TEST_CASE("A swap of a replica with the source's entries exchanges nothing and "
          "calls no hook",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  PullOptions options = Swapping(dir);
  options.method = GENERATE(PullMethod::kIngest, PullMethod::kAuto);
  REQUIRE_OK(Run(options).status);
  int calls = 0;
  options.verify = GENERATE(false, true);
  const auto count = [&calls](const SwapEvent&) {
    calls++;
    return Status::OK();
  };
  options.before_swap = count;
  options.after_swap = count;
  const ino_t inode = InodeOf(dir / "target");
  const ino_t current = InodeOf(dir / "target/CURRENT");
  const bool is_compacted = GENERATE(false, true);
  if (is_compacted) {  // other tables, the same entries
    OpenDb db(dir / "source", TwoFamilies());
    db.Compact("default");
  }
  for (int night = 0; night < 2; ++night) {
    const Ferried again = Run(options);
    INFO(again.message());
    REQUIRE_OK(again.status);
    REQUIRE_FALSE(again.summary.exchanged);
    REQUIRE(again.summary.state == "complete");
    REQUIRE(again.summary.verified == options.verify);
    REQUIRE(again.summary.sst_bytes == 0);
    REQUIRE(calls == 0);
    REQUIRE(InodeOf(dir / "target") == inode);
    REQUIRE(InodeOf(dir / "target/CURRENT") == current);
    ExpectAsAtSource(dir);
    LastTransfer last;
    REQUIRE(ReadLastTransfer(dir / "target", &last));
    REQUIRE(last.transfer_id == again.summary.transfer_id);
  }
  PullOptions always = options;
  always.always_swap = true;
  REQUIRE(Run(always).summary.exchanged);
  REQUIRE(calls == 2);
  OpenDb(dir / "source", TwoFamilies()).Put(NumberedKey(9), "another");
  REQUIRE(Run(options).summary.exchanged);
  ExpectAsAtSource(dir);
}

TEST_CASE("A swap exchanges a replica that its application wrote to, even if "
          "the source did not change",
          "[transfer][linked]") {
  const ScratchDir dir;
  MakeNight(dir);
  const PullOptions options = Swapping(dir);
  REQUIRE_OK(Run(options).status);
  PassWrites(dir / "source");
  SECTION("the write is before the swap, in an earlier run, or during it") {
    const std::string point =
        GENERATE(std::string(), "LinkedTarget:CopyMade", "Puller:TotalsAgreed");
    const auto write = [&dir] {
      OpenDb(dir / "target", TwoFamilies()).Put(NumberedKey(3), "mine");
    };
    if (point.empty()) write();
    if (point == "Puller:TotalsAgreed") {
      // The comparison was complete. The next run finds the copy, but
      // TARGET_DIR has changed since.
      const std::unique_ptr<Operation> stopped = MakePull(options);
      TEST_SetFaultHook([&](const std::string& name) {
        if (name == point) stopped->Cancel();
      });
      Summary unused;
      REQUIRE_FALSE(stopped->Run(&unused).ok());
      TEST_SetFaultHook(nullptr);
      write();
    } else {
      TEST_SetFaultHook([&](const std::string& name) {
        if (name == point) write();
      });
    }
    const Ferried again = Run(options);
    TEST_SetFaultHook(nullptr);
    INFO(point << ": " << again.message());
    REQUIRE_OK(again.status);
    REQUIRE(again.summary.exchanged);
  }
  SECTION("a new empty family, or a dropped one") {
    if (GENERATE(true, false)) {
      OpenDb(dir / "source", TwoFamilies()).Create({"third", Quiet()});
      REQUIRE(Run(options).summary.exchanged);
      return;
    }
    OpenDb(dir / "target", TwoFamilies()).Create({"own", Quiet()});
    REQUIRE(Run(options).summary.exchanged);
  }
  ExpectAsAtSource(dir);
}

// Makes a replica that is a clone, then changes the source a little.
void MakeCloneNight(const ScratchDir& dir) {
  MakeSource(dir / "source");
  PullOptions options;
  options.method = PullMethod::kClone;
  const Ferried first = Ferry(dir / "source", dir / "target", options);
  INFO(first.message());
  REQUIRE_OK(first.status);
  ChangeSource(dir / "source");
}

// Rewrites all files of the source.
void CompactSource(const ScratchDir& dir) {
  OpenDb db(dir / "source", TwoFamilies());
  db.Compact("default");
  db.Compact("second");
}

TEST_CASE("A swap of a clone by chunks links its files and sends what changed",
          "[transfer][linked][clone]") {
  const ScratchDir dir;
  MakeCloneNight(dir);
  PullOptions options = Swapping(dir);
  options.method = PullMethod::kAuto;
  options.verify = true;
  const Ferried few = Run(options);
  INFO(few.message());
  REQUIRE_OK(few.status);
  REQUIRE(few.summary.method == "clone");
  REQUIRE(few.summary.files_reused >= 2);

  OpenDb(dir / "source", TwoFamilies()).Put(NumberedKey(7), "another night");
  CompactSource(dir);
  options.method = PullMethod::kIngest;
  const auto before = Fingerprint(dir / "target");
  Summary plan;
  REQUIRE_OK(MakePlan(options)->Run(&plan));
  REQUIRE(Fingerprint(dir / "target") == before);
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
  const Ferried night = Run(options);
  INFO(night.message() << night.summary.method_reason);
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.method == "ingest");
  REQUIRE(night.summary.exchanged);
  REQUIRE(night.summary.verified);
  REQUIRE(night.summary.files_reused >= 2);
  REQUIRE(night.summary.bytes_reused > 3'900'000);
  REQUIRE(night.summary.wire_bytes < 300'000);
  ExpectAsAtSource(dir);
  REQUIRE(plan.files_reused == night.summary.files_reused);

  // After this swap, the replica is one of chunks.
  OpenDb(dir / "source", TwoFamilies()).Put(NumberedKey(8), "one more");
  options.method = PullMethod::kAuto;
  const Ferried next = Run(options);
  INFO(next.message() << next.summary.method_reason);
  REQUIRE_OK(next.status);
  REQUIRE(next.summary.method == "ingest");
  REQUIRE(next.summary.files_reused >= 2);
  ExpectAsAtSource(dir);
}

TEST_CASE("Swaps after the first one by chunks of a clone rewrite only a part "
          "of it",
          "[transfer][linked][clone]") {
  const ScratchDir dir;
  const auto write = [&](int first, int step, int last, int seed) {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    for (int i = first; i < last; i += step) {
      db.Put(NumberedKey(i), RandomBytes(1000, i + seed));
    }
    db.Flush();
  };
  // Moves the tables to a level far above the last one, as automatic
  // compactions would.
  const auto move_down = [&] {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    rocksdb::CompactRangeOptions to;
    to.change_level = true;
    to.target_level = 3;
    REQUIRE_OK(db->CompactRange(to, nullptr, nullptr));
  };
  write(0, 1, 12'000, 0);
  move_down();
  PullOptions first;
  first.method = PullMethod::kClone;
  REQUIRE_OK(Ferry(dir / "source", dir / "target", first).status);
  write(0, 1000, 12'000, 1);
  move_down();
  const Ferried delta = Run(Swapping(dir));
  INFO(delta.message() << delta.summary.method_reason);
  REQUIRE_OK(delta.status);
  REQUIRE(delta.summary.method == "ingest");
  write(20'000, 1, 20'100, 0);  // after all other keys
  REQUIRE_OK(Run(Swapping(dir)).status);
  for (int night = 2; night < 6; ++night) {
    write(0, 1000, 12'000, night);
    const Ferried next = Run(Swapping(dir));
    INFO(night << ": " << next.message());
    REQUIRE_OK(next.status);
    REQUIRE(next.summary.bytes_written < 6'000'000);
  }
  Expectation expected;
  expected.families = OneFamily(Quiet());
  ExpectSameEntries(dir / "source", dir / "target", expected);
}

TEST_CASE("A swap by chunks of a clone that cannot be linked starts from "
          "nothing, and says why",
          "[transfer][linked][clone]") {
  const ScratchDir dir;
  MakeCloneNight(dir);
  CompactSource(dir);
  std::string why;
  std::unique_ptr<rocksdb::TransactionDB> busy;
  std::unique_ptr<rocksdb::Transaction> transaction;
  const auto prepare = [&](const std::string& path) {
    rocksdb::TransactionDB* db = nullptr;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    REQUIRE_OK(rocksdb::TransactionDB::Open(rocksdb::DBOptions(), {}, path,
                                            TwoFamilies(), &handles, &db));
    busy.reset(db);
    for (rocksdb::ColumnFamilyHandle* const handle : handles) {
      REQUIRE_OK(db->DestroyColumnFamilyHandle(handle));
    }
    transaction.reset(db->BeginTransaction({}));
    REQUIRE_OK(transaction->SetName("transfer of money"));
    REQUIRE_OK(transaction->Put("prepared", "2"));
    REQUIRE_OK(transaction->Prepare());
  };
  SECTION("a SingleDelete of the replica's application") {
    OpenDb db(dir / "target", TwoFamilies());
    db.Put("once", "1");
    db.Flush();
    REQUIRE_OK(db->SingleDelete({}, db.cf(), "once"));
    db.Flush();
    why = "SingleDelete";
  }
  SECTION("a transaction that is prepared in the replica") {
    prepare(dir / "target");
    transaction.reset();
    busy.reset();
    why = "expected no prepared transactions, found 1";
  }
  const Ferried night = Run(Swapping(dir));
  INFO(night.message() << night.summary.method_reason);
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.method == "ingest");
  REQUIRE(night.notes_mention(
      "builds the new database without the files of the old one: "));
  REQUIRE(night.notes_mention(why));
  ExpectAsAtSource(dir);
}

}  // namespace
}  // namespace sstferry::test::linked_swap_test
