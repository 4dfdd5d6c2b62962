// What a plan finds out about TARGET_DIR before a pull.
#include <filesystem>

#include "pipeline/base/rocksdb_compat.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/named_comparator.h"
#include "tests/support/refreshed.h"

namespace sstferry::test {
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
  REQUIRE_OK(ParseSourceAddress(source, &options.source));
  options.target_dir = target;
  return options;
}

Summary Plan(const PullOptions& options) {
  const std::string before =
      fs::exists(options.target_dir) ? Fingerprint(options.target_dir) : "";
  Summary summary;
  MakePlan(options)->Run(&summary).PermitUncheckedError();
  INFO(summary.status.ToString());
  REQUIRE_OK(summary.status);
  // It looks, and changes nothing.
  REQUIRE((fs::exists(options.target_dir) ? Fingerprint(options.target_dir)
                                          : "") == before);
  REQUIRE_FALSE(fs::exists(options.target_dir + ".sstferry"));
  return summary;
}

const CheckSummary& Named(const Summary& summary, const std::string& name) {
  for (const CheckSummary& check : summary.checks) {
    if (check.name == name) {
      return check;
    }
  }
  FAIL("no check is named " << name);
  return summary.checks.front();
}

void RequireProblem(const Summary& summary, const std::string& name,
                    const std::string& text) {
  for (const CheckSummary& check : summary.checks) {
    INFO(check.name << ": " << check.text << "; " << check.next);
    REQUIRE(check.ok == (check.name != name));
    REQUIRE(check.next.empty() == check.ok);
  }
  const CheckSummary& check = Named(summary, name);
  INFO(check.text << "; " << check.next);
  REQUIRE((check.text + "; " + check.next).find(text) != std::string::npos);
}

TEST_CASE("A plan checks a target directory ahead, and finds nothing wrong",
          "[transfer][plan]") {
  const TempDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  const Summary summary = Plan(Between(dir / "source", dir / "target"));
  std::vector<std::string> names;
  for (const CheckSummary& check : summary.checks) {
    INFO(check.name << ": " << check.text);
    REQUIRE(check.ok);
    names.push_back(check.name);
  }
  REQUIRE(names == std::vector<std::string>{"directory", "owner", "space",
                                            "versions", "families",
                                            "compaction", "connection"});
  REQUIRE(Named(summary, "connection").text ==
          "none: the source is a directory");
  REQUIRE(Named(summary, "versions").text.find(
              summary.source_versions.rocksdb) != std::string::npos);
  // Without a TARGET_DIR there is nothing to check.
  PullOptions none = Between(dir / "source", "");
  Summary unnamed;
  REQUIRE_OK(MakePlan(none)->Run(&unnamed));
  REQUIRE(unnamed.checks.empty());
}

TEST_CASE("A plan says what is wrong with the directory", "[transfer][plan]") {
  const TempDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  PullOptions options = Between(dir / "source", dir / "target");
  SECTION("full") {
    Fill(dir / "target", OneFamily(Quiet()));
    RequireProblem(Plan(options), "directory", "is not empty; --replace");
  }
  SECTION("of an earlier pull") {
    REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
    RequireProblem(Plan(options), "directory", "--mode refresh");
  }
  SECTION("a link") {
    fs::create_directory(dir / "elsewhere");
    fs::create_directory_symlink(dir / "elsewhere", dir / "target");
    RequireProblem(Plan(options), "directory", "found a file or a link");
  }
  SECTION("no parent") {
    options.target_dir = dir / "no/target";
    const Summary summary = Plan(options);
    REQUIRE_FALSE(Named(summary, "directory").ok);
    REQUIRE(Named(summary, "directory").text.find("does not exist") !=
            std::string::npos);
  }
}

TEST_CASE("A plan of a refresh says whose replica the directory is",
          "[transfer][plan]") {
  const TempDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  Fill(dir / "other", OneFamily(Quiet()));
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  PullOptions options = Between(dir / "source", dir / "target");
  options.mode = PullMode::kRefresh;
  options.visibility = GENERATE(Visibility::kAll, Visibility::kSwap);
  const Summary good = Plan(options);
  for (const CheckSummary& check : good.checks) {
    INFO(check.name << ": " << check.text);
    REQUIRE(check.ok);
  }
  REQUIRE_FALSE(Named(good, "source").text.empty());
  options.source.directory = dir / "other";
  RequireProblem(Plan(options), "source", "--adopt replaces all");
}

TEST_CASE("A plan says what room is missing, and which owner cannot be set",
          "[transfer][plan]") {
  const TempDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  PullOptions options = Between(dir / "source", dir / "target");
  options.mode = PullMode::kRefresh;
  options.compare = CompareMode::kFull;
  options.min_free_percent = 100;
  RequireProblem(Plan(options), "space", "make room there");
  options.min_free_percent = 0;
  options.target_mode = 0700;
  if ((fs::status(dir / "target").permissions() & fs::perms(0777)) !=
      fs::perms(0700)) {
    RequireProblem(Plan(options), "owner", "0700");
  }
}

TEST_CASE("A plan says which column family this program cannot make",
          "[transfer][plan]") {
  static const NamedComparator order("an order of the source's own");
  const TempDir dir;
  Families families = OneFamily(Quiet());
  families[0].options.comparator = &order;
  {
    OpenDb db(dir / "source", families);
    db.Put("a", "b");
    db.Flush();
    ServeOptions serve;
    serve.databases = {{"db", "", db.get(), {db.cf()}}};
    TestServer server(serve);
    PullOptions options = Between(server.url("db"), dir / "target");
    const CheckSummary cloned = Named(Plan(options), "families");
    INFO(cloned.text);
    REQUIRE(cloned.ok);
    REQUIRE(cloned.text.find("--method auto clones") != std::string::npos);
    options.method = PullMethod::kIngest;
    const Summary summary = Plan(options);
    const CheckSummary& check = Named(summary, "families");
    INFO(check.text << "; " << check.next);
    REQUIRE_FALSE(check.ok);
    REQUIRE(check.text.find("an order of the source's own") !=
            std::string::npos);
    REQUIRE(Named(summary, "connection").text.find("plain TCP") == 0);
  }
}

TEST_CASE("A plan tells what becomes of another compaction style",
          "[transfer][plan]") {
  const TempDir dir;
  Fill(dir / "source", OneFamily(Quiet()));
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  Families universal = OneFamily(Quiet());
  universal[0].options.compaction_style = rocksdb::kCompactionStyleUniversal;
  { const OpenDb changed(dir / "target", universal); }
  PullOptions options = Between(dir / "source", dir / "target");
  options.mode = PullMode::kRefresh;
  SECTION("by exchange: the source's") {
    options.visibility = Visibility::kSwap;
    const Summary plan = Plan(options);
    REQUIRE(Named(plan, "compaction").ok);
    REQUIRE(Named(plan, "compaction").text ==
            "column family 'default' is leveled at the source and universal "
            "in TARGET_DIR, which becomes as the source");
  }
  SECTION("in place: its own, or none at all") {
    const CheckSummary found = Named(Plan(options), "compaction");
    INFO(found.text << "; " << found.next);
    REQUIRE(found.ok == kUniversalIngestsOverData);
    REQUIRE((found.ok ? found.text : found.next)
                .find(found.ok ? "which keeps its own" : "--visibility swap") !=
            std::string::npos);
    // As it is said.
    const Ferried pulled = Refresh(dir / "source", dir / "target", options);
    REQUIRE((pulled.state() == EndState::kRefused) == !found.ok);
  }
  SECTION("a new directory: the source's") {
    options.target_dir = dir / "new";
    REQUIRE(Named(Plan(options), "compaction").text ==
            "as at the source: leveled");
  }
}

TEST_CASE("A plan tells whether a family that chunks cannot fill is cloned",
          "[transfer][plan]") {
  const TempDir dir;
  Families fifo = OneFamily(Quiet());
  fifo[0].options.compaction_style = rocksdb::kCompactionStyleFIFO;
  fifo[0].options.compaction_options_fifo.max_table_files_size = 1ull << 40;
  Fill(dir / "source", fifo);
  PullOptions options = Between(dir / "source", dir / "target");
  const CheckSummary found = Named(Plan(options), "families");
  INFO(found.text);
  REQUIRE(found.ok);
  REQUIRE((found.text.find("--method auto clones") == std::string::npos) ==
          kFifoIngestsToLevel0);
  options.method = PullMethod::kIngest;
  const Summary chunks = Plan(options);
  REQUIRE(Named(chunks, "families").ok == kFifoIngestsToLevel0);
  REQUIRE((Ferry(dir / "source", dir / "target", options).state() ==
           EndState::kOk) == kFifoIngestsToLevel0);
}

}  // namespace
}  // namespace sstferry::test
