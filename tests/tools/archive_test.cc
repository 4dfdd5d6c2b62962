// sstferry archive as an operator runs it: real processes, an archive in a
// directory, and a RocksDB database.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "sstferry/spawn.h"
#include "tests/support/catch.h"
#include "tests/support/fake_s3.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"
#include "tools/sstferry/archive_metrics.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry::archive_test {

using nlohmann::json;
using rocksdb::Status;

namespace {

namespace fs = std::filesystem;

// Returns the files below a directory, except the store's own files.
std::vector<fs::path> FilesBelow(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Runs `sstferry WORDS --json`, checks its exit code and returns its object.
json Run(std::vector<std::string> words, int exit_code = 0) {
  words.emplace_back("--json");
  return json::parse(OutputOf(words, exit_code), nullptr, false);
}

json Archive(std::vector<std::string> words, int exit_code = 0) {
  words.insert(words.begin(), "archive");
  return Run(std::move(words), exit_code);
}

}  // namespace

TEST_CASE(
    "A bucket that returns the same list page twice is named in the error",
    "[tools][archive]") {
  std::atomic<bool> lists_again{false};
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    if (!lists_again || request.query.count("list-type") == 0) {
      return std::nullopt;
    }
    FakeAnswer answer;
    answer.body = "<ListBucketResult><IsTruncated>true</IsTruncated>"
                  "<NextContinuationToken>next</NextContinuationToken>"
                  "<Contents><Key>" + request.query.at("prefix") +
                  "x</Key><Size>1</Size></Contents></ListBucketResult>";
    return answer;
  });
  const auto run = [&server](const std::string& action) {
    Process process(Sstferry({"archive", action, "s3://b/orders", "--endpoint",
                              server.url()}),
                    {{"AWS_ACCESS_KEY_ID", "key"},
                     {"AWS_SECRET_ACCESS_KEY", "secret"}});
    const int code = process.Wait();
    return std::to_string(code) + " " + process.err();
  };
  REQUIRE(run("init").starts_with("0 "));
  lists_again = true;
  for (const char* const action : {"list", "check"}) {
    const std::string said = run(action);
    INFO(said);
    REQUIRE(said.starts_with("1 "));
    REQUIRE(said.find("REFUSED: list s3://b/orders/") != std::string::npos);
    REQUIRE(said.find("expected the next page, found an earlier one again: the "
                      "store, or a proxy in front of it, ignores both "
                      "continuation-token and start-after") !=
            std::string::npos);
  }
}

TEST_CASE("Without HOME, a profile is in the home directory of the account",
          "[tools][archive]") {
  const std::string home = FindAccount(geteuid()).home;
  std::vector<std::string> words = {"/usr/bin/env", "-u", "HOME"};
  for (const char* const name : {"AWS_ACCESS_KEY_ID", "AWS_CONFIG_FILE",
                                 "AWS_SHARED_CREDENTIALS_FILE"}) {
    words.insert(words.end(), {"-u", name});
  }
  for (const std::string& word :
       Sstferry({"archive", "list", "s3://b/orders", "--endpoint",
                 "http://127.0.0.1:1"})) {
    words.push_back(word);
  }
  Process process(words, {{"AWS_PROFILE", "no-such-profile"}});
  REQUIRE(process.Wait() == 1);
  INFO(process.err());
  REQUIRE(process.err().find("expected a profile 'no-such-profile' in " + home +
                             "/.aws/credentials or " + home +
                             "/.aws/config, found none") != std::string::npos);
}

TEST_CASE("A copy that is made as documented can be used, also if a push ends "
          "meanwhile",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string archive = dir / "archive";
  const std::string copy = dir / "copy";
  fs::create_directory(archive);
  Archive({"init", archive});
  const auto push = [&](const std::string& value) {
    test::OpenDb db(dir / "source", test::OneFamily());
    REQUIRE_OK(db->Put({}, "key", value));
    db.Flush();
    Archive({"push", dir / "source", archive});
  };
  push("first");
  std::set<std::string> listed;
  for (const auto& entry : fs::directory_iterator(archive + "/done")) {
    listed.insert(entry.path().filename());
  }
  fs::create_directory(copy);
  for (const char* const part : {"/files", "/parts", "/wal"}) {
    if (fs::exists(archive + part)) {
      fs::copy(archive + part, copy + part, fs::copy_options::recursive);
    }
  }
  push("second");
  for (const char* const part : {"/sets", "/done"}) {
    fs::create_directory(copy + part);
    for (const std::string& name : listed) {
      fs::copy(archive + part + "/" + name, copy + part + "/" + name);
    }
  }
  Archive({"check", archive});
  for (const char* const file : {"/ARCHIVE", "/CHECKED"}) {
    if (fs::exists(archive + file)) fs::copy(archive + file, copy + file);
  }
  REQUIRE(Archive({"list", copy})["sets"].size() == 1);
  Archive({"check", copy, "--read-data", "100%"});
  const std::string target = dir / "target";
  Run({"pull", copy, target});
  test::OpenDb db(target, test::OneFamily());
  std::string value;
  REQUIRE_OK(db->Get(rocksdb::ReadOptions(), "key", &value));
  REQUIRE(value == "first");
}

TEST_CASE("A restored set has the entries that the database had when pushed",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string archive = dir / "archive";
  fs::create_directory(archive);
  Archive({"init", archive});
  std::map<std::string, std::string> expected;
  test::OpenDb db(source, test::OneFamily());
  for (int night = 0; night < 3; ++night) {
    for (int i = night * 50; i < night * 50 + 100; ++i) {
      const std::string key = "key" + std::to_string(i);
      expected[key] = "value " + std::to_string(night);
      REQUIRE_OK(db->Put({}, key, expected[key]));
    }
    if (night != 1) {
      REQUIRE_OK(db->Flush({}));  // night 1: they are only in the WAL
    }
    const json pushed = Archive({"push", source, archive});
    const std::string copy = dir / ("copy" + std::to_string(night));
    Run({"pull", archive + "@" + std::string(pushed["sets"][0]["set"]), copy});
    test::OpenDb restored(copy, test::OneFamily());
    std::map<std::string, std::string> found;
    const std::unique_ptr<rocksdb::Iterator> entries(
        restored->NewIterator(rocksdb::ReadOptions()));
    for (entries->SeekToFirst(); entries->Valid(); entries->Next()) {
      found[entries->key().ToString()] = entries->value().ToString();
    }
    REQUIRE_OK(entries->status());
    REQUIRE(found == expected);
  }
  REQUIRE(Archive({"check", archive, "--read-data", "100%"})["sets"].size() ==
          3);
}

TEST_CASE("push, check and prune work on an archive in a directory",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string archive = dir / "archive";
  fs::create_directory(archive);
  MakeSampleDatabase(source);

  REQUIRE(Archive({"push", source, archive}, 1)["status"] == "REFUSED");
  const json made = Archive({"init", archive});
  REQUIRE(made["grace_seconds"] == 86400);
  REQUIRE(made["has_put_if_absent"] == true);
  REQUIRE(made["refuses_old_signatures"] == false);
  REQUIRE(made["notes"].size() == 1);
  REQUIRE(Archive({"init", archive}, 1)["status"] == "REFUSED");

  const json first =
      Archive({"push", source, "file://" + archive, "--label", "one"});
  REQUIRE(first["uploaded_files"] == first["sets"][0]["files"]);
  REQUIRE(first["reused_files"] == 0);
  {
    // The application has the source open and writes.
    test::OpenDb db(source, test::OneFamily());
    REQUIRE_OK(db->Put({}, "another", "entry"));
    const json second = Archive({"push", source, archive});
    REQUIRE(second["reused_files"] > 0);
    REQUIRE(second["reused_bytes"].get<uint64_t>() +
                second["uploaded_bytes"].get<uint64_t>() ==
            second["sets"][0]["bytes"]);
  }

  const json list = Archive({"list", archive});
  REQUIRE(list["sets"].size() == 2);
  REQUIRE(list["sets"][0]["label"] == "one");
  REQUIRE(list["sets"][1]["label"] == "");
  REQUIRE(list["sets"][1]["state"] == "whole");

  const json good = Archive({"check", archive, "--read-data", "100%"});
  REQUIRE(good["read_files"] == good["objects"]);
  REQUIRE(good["orphans"] == 0);
  REQUIRE(good["problems"].empty());
  REQUIRE(good["newest_age_seconds"] < 600);

  const json pruned = Archive({"prune", archive, "--keep-last", "1"});
  REQUIRE(pruned["marked_sets"] == 1);
  REQUIRE(pruned["dropped_sets"] == 0);
  REQUIRE(Archive({"list", archive})["sets"][0]["state"] == "expiring");

  // Corrupts a byte of the newest set's own MANIFEST.
  const std::string set = list["sets"][1]["set"];
  for (const fs::path& file :
       FilesBelow(archive + "/parts/" + set.substr(set.find('-') + 1))) {
    if (file.filename().string().starts_with("MANIFEST-")) {
      fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
      std::fstream stream(file, std::ios::in | std::ios::out |
                                    std::ios::binary);
      stream.seekp(20);
      stream.put('\xff');
    }
  }
  REQUIRE(Archive({"check", archive})["status"] == "OK");
  const json bad = Archive({"check", archive, "--read-data", "100%"}, 1);
  REQUIRE(bad["status"] == "CORRUPT");
  REQUIRE(bad["sets"][1]["state"] == "damaged");
  REQUIRE(bad["sets"][0]["state"] == "expiring");
  REQUIRE(std::string(bad["error"]["message"]).find("MANIFEST-") !=
          std::string::npos);
}

TEST_CASE("A dry prune says what it would do, and remove deletes a set by name",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string archive = dir / "archive";
  fs::create_directory(archive);
  MakeSampleDatabase(source);
  Archive({"init", archive});
  std::vector<std::string> sets;
  for (const char* const label : {"one", "two"}) {
    test::OpenDb db(source, test::OneFamily());
    db.Put(label, "entry");
    db.Flush();
    sets.push_back(Archive({"push", source, archive, "--label",
                            label})["sets"][0]["set"]);
  }
  const std::vector<fs::path> before = FilesBelow(archive);
  const json dry =
      Archive({"prune", archive, "--keep-last", "1", "--dry-run"});
  REQUIRE(FilesBelow(archive) == before);
  REQUIRE(dry["dry_run"] == true);
  REQUIRE(dry["marked_sets"] == 1);
  REQUIRE(dry["sets"][0]["set"] == sets[0]);
  REQUIRE(dry["sets"][0]["state"] == "marked");
  REQUIRE(dry["sets"][0]["why"] == "no --keep option keeps it");
  REQUIRE(dry["sets"][1]["state"] == "stays");
  REQUIRE(dry["sets"][1]["why"] == "the newest whole set, --keep-last 1");
  REQUIRE(OutputOf({"archive", "prune", archive, "--keep-last", "1",
                    "--dry-run"},
                   0)
              .find("would be marked: 1 set, ") != std::string::npos);

  // The first set's record is corrupt: the next prune continues and names the
  // command that removes the set.
  std::ofstream(archive + "/sets/" + sets[0], std::ios::trunc) << "rot";
  REQUIRE(Archive({"list", archive})["sets"][0]["state"] == "damaged");
  const json pruned = Archive({"prune", archive, "--keep-last", "1"});
  REQUIRE(pruned["damaged_sets"] == 1);
  REQUIRE(pruned["marked_files"] == 0);
  REQUIRE(pruned["warnings"].dump().find("sstferry archive remove " + archive +
                                      " " + sets[0]) != std::string::npos);
  const json refused = Archive({"remove", archive, sets[1]}, 1);
  REQUIRE(refused["error"]["message"].dump().find(
              "push a new set first, or remove this one with --force") !=
          std::string::npos);
  REQUIRE(Archive({"remove", archive, sets[0]})["removed"] == sets[0]);
  REQUIRE(Archive({"list", archive})["sets"].size() == 1);
  REQUIRE(Archive({"check", archive})["status"] == "OK");
}

TEST_CASE("After a check has found wrong bytes, prune keeps a whole set, and push "
          "and repair make one",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string archive = dir / "archive";
  fs::create_directory(archive);
  MakeSampleDatabase(source);
  Archive({"init", archive});
  const std::string whole =
      Archive({"push", source, archive})["sets"][0]["set"];
  {
    test::OpenDb db(source, test::OneFamily());
    db.Put("another", "entry");
    db.Flush();
  }
  const std::string damaged =
      Archive({"push", source, archive})["sets"][0]["set"];
  // Corrupts a byte of each table that only the newest set has.
  for (const fs::path& file : FilesBelow(archive + "/files")) {
    if (file.string().ends_with(damaged.substr(damaged.find('-')))) {
      fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
      std::fstream stream(file, std::ios::in | std::ios::out |
                                    std::ios::binary);
      stream.seekp(20);
      stream.put('\xff');
    }
  }
  REQUIRE(Archive({"check", archive, "--read-data", "100%"}, 1)["status"] ==
          "CORRUPT");
  const json pruned = Archive({"prune", archive, "--keep-last", "1"});
  REQUIRE(pruned["marked_sets"] == 0);
  REQUIRE(pruned["sets"][0]["set"] == whole);
  REQUIRE(pruned["sets"][0]["why"] == "the newest whole set, --keep-last 1");
  REQUIRE(pruned["sets"][1]["set"] == damaged);
  // A push uploads the wrong tables again.
  const json pushed = Archive({"push", source, archive});
  REQUIRE(pushed["uploaded_files"] > 0);
  REQUIRE(pushed["notes"].dump().find("the last check found wrong") !=
          std::string::npos);
  const std::string newest = pushed["sets"][0]["set"];
  REQUIRE(Archive({"list", archive})["sets"][2]["state"] == "whole");
  Run({"pull", archive, dir / "copy", "--verify"});
  REQUIRE(EntriesOf(dir / "copy") == EntriesOf(source));
  // A repair makes a set in place of the damaged one. A check then says which
  // command removes that one.
  Archive({"repair", archive, damaged, "--from", source});
  const json checked = Archive({"check", archive, "--read-data", "100%"});
  REQUIRE(checked["status"] == "OK");
  REQUIRE_FALSE(checked["problems"].empty());
  REQUIRE(checked["warnings"].dump().find("sstferry archive remove " + archive +
                                          " " + damaged) != std::string::npos);
  Archive({"remove", archive, damaged});
  REQUIRE(Archive({"check", archive})["warnings"].empty());
  // A repair cannot help a set whose record is corrupt.
  fs::permissions(archive + "/sets/" + newest, fs::perms::owner_write,
                  fs::perm_options::add);
  std::ofstream(archive + "/sets/" + newest, std::ios::trunc) << "rot";
  for (const char* const action : {"repair", "check"}) {
    const json failed = Archive({action, archive}, 1);
    REQUIRE(failed["status"] == "CORRUPT");
    REQUIRE(failed["error"]["next"] ==
            "sstferry archive remove " + archive + " " + newest);
  }
}

TEST_CASE("A push shows its progress and reports its duration and metrics",
          "[tools][archive][metrics]") {
  const ScratchDir dir;
  const std::string archive = dir / "archive";
  const std::string file = dir / "push.prom";
  fs::create_directory(archive);
  MakeSampleDatabase(dir / "source");
  Archive({"init", archive});
  Process push(Sstferry({"archive", "push", dir / "source", archive,
                         "--progress", "json", "--progress-interval", "20ms",
                         "--metrics-file", file, "--json"}));
  REQUIRE(push.WaitForErr("\"finished\":true"));
  REQUIRE(push.Wait() == 0);
  const json pushed = json::parse(push.out(), nullptr, false);
  REQUIRE(pushed["seconds"] > 0);
  std::ifstream lines(file);
  std::map<std::string, double> values;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("sstferry_archive_")) {
      values[line.substr(0, line.find('{'))] =
          std::stod(line.substr(line.rfind(' ')));
    }
  }
  REQUIRE(values.at("sstferry_archive_last_push_timestamp_seconds") > 1.7e9);
  REQUIRE(values.at("sstferry_archive_push_bytes") ==
          pushed["sets"][0]["bytes"].get<double>());
  REQUIRE(values.at("sstferry_archive_push_uploaded_bytes") ==
          pushed["uploaded_bytes"].get<double>());
  // Check and prune add their metrics to the same file, and a failed push keeps
  // all of them.
  Archive({"check", archive, "--metrics-file", file});
  Archive({"prune", archive, "--keep-last", "1", "--dry-run", "--metrics-file",
           file});
  REQUIRE(BytesOf(file).find("sstferry_archive_last_prune_timestamp_seconds{"
                             "archive=\"" + archive + "\"} 0\n") !=
          std::string::npos);
  Archive({"prune", archive, "--keep-last", "1", "--metrics-file", file});
  fs::rename(archive, dir / "away");
  Archive({"push", dir / "source", archive, "--metrics-file", file}, 1);
  std::ifstream again(file);
  const std::string text((std::istreambuf_iterator<char>(again)), {});
  REQUIRE(text.find("sstferry_archive_last_check_timestamp_seconds{") !=
          std::string::npos);
  REQUIRE(text.find("sstferry_archive_push_bytes{") != std::string::npos);
  // The push failed, the check before it did not.
  const std::string run = "sstferry_archive_run_failed_timestamp_seconds{";
  REQUIRE(text.find(run + "action=\"check\",archive=\"" + archive +
                    "\"} 0\n") != std::string::npos);
  REQUIRE(text.find(run + "action=\"push\",archive=\"" + archive +
                    "\"} 1") != std::string::npos);
  REQUIRE(text.find("sstferry_archive_last_prune_timestamp_seconds{archive=\"" +
                    archive + "\"} 1") != std::string::npos);
  for (const char* const action : {"check", "prune"}) {
    Process other(Sstferry({"archive", action, dir / "away", "--progress",
                            "json"}));
    REQUIRE(other.WaitForErr("\"finished\":true"));
    REQUIRE(other.Wait() == 0);
  }
}

TEST_CASE("A drill restores the newest set, and the metrics have its time",
          "[tools][archive][metrics]") {
  const ScratchDir dir;
  const std::string archive = dir / "archive";
  const std::string file = dir / "orders.prom";
  const std::vector<std::string> check = {
      "check",   archive,       "--read-data", "50%",
      "--drill", dir / "drill", "--metrics-file", file};
  // Returns the values of a metric in the file.
  const auto values = [&file](const std::string& metric) {
    std::vector<double> found;
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(metric + "{")) {
        found.push_back(std::stod(line.substr(line.rfind(' '))));
      }
    }
    return found;
  };
  fs::create_directory(archive);
  MakeSampleDatabase(dir / "source");
  Archive({"init", archive});
  REQUIRE(Archive(check, 1)["drill"]["status"] == "REFUSED");  // no set yet
  REQUIRE(values("sstferry_archive_newest_set_timestamp_seconds") ==
          std::vector<double>{0});
  REQUIRE(values("sstferry_archive_last_drill_timestamp_seconds") ==
          std::vector<double>{0});
  Archive({"push", dir / "source", archive});

  const json drilled = Archive(check);
  REQUIRE(drilled["drill"]["status"] == "OK");
  REQUIRE(drilled["drill"]["opened"] == true);
  REQUIRE(drilled["drill"]["set"] == drilled["sets"][0]["set"]);
  REQUIRE(drilled["drill"]["bytes"] == drilled["sets"][0]["bytes"]);
  REQUIRE(drilled["read_parts"] == 2);
  REQUIRE_FALSE(fs::exists(dir / "drill"));
  REQUIRE_FALSE(fs::exists(dir / "drill.sstferry"));
  const std::vector<double> newest =
      values("sstferry_archive_newest_set_timestamp_seconds");
  const std::vector<double> last =
      values("sstferry_archive_last_drill_timestamp_seconds");
  REQUIRE(newest.at(0) > 1.7e9);
  REQUIRE(last.at(0) >= newest.at(0));
  const double drill_seconds = drilled["drill"]["seconds"].get<double>();
  REQUIRE(std::abs(values("sstferry_archive_drill_seconds").at(0) -
                   drill_seconds) < 1e-6);
  REQUIRE(values("sstferry_archive_bytes").at(0) ==
          drilled["bytes"].get<double>());
  const std::vector<double> parts =
      values("sstferry_archive_part_read_timestamp_seconds");
  REQUIRE(parts.size() == 2);
  REQUIRE(parts[drilled["read_part"].get<size_t>() - 1] > 1.7e9);
  // Another day's check reads the other part.
  REQUIRE(parts[2 - drilled["read_part"].get<size_t>()] == 0);

  // Corrupts a byte of each file. Sizes and names stay, so only the drill,
  // which reads everything, finds it.
  for (const fs::path& object : FilesBelow(archive + "/files")) {
    fs::permissions(object, fs::perms::owner_write, fs::perm_options::add);
    std::fstream stream(object,
                        std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(20);
    stream.put('\xff');
  }
  const json bad =
      Archive({"check", archive, "--drill", dir / "drill", "--metrics-file",
               file},
              1);
  REQUIRE(bad["status"] == "CORRUPT");
  REQUIRE(bad["drill"]["status"] == "CORRUPT");
  REQUIRE_FALSE(fs::exists(dir / "drill.sstferry"));
  REQUIRE(values("sstferry_archive_last_drill_timestamp_seconds") == last);

  // The archive is gone: the metrics keep their last known values.
  fs::rename(archive, dir / "away");
  const std::vector<double> known =
      values("sstferry_archive_newest_set_timestamp_seconds");
  const std::vector<double> checked =
      values("sstferry_archive_last_check_timestamp_seconds");
  Archive({"check", archive, "--metrics-file", file}, 1);
  REQUIRE(values("sstferry_archive_newest_set_timestamp_seconds") == known);
  REQUIRE(values("sstferry_archive_last_check_timestamp_seconds") == checked);
}

TEST_CASE("A push changes nothing in the source and writes no local copy",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  fs::create_directory(dir / "archive");
  MakeSampleDatabase(source);
  const std::vector<fs::path> before = FilesBelow(source);
  Archive({"init", dir / "archive"});
  Archive({"push", source, dir / "archive"});
  REQUIRE(FilesBelow(source) == before);
  size_t beside = 0;
  for (const auto& entry : fs::directory_iterator(dir.path())) {
    static_cast<void>(entry);
    ++beside;
  }
  REQUIRE(beside == 2);
}

TEST_CASE("A restore that is killed three times resumes", "[tools][archive]") {
  const ScratchDir dir;
  const std::string archive = dir / "archive";
  fs::create_directory(archive);
  MakeSampleDatabase(dir / "source");
  Archive({"init", archive});
  Archive({"push", dir / "source", archive});
  for (int run = 0; run < 3; ++run) {
    // 2 MB at 200 kB/s: the pull cannot finish before it is killed.
    Process pull(Sstferry({"pull", archive, dir / "target", "--max-rate",
                           "200K", "--progress", "json",
                           "--progress-interval", "20ms"}));
    REQUIRE(pull.WaitForErr("\"transfer\""));
    pull.Signal(SIGKILL);
    REQUIRE(pull.Wait() == 128 + SIGKILL);
    REQUIRE_FALSE(fs::exists(dir / "target"));
  }
  Run({"pull", archive, dir / "target"});
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
}

TEST_CASE("A swap from an archive fetches only files missing in the replica",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string archive = dir / "archive";
  const std::string target = dir / "target";
  fs::create_directory(archive);
  MakeSampleDatabase(dir / "source");
  Archive({"init", archive});
  Archive({"push", dir / "source", archive, "--label", "one"});
  Run({"pull", archive + "@one", target});
  {
    test::OpenDb db(dir / "source", test::OneFamily());
    db.Put("another", "entry");
    db.Flush();
  }
  Archive({"push", dir / "source", archive, "--label", "two@night"});
  const json plan = Run({"plan", "swap", archive + "@two@night", target});
  REQUIRE(plan["method"] == "clone");
  const json swapped = Run({"swap", archive + "@two@night", target,
                            "--before-swap", "true", "--after-swap", "true"});
  REQUIRE(swapped["method"] == "clone");
  REQUIRE(swapped["files_reused"] == 4);
  REQUIRE(EntriesOf(target) == EntriesOf(dir / "source"));
  // The replica has the files of the set.
  REQUIRE(Run({"verify", archive, target})["compared"] == "files");
  // Swaps back to the older set.
  Run({"swap", archive + "@one", target});
  REQUIRE(EntriesOf(target).count("another") == 0);
  const json refreshed = Run({"refresh", archive, target});
  REQUIRE(refreshed["method"] == "clone");
  REQUIRE(refreshed["exchanged"] == true);
  REQUIRE(EntriesOf(target).count("another") == 1);
}

TEST_CASE("A verify of an archive reads its objects", "[tools][archive]") {
  const ScratchDir dir;
  const std::string archive = dir / "archive";
  const std::string copy = dir / "copy";
  const std::string target = dir / "target";
  const std::string key = dir / "key";
  std::vector<std::string> with_key;
  if (GENERATE(false, true)) {
    std::ofstream(key) << std::string(64, '7') << "\n";
    fs::permissions(key, fs::perms::owner_read | fs::perms::owner_write);
    with_key = {"--key-file", key};
  }
  const auto with = [&with_key](std::vector<std::string> words) {
    words.insert(words.end(), with_key.begin(), with_key.end());
    return words;
  };
  fs::create_directory(archive);
  MakeSampleDatabase(dir / "source");
  Archive({"init", archive});
  Archive(with({"push", dir / "source", archive}));
  fs::copy(archive, copy, fs::copy_options::recursive);
  Run(with({"pull", archive, target}));
  const json equal = Run(with({"verify", archive, target}));
  REQUIRE(equal["compared"] == "files");
  REQUIRE(Run(with({"verify", archive, copy}))["compared"] == "files");

  // Corrupts a byte of the largest object. Its size and name stay.
  const std::vector<fs::path> objects = FilesBelow(archive + "/files");
  const fs::path table = *std::max_element(
      objects.begin(), objects.end(), [](const fs::path& a, const fs::path& b) {
        return fs::file_size(a) < fs::file_size(b);
      });
  fs::permissions(table, fs::perms::owner_write, fs::perm_options::add);
  const auto middle = static_cast<std::streamoff>(fs::file_size(table) / 2);
  {
    std::fstream stream(table, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(middle);
    const int byte = stream.get();
    stream.seekp(middle);
    stream.put(static_cast<char>(byte ^ 0x10));
    REQUIRE(stream.good());
  }
  const auto corrupt = [&](const std::string& left, const std::string& right) {
    const json ended = Run(with({"verify", left, right}), 1);
    INFO(ended.dump());
    REQUIRE(ended["status"] == "CORRUPT");
    REQUIRE(ended.dump().find(table.filename().string()) != std::string::npos);
  };
  corrupt(archive, target);
  corrupt(target, archive);
  corrupt(archive, copy);
  corrupt(copy, archive);
  // The replica is right, so no fault is recorded.
  REQUIRE_FALSE(fs::exists(target + "/sstferry.health"));
  Run(with({"verify", copy, target}));
}

TEST_CASE("A verify with an older set finds no fault in a newer replica",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string archive = dir / "archive";
  const std::string target = dir / "target";
  fs::create_directory(archive);
  MakeSampleDatabase(dir / "source");
  Archive({"init", archive});
  Archive({"push", dir / "source", archive});
  {
    test::OpenDb db(dir / "source", test::OneFamily());
    db.Put("another", "entry");
  }
  Run({"pull", dir / "source", target});
  const json verified =
      Run({"verify", archive, target, "--begin", "a", "--end", "b"}, 3);
  INFO(verified.dump());
  REQUIRE(verified["status"] == "DIFFERENT");
  REQUIRE(verified["error"]["next"].is_null());
  REQUIRE_FALSE(fs::exists(target + "/sstferry.health"));
}

TEST_CASE(
    "An action that an archive cannot do is refused before a byte is sent",
    "[tools][archive]") {
  const ScratchDir dir;
  const std::string archive = dir / "archive";
  fs::create_directory(archive);
  MakeSampleDatabase(dir / "source");
  Archive({"init", archive});
  const auto refused = [&](std::vector<std::string> words,
                           const std::string& why) {
    const json ended = Run(std::move(words), 1);
    INFO(ended.dump());
    REQUIRE(ended["status"] == "REFUSED");
    REQUIRE(ended.dump().find(why) != std::string::npos);
    REQUIRE_FALSE(fs::exists(dir / "target"));
  };
  refused({"pull", archive, dir / "target"}, "sstferry archive push SOURCE ");
  Archive({"push", dir / "source", archive});
  refused({"pull", archive + "@none", dir / "target"}, "label 'none'");
  refused({"pull", archive, archive + "/target"}, "archive");
  Run({"pull", archive, dir / "copy"});
  // A refresh in place compares entries, which an archive cannot serve.
  const json refresh =
      Run({"refresh", archive, dir / "copy", "--method", "ingest"}, 1);
  REQUIRE(refresh.dump().find("only a swap can") != std::string::npos);
}

TEST_CASE("A sealed set is restored with its key and refused without it",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string archive = dir / "archive";
  const std::string key = dir / "key";
  fs::create_directory(archive);
  MakeSampleDatabase(dir / "source");
  std::ofstream(key) << std::string(64, '7') << "\n";
  fs::permissions(key, fs::perms::owner_read | fs::perms::owner_write);
  Archive({"init", archive});
  Archive({"push", dir / "source", archive, "--key-file", key});
  const json refused = Run({"pull", archive, dir / "target"}, 1);
  REQUIRE(refused["status"] == "REFUSED");
  REQUIRE(refused.dump().find("--key-file") != std::string::npos);
  REQUIRE_FALSE(fs::exists(dir / "target"));
  Run({"pull", archive, dir / "target", "--key-file", key, "--verify"});
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
  Archive({"push", dir / "source", archive, "--label", "open"});
  REQUIRE(Run({"pull", archive + "@open", dir / "other", "--key-file", key},
              1)["status"] == "REFUSED");
}

TEST_CASE("A pull with --if-absent does not change an existing database",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string archive = dir / "archive";
  const std::vector<std::string> pull = {"pull", archive, dir / "target",
                                         "--if-absent"};
  fs::create_directory(archive);
  MakeSampleDatabase(dir / "source");
  Archive({"init", archive});
  Archive({"push", dir / "source", archive});
  Run(pull);
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
  {
    test::OpenDb db(dir / "target", test::OneFamily());
    db.Put("the application's", "entry");
  }
  const std::string before = test::Fingerprint(dir / "target");
  // The archive is missing: the pull does not read it.
  fs::rename(archive, dir / "away");
  const json again = Run(pull);
  REQUIRE(again["status"] == "OK");
  REQUIRE(again.dump().find("holds a database already") != std::string::npos);
  REQUIRE(test::Fingerprint(dir / "target") == before);
}

TEST_CASE("A config file has the operands of an archive action by their names",
          "[tools][archive]") {
  const ScratchDir dir;
  const auto parsed = [&dir](const std::string& text,
                             std::vector<std::string> words) {
    WriteBytes(dir / "job.toml", text);
    words.insert(words.end(), {"--config", dir / "job.toml"});
    ArchiveArguments arguments;
    REQUIRE_OK(ParseArchive(words, &arguments));
    return arguments.options;
  };
  ArchiveOptions options = parsed(
      "source = '/db'\narchive = 's3://b/p'\nlabel = 'check'\n", {"push"});
  REQUIRE(options.source.directory == "/db");
  REQUIRE(options.store.where.bucket == "b");
  REQUIRE(options.label == "check");
  options = parsed("archive = 's3://b/p'\nkeep-last = 3\n", {"prune"});
  REQUIRE(options.action == ArchiveAction::kPrune);
  REQUIRE(options.store.where.bucket == "b");
  REQUIRE(parsed("archive = 's3://b/p'\nset = 'x'\n", {"remove"}).set == "x");
  REQUIRE(parsed("archive = 's3://b/p'\n", {"remove", "s3://c", "x"})
              .store.where.bucket == "c");
  // The value of an option may name another action.
  REQUIRE(parsed("", {"--label", "check", "push", "/db", "s3://b/p"})
              .source.directory == "/db");
  ArchiveArguments wrong;
  WriteBytes(dir / "job.toml", "source = '/db'\n");
  REQUIRE_FALSE(
      ParseArchive({"list", "s3://b", "--config", dir / "job.toml"}, &wrong)
          .ok());
  EndCommands end;
  WriteBytes(dir / "job.toml", "source = '/db'\narchive = 's3://b'\n"
                               "on-success = 'true'\n");
  REQUIRE_OK(ParseEndCommands(
      "archive", {"push", "--config", dir / "job.toml"}, &end));
  REQUIRE(end.on_success == "true");
  REQUIRE(end.job == "archive push");
}

TEST_CASE("A time before the first set is refused with the oldest time",
          "[tools][archive]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  fs::create_directory(dir / "archive");
  Archive({"init", dir / "archive"});
  std::string oldest;
  for (int i = 0; i < 2; ++i) {
    const json pushed = Archive({"push", dir / "source", dir / "archive"});
    const std::string set = pushed["sets"][0]["set"];
    oldest = oldest.empty() ? set.substr(0, set.find('Z') + 1) : oldest;
  }
  const json refused =
      Run({"pull", (dir / "archive") + "@-2h", dir / "copy"}, 1);
  INFO(refused.dump(2));
  REQUIRE(refused["error"]["message"].get<std::string>().find(
              "the oldest time that can be restored is " + oldest) !=
          std::string::npos);
}

TEST_CASE("Only push and follow advise to make a missing archive",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  MakeSampleDatabase(source);
  const std::string top = dir / "top";
  const std::string empty = dir / "empty";
  fs::create_directories(top + "/fleet/db9");
  fs::create_directory(empty);
  Archive({"init", top + "/fleet/db9"});
  const auto error = [](const json& answer) {
    INFO(answer.dump(2));
    REQUIRE(answer["status"] == "REFUSED");
    return answer["error"];
  };
  for (const char* const action : {"list", "check"}) {
    REQUIRE(error(Archive({action, empty}, 1))["next"].is_null());
    const json parent = error(Archive({action, top}, 1));
    REQUIRE(parent["next"].is_null());
    REQUIRE(parent["message"].get<std::string>().ends_with(
        "archives below it: fleet/db9"));
    const json database = error(Archive({action, source}, 1));
    REQUIRE(database["next"].is_null());
    REQUIRE(database["message"].get<std::string>().ends_with(
        "found a database"));
  }
  REQUIRE(error(Run({"pull", "file://" + empty, dir / "copy"}, 1))["next"]
              .is_null());
  const json make = error(Archive({"push", source, empty}, 1));
  REQUIRE(make["next"] == "sstferry archive init " + empty);
  // Operands in the wrong order do not make an archive in a database.
  REQUIRE(error(Archive({"push", source, source}, 1))["next"].is_null());
  REQUIRE(error(Archive({"push", source, top}, 1))["next"].is_null());
}

TEST_CASE("An archive action refuses options that it does not use",
          "[tools][archive]") {
  ArchiveArguments parsed;
  REQUIRE_OK(ParseArchive({"push", "/db", "s3://b/p", "--label", "x"},
                          &parsed));
  REQUIRE(parsed.options.store.where.bucket == "b");
  REQUIRE(parsed.options.source.directory == "/db");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{
           {"list", "/a", "--label", "x"},
           {"push", "/db", "/a", "--keep-last", "3"},
           {"check", "/a", "--grace", "48h"},
           {"prune", "/a", "--read-data", "5%"},
           {"list", "/a", "--drill", "/d"},
           {"list", "/a", "--metrics-file", "/m.prom"},
           {"check", "/a", "--metrics-file", "/m.txt"},
           {"prune", "/a", "--keep-last", "0"},
           {"check", "/a", "--read-data", "101%"},
           {"list", "/a", "/b"},
           {"push", "/db"},
           {"list"},
           {"drop", "/a"},
           {"list", "s3://"}}) {
    INFO(words.front());
    REQUIRE_FALSE(ParseArchive(words, &parsed).ok());
  }
}

TEST_CASE("A push from a server makes the same set as a local push",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string archive = dir / "archive";
  fs::create_directory(archive);
  MakeSampleDatabase(source);
  Archive({"init", archive});
  const json local = Archive({"push", source, archive});
  {
    const ServeProcess serve({"--db", "db=" + source});
    const json first = Archive({"push", serve.url(), archive});
    REQUIRE(first["source"] == serve.url());
    REQUIRE(first["reused_files"].get<uint64_t>() > 0);
    REQUIRE(first["sets"][0]["bytes"] == local["sets"][0]["bytes"]);
    // A database that is not served, then an archive that does not exist.
    Archive({"push", serve.list_url() + "/other", archive}, 1);
    Archive({"push", serve.url(), dir / "none"}, 1);
  }
  const std::string copy = dir / "copy";
  Run({"pull", archive + "@" + std::string(local["sets"][0]["set"]), copy});
  REQUIRE(EntriesOf(copy) == EntriesOf(source));
  REQUIRE(Archive({"check", archive, "--read-data", "100%"})["sets"].size() ==
          2);
}

TEST_CASE("check verifies sealed sets without a key, and with the key it also "
          "requires that each set is sealed",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string archive = dir / "archive";
  const std::string key = dir / "key";
  fs::create_directory(archive);
  MakeSampleDatabase(source);
  std::ofstream(key) << std::string(64, 'b') << "\n";
  fs::permissions(key, fs::perms::owner_read | fs::perms::group_read);
  Archive({"init", archive});
  REQUIRE(Archive({"push", source, archive, "--key-file", key},
                  1)["status"] == "REFUSED");
  fs::permissions(key, fs::perms::owner_read);
  const json pushed = Archive({"push", source, archive, "--key-file", key});
  REQUIRE(pushed["sets"][0]["sealed"] == true);
  const ServeProcess serve({"--db", "db=" + source});
  const json again = Archive({"push", serve.url(), archive, "--key-file", key});
  REQUIRE(again["reused_files"].get<uint64_t>() > 0);
  REQUIRE(Archive({"check", archive, "--read-data", "100%"})["sets"].size() ==
          2);
  REQUIRE(Archive({"check", archive, "--key-file", key})["sets"].size() == 2);
  const json open = Archive({"push", source, archive});
  REQUIRE(open["sets"][0]["sealed"] == false);
  REQUIRE(open["reused_files"] == 0);
  const json refused = Archive({"check", archive, "--key-file", key}, 1);
  REQUIRE(refused["status"] == "REFUSED");  // the third set is not sealed
  const json list = Archive({"list", archive, "--key-file", key});
  size_t whole = 0;
  for (const json& set : list["sets"]) {
    whole += set["state"] == "whole" ? 1 : 0;
  }
  REQUIRE(whole == 2);
}

TEST_CASE(
    "Jobs that share a metrics file wait for each other, for a limited time",
    "[tools][archive]") {
  const ScratchDir dir;
  const std::string file = dir / "orders.prom";
  Descriptor first = LockMetrics(file);
  REQUIRE(first.is_open());
  REQUIRE_FALSE(LockMetrics(file).is_open());
  first = Descriptor();
  REQUIRE(LockMetrics(file).is_open());
  REQUIRE(NamesOf(dir.path()).empty());
  REQUIRE_FALSE(LockMetrics(dir / "none/orders.prom").is_open());
}

}  // namespace sstferry::archive_test
