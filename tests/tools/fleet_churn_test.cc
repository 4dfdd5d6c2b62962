// Databases that are created, written and removed while a mirror of them is
// refreshed. SSTFERRY_FLEET_SECONDS and SSTFERRY_FLEET_DATABASES set the
// duration and the number of databases.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

namespace sstferry::fleet_churn_test {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

size_t NumberIn(const char* variable, size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? strtoull(text, nullptr, 10) : otherwise;
}

// Creates, writes and removes databases. Each has the keys 0, 1, ..., written
// in this order.
class Application {
 public:
  Application(std::string top, size_t databases)
      : top_(std::move(top)), wanted_(databases) {
    while (live_.size() < wanted_) {
      Make();
    }
  }

  // Sets the limits until the next call: an eighth of the databases is created,
  // an eighth is removed, and each is written about ten times.
  void BeginRun() {
    makes_ = removals_ = wanted_ / 8;
    writes_ = 10 * wanted_;
  }
  // Writes to, creates or removes one database at random, or does nothing.
  void Step() {
    const size_t what = random_() % 50;
    if (what == 0 && removals_ > 0) {
      --removals_;
      Remove();
    } else if (what == 1 && makes_ > 0) {
      --makes_;
      Make();
    } else if (writes_ > 0) {
      --writes_;
      Write(&Any()->second, 1 + random_() % 20);
    }
  }

  // Returns the number of keys of each database, by its name.
  std::map<std::string, size_t> Keys() const {
    std::map<std::string, size_t> keys;
    for (const auto& [name, one] : live_) {
      keys[name] = one.keys;
    }
    return keys;
  }

 private:
  struct One {
    std::unique_ptr<test::OpenDb> db;
    size_t keys = 0;
  };
  using Live = std::map<std::string, One>;

  static void Write(One* one, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      std::string key = std::to_string(one->keys++);
      key.insert(0, 10 - key.size(), '0');
      one->db->Put(key, "value of " + key);
    }
    if (one->keys % 97 == 0) {
      one->db->Flush();
    }
  }
  Live::iterator Any() {
    auto any = live_.begin();
    std::advance(any, random_() % live_.size());
    return any;
  }
  void Make() {
    const std::string name = "app/0_" + std::to_string(made_++) +
                             "/rocksdb/store";
    fs::create_directories(fs::path(top_ + "/" + name).parent_path());
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 64 << 10;
    One one;
    one.db = std::make_unique<test::OpenDb>(options, top_ + "/" + name);
    Write(&one, 5);
    live_.emplace(name, std::move(one));
  }
  void Remove() {
    const auto any = Any();
    any->second.db.reset();
    fs::remove_all(
        fs::path(top_ + "/" + any->first).parent_path().parent_path());
    live_.erase(any);
  }

  const std::string top_;
  const size_t wanted_;
  std::mt19937 random_{20261125};
  Live live_;
  size_t made_ = 0;
  size_t makes_ = 0;
  size_t removals_ = 0;
  size_t writes_ = 0;
};

// Checks that the replica has the keys 0 to N - 1, with `least` <= N <= `most`.
void CheckReplica(const std::string& replica, size_t least, size_t most) {
  const auto entries = EntriesOf(replica);
  INFO(replica << ": " << entries.size() << " keys, from " << least << " to "
               << most);
  REQUIRE(entries.size() >= least);
  REQUIRE(entries.size() <= most);
  if (!entries.empty()) {
    REQUIRE(stoul(entries.rbegin()->first) == entries.size() - 1);
  }
}

}  // namespace

TEST_CASE("A mirror follows databases that are created and removed",
          "[tools][fleet]") {
  const std::chrono::seconds most(NumberIn("SSTFERRY_FLEET_SECONDS", 3));
  const ScratchDir dir;
  const std::string top = dir / "top";
  const std::string mirror = dir / "mirror";
  Application application(top, NumberIn("SSTFERRY_FLEET_DATABASES", 10));
  ServeProcess server({"--db-dir", top});
  const auto words =
      Sstferry({"refresh", "--all", server.list_url(), mirror, "--delete",
                "--json", "--jobs", "4", "--log-level", "error"});
  const auto started = std::chrono::steady_clock::now();
  size_t runs = 0;
  double worst_spread_ms = 0;
  do {
    const std::map<std::string, size_t> before = application.Keys();
    application.BeginRun();
    Process refresh(words);
    int code = -1;
    while ((code = refresh.Wait(std::chrono::milliseconds(1))) == -1) {
      for (int i = 0; i < 10; ++i) {
        application.Step();
      }
    }
    const std::map<std::string, size_t> after = application.Keys();
    const json report = json::parse(refresh.out(), nullptr, false);
    INFO(refresh.err() << report.dump(2));
    REQUIRE(report.is_object());
    REQUIRE(report["delete_refused"].is_null());
    bool all_ok = true;
    std::set<std::string> listed;
    for (const json& one : report["databases"]) {
      const std::string name = one["name"];
      const bool ok = one["summary"]["status"] == "OK";
      const bool steady = before.contains(name) && after.contains(name);
      INFO(name);
      all_ok = all_ok && (ok || one["gone"] == true);
      REQUIRE((!steady || one["gone"] == false));
      listed.insert(name);
      REQUIRE((ok || !steady));
      if (ok && after.contains(name)) {
        CheckReplica(mirror + "/" + name,
                     before.contains(name) ? before.at(name) : 0,
                     after.at(name));
      }
    }
    REQUIRE((code == 0) == all_ok);
    for (const auto& [name, keys] : before) {
      INFO(name);
      REQUIRE((!after.contains(name) || listed.contains(name)));
    }
    if (!report["spread_ms"].is_null()) {
      worst_spread_ms = std::max(worst_spread_ms, double{report["spread_ms"]});
    }
    ++runs;
  } while (std::chrono::steady_clock::now() - started < most);

  // After two more runs the mirror has exactly the application's databases.
  for (int i = 0; i < 2; ++i) {
    Process last(words);
    INFO(last.out() << last.err());
    REQUIRE(last.Wait(std::chrono::minutes(5)) == 0);
  }
  std::set<std::string> expected;
  for (const auto& [name, keys] : application.Keys()) {
    CheckReplica(mirror + "/" + name, keys, keys);
    expected.insert(name);
  }
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(mirror)) {
    if (entry.path().filename() == "store") {
      found.insert(entry.path().lexically_relative(mirror).string());
    }
  }
  REQUIRE(found == expected);
  if (std::getenv("SSTFERRY_FLEET_SECONDS") != nullptr) {
    WARN(runs << " runs, " << expected.size() << " databases, spread at most "
              << worst_spread_ms << " ms");
  }
}

}  // namespace sstferry::fleet_churn_test
