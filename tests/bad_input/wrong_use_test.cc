// Tests wrong uses of the tool and its messages: what is wrong, and what to do
// instead. Fifty of them have a number; new users of the tool tried each of
// these.
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>

#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

namespace sstferry::wrong_use_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kWrongUses = 52;

// Runs the tool and returns its error output.
std::string Said(const Words& words, int code) {
  Process process(Sstferry(words));
  const int found = process.Wait();
  INFO(process.err());
  REQUIRE(found == code);
  return process.err();
}

// Returns words that run a pull slowly, so that a test can act during it.
Words Slowly(Words words) {
  words.insert(words.end(), {"--max-rate", "400K", "--progress", "json",
                             "--progress-interval", "20ms"});
  return Sstferry(words);
}

void RequireSays(const Words& words, int code, const std::string& sentence) {
  const std::string said = Said(words, code);
  INFO(said);
  REQUIRE(said.find(sentence) != std::string::npos);
}

SampleShape Small() {
  SampleShape shape;
  shape.entries = 100;
  return shape;
}

// A file system of its own, if this process may mount one.
class OwnDisk {
 public:
  OwnDisk(std::string path, const char* options)
      : path_(std::move(path)),
        mounted_(fs::create_directory(path_) &&
                 mount("none", path_.c_str(), "tmpfs", 0, options) == 0) {}
  ~OwnDisk() {
    if (mounted_) {
      umount(path_.c_str());
    }
  }
  bool is_mounted() const { return mounted_; }
  bool MakeReadOnly() {
    return mount("none", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY,
                 nullptr) == 0;
  }

 private:
  const std::string path_;
  const bool mounted_;
};

// A database with a name for each wrong use.
struct Place {
  Place() {
    MakeSampleDatabase(dir / "source", Small());
    fs::create_directory(dir / "empty");
    fs::create_directory(dir / "letters");
    WriteBytes(dir / "letters/to_mother", "Dear mother");
    fs::create_directory(dir / "leveldb");
    WriteBytes(dir / "leveldb/CURRENT", "MANIFEST-000002\n");
    WriteBytes(dir / "leveldb/MANIFEST-000002", "");
    WriteBytes(dir / "leveldb/000005.ldb", "");
    WriteBytes(dir / "file", "no database");
  }
  // Requires that wrong use `number` reports what to do.
  void Says(int number, const Words& words, int code,
            const std::string& sentence) {
    INFO("wrong use " << number);
    RequireSays(words, code, sentence);
    Count(number);
  }
  void Count(int number) { REQUIRE(said.insert(number).second); }

  ScratchDir dir;
  std::set<int> said;
};

void TryWrongSources(Place* place) {
  const ScratchDir& dir = place->dir;
  const std::string to = dir / "copy";
  place->Says(1, {"pull", dir / "missing", to}, 1,
              "expected the directory of a database");
  place->Says(2, {"pull", dir / "empty", to}, 1,
              "this is not a RocksDB database");
  place->Says(3, {"pull", dir / "letters", to}, 1,
              "this is not a RocksDB database");
  place->Says(4, {"pull", dir / "file", to}, 1,
              "expected the directory of a database, found a file");
  place->Says(5, {"pull", dir / "leveldb", to}, 1, "is a LevelDB database");
  place->Says(6, {"serve", dir / "leveldb"}, 1, "is a LevelDB database");
  for (const char* name : {"old_pebble", "new_pebble"}) {
    fs::create_directory(dir / name);
    WriteBytes((dir / name) + "/MANIFEST-000001", std::string(2, '\0'));
  }
  WriteBytes(dir / "old_pebble/CURRENT", "MANIFEST-000001\n");
  WriteBytes(dir / "old_pebble/OPTIONS-000003",
             "[Version]\n  pebble_version=0.1\n\n[Options]\n");
  WriteBytes(dir / "new_pebble/marker.format-version.000012.013", "");
  for (const char* name : {"old_pebble", "new_pebble"}) {
    Process pull(Sstferry({"pull", dir / name, to}));
    REQUIRE(pull.Wait() == 1);
    INFO(pull.err());
    REQUIRE(pull.err().find("is a Pebble database") != std::string::npos);
  }
  place->Says(7, {"pull", "https://db1/users", to}, 2,
              "file:///DIR[@SET], found");
  place->Says(8, {"pull", "db1:users", to}, 1,
              "sst://db1/users, and a directory of that machine db1:/DIR");
  place->Says(51, {"pull", "127.0.0.1:7420/users", to}, 1,
              "sst://127.0.0.1:7420/users, and a directory of that machine "
              "127.0.0.1:/DIR");
  place->Says(52, {"pull", dir / "letters", to, "--key-file", "/k"}, 2,
              "--key-file: needs an archive as source");
  place->Says(9,
              {"pull", "192.0.2.7:/users", to, "--ssh-command", "exit 255 #",
               "--timeout", "1s"},
              1, "ssh");
  REQUIRE_FALSE(fs::exists(to));
}

void TryWrongTargets(Place* place) {
  const ScratchDir& dir = place->dir;
  const std::string from = dir / "source";
  place->Says(10, {"pull", from, dir / "file"}, 1,
              "expected a directory or nothing, found a file");
  place->Says(11, {"pull", from, dir / "letters"}, 1,
              "is not empty and holds no database; name another directory");
  place->Says(12, {"pull", from, dir / "no/parent"}, 1, "make it first");
  place->Says(13, {"pull", from, "sst://db2/users"}, 2,
              "pull runs at the target, and serve at the source");
  place->Says(14, {"pull", from, from}, 1, "choose another TARGET_DIR");
  place->Says(15, {"pull", from, from + "/inside"}, 1,
              "choose another TARGET_DIR");
  place->Says(16, {"pull", from, dir.path()}, 1, "choose another TARGET_DIR");
  RequireSays({"pull", dir / "source", "https://db2/users"}, 2, "target: ");
}

void TryOtherDatabases(Place* place) {
  const std::string from = place->dir / "source";
  const std::string copy = place->dir / "copy";
  const std::string mine = place->dir / "mine";
  Said({"pull", from, copy}, 0);
  RequireSays({"pull", from, copy}, 1,
              "\nnext: sstferry refresh " + from + " " + copy);
  MakeSampleDatabase(mine, Small());
  RequireSays({"pull", from, mine}, 1, "sstferry swap --adopt");
  RequireSays({"refresh", from, mine}, 1, "--adopt");
  place->Says(17, {"refresh", mine, copy, "--method", "ingest"}, 1,
              "--adopt accepts it, and deletes what only the target holds");
  RequireSays({"refresh", mine, copy}, 1, "--adopt replaces all of its data");
  place->Says(18, {"swap", mine, copy}, 1, "--adopt replaces all of its data");
}

void TryOpenTargets(Place* place) {
  const std::string from = place->dir / "source";
  const std::string copy = place->dir / "copy";
  const std::string process = "process " + std::to_string(getpid()) + " (";
  {
    test::OpenDb application(copy, test::OneFamily(test::Quiet()));
    place->Says(19, {"refresh", from, copy}, 5, process);
    RequireSays({"refresh", from, copy}, 5, "a swap can replace it");
    test::OpenDb(from, test::OneFamily(test::Quiet())).Put("a new", "key");
    const Words swap = {"swap", from, copy, "--method", "ingest"};
    place->Says(20, swap, 5, process);
    place->Says(21, swap, 5, "let --before-swap do so");
  }
  const std::string two = place->dir / "two";
  const std::string large = place->dir / "large";
  MakeSampleDatabase(large);
  Process first(Slowly({"pull", large, two}));
  REQUIRE(first.WaitForErr("\"transfer\""));
  place->Says(22, {"pull", large, two}, 5,
              "another pull holds");
  first.Signal(SIGTERM);
  REQUIRE(first.Wait() == 4);
}

void TryWrongPlaces(Place* place) {
  const ScratchDir& dir = place->dir;
  const std::string from = dir / "source";
  OwnDisk disk(dir / "disk", "size=64m");
  if (!disk.is_mounted()) {
    WARN("SKIPPED: this process may not mount");
    for (const int number : {23, 24, 26, 27}) {
      place->Count(number);
    }
  } else {
    place->Says(23, {"pull", from, dir / "disk"}, 1,
                "use a sub-directory such as " + (dir / "disk/db"));
    {
      const OwnDisk little(dir / "little", "size=100k");
      place->Says(26, {"pull", from, dir / "little/copy"}, 4,
                  "make room there");
      const OwnDisk few(dir / "few", "size=64m,nr_inodes=5");
      place->Says(27, {"pull", from, dir / "few/copy"}, 4,
                  "no inode is free, so no file can be made");
    }
    REQUIRE(disk.MakeReadOnly());
    place->Says(24, {"pull", from, dir / "disk/copy"}, 1,
                "(Read-only file system); name a TARGET_DIR in a writable");
  }
  const std::string links = dir / "links";
  fs::create_directory(links);
  Words words = Sstferry({"pull", from, "/copy", "--snapshot-dir", links});
  if (geteuid() == 0) {  // root may write everywhere
    REQUIRE(chmod(dir.path().c_str(), 0711) == 0);
    REQUIRE(chown(links.c_str(), 65534, 65534) == 0);
    fs::copy_file(words[0], dir / "sstferry");
    words[0] = dir / "sstferry";
    words.insert(words.begin(), {"/usr/bin/setpriv", "--reuid", "65534",
                                 "--regid", "65534", "--clear-groups"});
  }
  Process denied(words);
  REQUIRE(denied.Wait() == 1);
  INFO(denied.err());
  REQUIRE(denied.err().find("(Permission denied); name a TARGET_DIR in a "
                            "writable directory") != std::string::npos);
  place->Count(25);
}

void TryWrongNames(Place* place) {
  const ServeProcess server({"users=" + (place->dir / "source")});
  const std::string url = server.list_url();
  const std::string to = place->dir / "t";
  place->Says(28, {"pull", url + "/user", to}, 1, "did you mean users?");
  RequireSays({"pull", url + "/something", to}, 1, "sstferry ls");
  RequireSays({"pull", url, to}, 2, "sstferry ls lists the names");
  place->Says(29, {"pull", "sst://127.0.0.1:1/users", to, "--timeout", "1s"}, 4,
              "is `sstferry serve` running there?");
  place->Says(30, {"pull", "sst://nohost.invalid/users", to, "--timeout", "1s"},
              4, "resolve nohost.invalid: ");
}

void TryWrongWords(Place* place) {
  struct Row {
    int number;  // 0: not one of the fifty
    Words words;
    const char* sentence;
  };
  const std::vector<Row> rows = {
      {31, {"pulll", "s", "t"}, "did you mean pull?"},
      {32, {"pull", "s", "t", "--methd", "clone"}, "did you mean --method?"},
      {33, {"pull", "s", "t", "--method", "copy"}, "auto, ingest or clone"},
      {34,
       {"serve", "--db", "/d", "--listen", "0.0.0.0:1"},
       "or --tls DIR (--insecure allows"},
      {35, {"pull", "s", "t", "--drop-missing"}, "needs sstferry refresh"},
      {0, {"refresh", "s", "t", "--before-swap", "x"}, "needs sstferry swap"},
      {0, {"swap", "s", "t", "--drop-missing"}, "needs sstferry refresh"},
      {0, {"plan", "s", "t", "--after-swap", "x"}, "needs sstferry swap"},
      {0, {"pull", "s", "t", "--lanes", "0"}, "from 1 to 64"},
      {0, {"pull", "s", "t", "--max-rate", "fast"}, "bytes such as 64M"},
      {0, {"pull", "s", "t", "--timeout", "10"}, "a duration such as 90s"},
      {0, {"pull", "s"}, "expected a directory TARGET_DIR"},
      {0, {"plan", "push", "s", "t"}, "action: expected pull, refresh or swap"},
      {0, {"plan", "verify", "s"}, "action: expected pull, refresh or swap"},
      {0, {"pull", "s3:/b/q", "t"}, "did you mean s3://b/q?"},
      {0, {"pull", "S3://b/q@x", "t"}, "did you mean s3://b/q@x?"},
      {0, {"archive", "list", "https://b/q"}, "did you mean s3://b/q?"},
      {0, {"archive", "push", "s", "s3:/b/q"}, "did you mean s3://b/q?"},
      {0, {"cert", "make", "pki"}, "init or issue"},
      {0, {"serve", "/d", "--metrics", "0.0.0.0:1"},
       "or --tls DIR (--metrics-insecure allows"},
  };
  for (const Row& row : rows) {
    if (row.number == 0) {
      RequireSays(row.words, 2, row.sentence);
    } else {
      place->Says(row.number, row.words, 2, row.sentence);
    }
  }
  const std::string config = place->dir / "job.toml";
  const Words pull = {"pull", "--config", config};
  WriteBytes(config, "source = \"s\"\ntargt = \"t\"\n");
  place->Says(36, pull, 2,
              "line 2: targt: unknown option; did you mean target?");
  WriteBytes(config, "source = \"s\"\ntarget = t\n");
  place->Says(
      37, pull, 2,
      "expected lines such as target = \"/data/users\", with the quotes");
  WriteBytes(config, "source: \"s\"\n");
  place->Says(38, pull, 2, "line 1: not TOML: ");
  // The first word after serve is a database.
  ServeProcess server({place->dir / "source"});
  place->Count(39);
  place->Says(40, {"status", place->dir / "letters"}, 1,
              "expected a database or the TARGET_DIR of a pull, found neither");
  place->Says(41, {"release", place->dir / "source", "aaaaaaaa"}, 1,
              "none is retained");
}

void TryWrongTls(Place* place) {
  const ScratchDir& dir = place->dir;
  const TestPki& pki = GoodPki();
  const std::string db = "db=" + (dir / "source");
  const auto tls = [](Words words, const TlsFiles& files) {
    words.insert(words.end(), {"--tls-cert", files.cert, "--tls-key", files.key,
                               "--tls-ca", files.ca});
    return words;
  };
  const TlsFiles& files = pki.server;
  place->Says(42, tls({"serve", db}, {files.key, files.cert, files.ca}), 1,
              "are --tls-cert and --tls-key exchanged?");
  place->Says(43, tls({"serve", db}, {files.cert, pki.client.key, files.ca}), 1,
              "; the first certificate there must be that of the key");
  RequireSays({"serve", db, "--tls-cert", files.cert}, 2,
              "expected all three or none");
  RequireSays({"serve", db, "--tls", dir / "letters"}, 1, "cert.pem");
  for (const char* const command : {"plan", "pull", "refresh", "swap"}) {
    RequireSays({command, dir / "source", dir / "no_tls", "--tls", "missing"},
                2, ": needs a server as source, or --metrics, found " +
                       (dir / "source"));
  }
  RequireSays({"verify", dir / "source", dir / "source", "--tls", "missing"}, 2,
              ": needs a server as source");
  RequireSays({"cert", "issue", dir / "letters", "db1"}, 1,
              "\nnext: sstferry cert init " + (dir / "letters"));
  const ServeProcess server(tls({db}, files), "0.0.0.0:0");
  const std::string port = server.address().substr(server.address().rfind(':'));
  const std::string to = dir / "over_tls";
  place->Says(44, {"pull", "sst://127.0.0.1" + port + "/db", to}, 1,
              "this source speaks TLS only: give --tls");
  place->Says(45,
              tls({"pull", "sst://127.0.0.2" + port + "/db", to}, pki.client),
              1, "expected 127.0.0.2, found DNS:localhost, IP:127.0.0.1");
  place->Says(46, tls({"pull", "sst://127.0.0.1" + port + "/db", to}, files), 1,
              "sstferry cert issue makes certificates for both sides");
}

void TryLostSources(Place* place) {
  const ScratchDir& dir = place->dir;
  MakeSampleDatabase(dir / "deleted");
  {
    Process pull(Slowly({"pull", dir / "deleted", dir / "of_deleted"}));
    REQUIRE(pull.WaitForErr("\"transfer\""));
    fs::remove_all(dir / "deleted");
    REQUIRE(pull.Wait() == 0);  // the links in the snapshot stay
    place->Count(47);
  }
  place->Says(48, {"refresh", dir / "deleted", dir / "of_deleted"}, 1,
              "No such file or directory; expected the directory");
  // A table of a later RocksDB version.
  MakeSampleDatabase(dir / "newer", Small());
  for (const auto& entry : fs::directory_iterator(dir / "newer")) {
    const std::string path = entry.path().string();
    if (path.ends_with(".sst")) {
      std::string bytes = BytesOf(path);
      bytes[bytes.size() - 12] ^= 0x40;
      WriteBytes(path, bytes);
    } else if (path.find("/OPTIONS-") != std::string::npos) {
      std::string text = BytesOf(path);
      const std::string key = "rocksdb_version=";
      text.insert(text.find(key) + key.size(), "9");
      WriteBytes(path, text);
    }
  }
  place->Says(49,
              {"pull", dir / "newer", dir / "of_newer", "--method", "ingest"},
              1, "use an sstferry built with that release or a later one");
  place->Says(50, {"verify", dir / "source", dir / "missing"}, 1,
              "expected the directory of a database");
}

TEST_CASE("Fifty wrong uses report what to do", "[bad_input][words]") {
  Place place;
  TryWrongSources(&place);
  TryWrongTargets(&place);
  TryOtherDatabases(&place);
  TryOpenTargets(&place);
  TryWrongPlaces(&place);
  TryWrongNames(&place);
  TryWrongWords(&place);
  TryWrongTls(&place);
  TryLostSources(&place);
  REQUIRE(place.said.size() == kWrongUses);
  REQUIRE(*place.said.begin() == 1);
  REQUIRE(*place.said.rbegin() == kWrongUses);
}

}  // namespace
}  // namespace sstferry::wrong_use_test
