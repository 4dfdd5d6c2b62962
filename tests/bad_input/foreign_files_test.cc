// Tests files that another account puts where root reads: in a database that
// root inspects, and on the paths of files that root is told to read. These
// tests need root; without root they are skipped with a warning.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "pipeline/base/open_file.h"
#include "pipeline/pull/closed_files.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/sanitizer.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry::foreign_files_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr uid_t kOther = 65534;  // "nobody"
constexpr uid_t kThird = 65533;

bool IsRoot() {
  if (geteuid() != 0) {
    WARN("not run: it needs root, to act as two accounts");
  }
  return geteuid() == 0;
}

void GiveAll(const std::string& path, uid_t uid = kOther) {
  REQUIRE(lchown(path.c_str(), uid, uid) == 0);
  if (fs::is_symlink(path) || !fs::is_directory(path)) return;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    REQUIRE(lchown(entry.path().c_str(), uid, uid) == 0);
  }
}

// Runs a line of shell as the other account.
void AsOther(const std::string& line) {
  Process shell({"/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534",
                 "--clear-groups", "/bin/sh", "-ec", line});
  const int code = shell.Wait();
  INFO(line << ": " << shell.err());
  REQUIRE(code == 0);
}

// Returns the words that run the tool with at most 4 GB of memory.
Words Bounded(const Words& arguments) {
  Words words = Sstferry(arguments);
  if (!test::kSanitized) {
    words.insert(words.begin(), {"/bin/sh", "-c",
                                 "ulimit -v 4000000; exec \"$@\"", "sh"});
  }
  return words;
}

struct World {
  ScratchDir dir;
  std::string app = dir / "app";
  std::string victim = dir / "victim";
  World() {
    REQUIRE(chmod(dir.path().c_str(), 0711) == 0);
    fs::create_directory(app);
    fs::create_directory(victim);
    REQUIRE(chmod(victim.c_str(), 0700) == 0);
    WriteBytes(victim + "/secret", "MANIFEST-000001 root's");
  }
};

TEST_CASE("If root inspects another account's database, it reads only files of "
          "the database",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  const std::string db = world.app + "/db";
  SampleShape shape;
  shape.entries = 100;
  MakeSampleDatabase(db, shape);
  MakeSampleDatabase(world.dir / "mine", shape);
  GiveAll(world.app);
  const std::string what = GENERATE(as<std::string>(),
      "rm CURRENT; mkfifo CURRENT",
      "ln -sf /dev/zero CURRENT",
      "ln -sf ../../victim/secret CURRENT",
      "rm CURRENT; truncate -s 1T CURRENT",
      "echo ../../victim/secret > CURRENT",
      "rm MANIFEST-*; mkfifo $(cat CURRENT)",
      "truncate -s 8T $(cat CURRENT)",
      "ln -sf /dev/zero $(cat CURRENT)",
      "rm -f *.log; mkfifo 999999.log",
      "rm OPTIONS-*; mkfifo OPTIONS-999999");
  AsOther("cd " + db + "; " + what);
  for (const Words& command :
       {Words{"status", db}, Words{"ls", db}, Words{"plan", db},
        Words{"plan", world.dir / "mine", db},
        Words{"plan", "swap", world.dir / "mine", db},
        Words{"verify", world.dir / "mine", db},
        Words{"verify", db, world.dir / "mine"}}) {
    Process look(Bounded(command));
    const int code = look.Wait(std::chrono::seconds(60));
    INFO(what << ": " << command[0] << " ended with " << code << ": "
              << look.out() << look.err());
    CHECK(code >= 0);
    CHECK(code < 64);
    CHECK(look.err().find("bad_alloc") == std::string::npos);
    CHECK(look.err().find("root's") == std::string::npos);
    CHECK(look.out().find("root's") == std::string::npos);
  }
}

TEST_CASE("CURRENT may only name a MANIFEST in its own directory",
          "[bad_input]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  MakeSampleDatabase(dir / "other");
  std::string manifest = BytesOf(dir / "other/CURRENT");
  const auto read = [&] {
    ManifestReader reader;
    return ReadManifest(rocksdb::FileSystem::Default().get(), dir / "db",
                        &reader, /*found=*/nullptr);
  };
  REQUIRE_OK(read());
  WriteBytes(dir / "db/CURRENT", "../other/" + manifest);
  const rocksdb::Status status = read();
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(MessageOf(status).find("/CURRENT: expected the name of a MANIFEST") !=
          std::string::npos);
}

TEST_CASE("A replica whose CURRENT is no regular file is damaged",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  const std::string db = world.app + "/db";
  SampleShape shape;
  shape.entries = 100;
  MakeSampleDatabase(world.dir / "mine", shape);
  OutputOf({"pull", world.dir / "mine", world.dir / "copy"});
  fs::rename(world.dir / "copy", db);
  GiveAll(world.app);
  AsOther("cd " + db + "; rm CURRENT; mkfifo CURRENT");
  Process status(Bounded({"status", db}));
  status.Wait(std::chrono::seconds(60));
  INFO(status.out() << status.err());
  REQUIRE((status.out() + status.err())
              .find("/CURRENT: expected a regular file") != std::string::npos);
  REQUIRE(status.out().find("damaged") != std::string::npos);
}

TEST_CASE("Root reads no config file whose path others may change",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  const std::string deep = world.dir / "app/etc/job";
  fs::create_directories(deep);
  const std::string config = deep + "/config.toml";
  WriteBytes(config, "log-level = \"warning\"\n");
  MakeSampleDatabase(world.dir / "source");
  std::string named = config;
  int code = 2;
  SECTION("all of it is root's") { code = 0; }
  SECTION("a directory on the path belongs to another account") {
    REQUIRE(lchown(world.app.c_str(), kOther, kOther) == 0);
  }
  SECTION("all accounts may write to a directory on the path") {
    REQUIRE(chmod(world.app.c_str(), 0777) == 0);
  }
  SECTION("a group may write to a directory on the path") {
    REQUIRE(chmod(world.app.c_str(), 0775) == 0);
    REQUIRE(chown(world.app.c_str(), 0, kOther) == 0);
  }
  SECTION("a link of another account leads there") {
    fs::create_directory(world.dir / "links");
    named = world.dir / "links/config.toml";
    fs::create_symlink(config, named);
    REQUIRE(lchown(named.c_str(), kOther, kOther) == 0);
  }
  SECTION("a link of root leads there") {
    named = world.dir / "config.toml";
    fs::create_symlink("app/etc/../etc/job/config.toml", named);
    code = 0;
  }
  SECTION("it is a FIFO") {
    fs::remove(config);
    REQUIRE(mkfifo(config.c_str(), 0600) == 0);
  }
  Process plan(Bounded({"plan", world.dir / "source", "--config", named}));
  const int found = plan.Wait(std::chrono::seconds(60));
  INFO(plan.err());
  REQUIRE(found == code);
  if (code != 0) {
    REQUIRE(plan.err().find("--config " + named + ": expected a file") !=
            std::string::npos);
  }
}

// Copies the TLS files of a client to `dir`.
void PutTlsFiles(const TlsFiles& files, const std::string& dir) {
  fs::create_directories(dir);
  fs::copy_file(files.cert, dir + "/cert.pem");
  fs::copy_file(files.key, dir + "/key.pem");
  fs::copy_file(files.ca, dir + "/ca.pem");
  REQUIRE(chmod((dir + "/key.pem").c_str(), 0600) == 0);
}

// Returns the words that serve a source to which only the client of `pki` has
// access.
Words ServeByTls(const TestPki& pki, const std::string& source) {
  MakeSampleDatabase(source);
  return {"--db",      "db=" + source,  "--tls-cert", pki.server.cert,
          "--tls-key", pki.server.key, "--tls-ca",   pki.server.ca};
}

TEST_CASE("An account's links cannot lead to root's TLS files",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  const TestPki pki;
  const ServeProcess server(ServeByTls(pki, world.dir / "source"));
  const std::string tls = world.app + "/tls";
  PutTlsFiles(pki.client, tls);
  PutTlsFiles(pki.client, world.victim + "/tls");
  GiveAll(world.app);
  std::string named = tls;
  bool is_led = true;
  SECTION("its own files") { is_led = false; }
  SECTION("its own files, through its links") {
    AsOther("cd " + world.app + "; mv tls 2026; ln -s 2026 ..data; mkdir tls; "
            "for f in cert key ca; do ln -s ../..data/$f.pem tls/$f.pem; done");
    is_led = false;
  }
  SECTION("a link to root's key") {
    AsOther("ln -sf ../../victim/tls/key.pem " + tls + "/key.pem");
  }
  SECTION("a link to root's directory") {
    AsOther("mv " + tls + " " + tls + ".old; ln -s ../victim/tls " + tls);
  }
  SECTION("a link of root's through one of the account's") {
    AsOther("mv " + tls + " " + tls + ".old; ln -s ../victim/tls " + tls);
    fs::create_directory_symlink("app/tls", world.dir / "tls");
    named = world.dir / "tls";
  }
  SECTION("a hard link to root's key") {
    fs::remove(tls + "/key.pem");
    fs::create_hard_link(world.victim + "/tls/key.pem", tls + "/key.pem");
  }
  Process pull(Bounded({"pull", server.url(), world.app + "/copy", "--tls",
                        named}));
  const int code = pull.Wait();
  INFO(pull.err());
  REQUIRE((code == 0) == !is_led);
  REQUIRE(fs::exists(world.app + "/copy") == !is_led);
  if (is_led) {
    REQUIRE(pull.err().find("account nobody can redirect this path with a "
                            "link") != std::string::npos);
  }
  // A command that runs as root does not use them either.
  Process list(Bounded({"ls", server.list_url(), "--tls", named}));
  const int listed = list.Wait();
  INFO(list.err());
  REQUIRE((listed == 0) == !is_led);
}

TEST_CASE("Links of root may lead to TLS files, as in a Kubernetes secret",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  const TestPki pki;
  const ServeProcess server(ServeByTls(pki, world.dir / "source"));
  GiveAll(world.app);
  const std::string tls = world.dir / "tls";
  SECTION("a Kubernetes secret") {
    PutTlsFiles(pki.client, tls + "/..2026_11_28");
    REQUIRE(chmod(tls.c_str(), 01777) == 0);
    fs::create_directory_symlink("..2026_11_28", tls + "/..data");
    for (const char* name : {"/cert.pem", "/key.pem", "/ca.pem"}) {
      fs::create_symlink("..data" + std::string(name), tls + name);
    }
  }
  SECTION("certbot") {
    PutTlsFiles(pki.client, world.dir / "archive/db");
    REQUIRE(chmod((world.dir / "archive").c_str(), 0700) == 0);
    fs::create_directories(tls);
    for (const char* name : {"/cert.pem", "/key.pem", "/ca.pem"}) {
      fs::create_symlink("../archive/db" + std::string(name), tls + name);
    }
  }
  for (const std::string& target : {world.app + "/copy", world.dir / "copy"}) {
    Process pull(Bounded({"pull", server.url(), target, "--tls", tls}));
    const int code = pull.Wait();
    INFO(pull.err());
    REQUIRE(code == 0);
  }
}

TEST_CASE("Root uses no archive key and runs no command of another account",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  MakeSampleDatabase(world.dir / "source");
  fs::create_directory(world.dir / "archive");
  Process init(Bounded({"archive", "init", world.dir / "archive"}));
  REQUIRE(init.Wait() == 0);
  const std::string ran = world.dir / "ran";
  const auto write = [&](const std::string& dir) {
    WriteBytes(dir + "/key", std::string(64, 'a'));
    REQUIRE(chmod((dir + "/key").c_str(), 0600) == 0);
    WriteBytes(dir + "/config",
               "[default]\ncredential_process = touch " + ran + "\n");
  };
  // Runs `archive list` of a bucket at an endpoint without a server.
  const auto list = [&](const std::string& config) {
    Words words = Sstferry({"archive", "list", "s3://bucket/db", "--endpoint",
                            "http://127.0.0.1:1"});
    words.insert(words.begin(), {"/usr/bin/env", "AWS_CONFIG_FILE=" + config});
    Process process(words);
    REQUIRE(process.Wait() != 0);
    return process.err();
  };
  const auto push = [&](const std::string& key) {
    Process process(Bounded({"archive", "push", world.dir / "source",
                             world.dir / "archive", "--key-file", key}));
    const int code = process.Wait();
    INFO(process.err());
    REQUIRE((code == 0 || process.err().find("--key-file " + key + ": ") !=
                              std::string::npos));
    return code == 0;
  };
  write(world.app);
  GiveAll(world.app);
  CHECK_FALSE(push(world.app + "/key"));
  CHECK(list(world.app + "/config").find("credentials: " + world.app +
                                         "/config: ") != std::string::npos);
  CHECK_FALSE(fs::exists(ran));
  // The files belong to root, but the account may replace them in its
  // directory.
  write(world.app);
  REQUIRE(lchown((world.app + "/key").c_str(), 0, 0) == 0);
  REQUIRE(lchown((world.app + "/config").c_str(), 0, 0) == 0);
  CHECK_FALSE(push(world.app + "/key"));
  list(world.app + "/config");
  CHECK_FALSE(fs::exists(ran));
  write(world.dir.path());
  CHECK(push(world.dir / "key"));
  list(world.dir / "config");
  CHECK(fs::exists(ran));
}

TEST_CASE("A file that root is told to read must belong to root or one "
          "account, with its whole path",
          "[bad_input][accounts]") {
  if (!IsRoot()) return;
  const World world;
  const std::string dir = world.app + "/own";
  fs::create_directory(dir);
  const std::string file = dir + "/file";
  WriteBytes(file, "text");
  GiveAll(world.app);
  const auto may_read = [&](uid_t account, const std::string& path) {
    std::string text;
    const rocksdb::Status status = ReadOwn(path, account, &text);
    INFO(status.ToString());
    REQUIRE((status.ok() ? text == "text" : text.empty()));
    REQUIRE((status.ok() || MessageOf(status).starts_with(path + ": ")));
    return status.ok();
  };
  CHECK(may_read(kOther, file));
  CHECK(may_read(kAnyAccount, file));
  CHECK_FALSE(may_read(0, file));
  CHECK_FALSE(may_read(kThird, file));
  GiveAll(dir, kThird);  // the path belongs to two accounts
  CHECK_FALSE(may_read(kAnyAccount, file));
  CHECK_FALSE(may_read(kOther, file));
  GiveAll(dir);
  REQUIRE(chmod(file.c_str(), 0666) == 0);
  CHECK_FALSE(may_read(kOther, file));
  REQUIRE(chmod(file.c_str(), 0644) == 0);
  REQUIRE(chmod(dir.c_str(), 0777) == 0);
  CHECK_FALSE(may_read(kOther, file));
  REQUIRE(chmod(dir.c_str(), 01777) == 0);
  CHECK(may_read(kOther, file));
  fs::create_symlink("loop", world.dir / "loop");
  CHECK_FALSE(may_read(kAnyAccount, world.dir / "loop"));
  CHECK_FALSE(may_read(kAnyAccount, dir));
  CHECK_FALSE(may_read(kAnyAccount, "/dev/zero"));
  CHECK_FALSE(may_read(kAnyAccount, file + "/file"));
  CHECK_FALSE(may_read(kAnyAccount, world.dir / "missing"));
}

}  // namespace
}  // namespace sstferry::foreign_files_test
