// sstferry archive, as an operator sees it: real processes, an archive in a
// directory, a database of RocksDB.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include <nlohmann/json.hpp>

#include "format/archive_set.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

using nlohmann::json;
using rocksdb::Status;

namespace {

namespace fs = std::filesystem;

// The object of `sstferry archive WORDS --json`, and its exit code.
json Archive(std::vector<std::string> words, int exit_code = 0) {
  words.insert(words.begin(), "archive");
  words.emplace_back("--json");
  Process process(Sstferry(words));
  const int ended = process.Wait();
  INFO(process.out() << process.err());
  REQUIRE(ended == exit_code);
  return json::parse(process.out(), nullptr, false);
}

// Files below a directory, without those of the store's own.
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

std::string BytesOf(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

// Makes a database of a set, by nothing but its record.
void Assemble(const std::string& archive, const std::string& set,
              const std::string& directory) {
  SetName name;
  REQUIRE(ParseSetName(set, &name));
  ArchiveSet record;
  REQUIRE_OK(
      DecodeArchiveSet(BytesOf(archive + "/" + SetKey(name)), name, &record));
  fs::create_directory(directory);
  for (const ArchivedFile& file : record.files) {
    const std::string to = directory + "/" + CloneFileName(file.file);
    fs::copy_file(archive + "/" + ArchiveKeyText(file.key), to);
    if (file.file.kind == CloneFileKind::kManifest) {
      std::ofstream(directory + "/CURRENT")
          << CloneFileName(file.file) << "\n";
    }
  }
}

}  // namespace

TEST_CASE("A set of an archive is the database as it was pushed",
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
      REQUIRE_OK(db->Flush({}));  // else the entries lie in a WAL
    }
    const json pushed = Archive({"push", source, archive});
    const std::string copy = dir / ("copy" + std::to_string(night));
    Assemble(archive, pushed["sets"][0]["set"], copy);
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

TEST_CASE("An archive in a directory takes sets, checks and prunes them",
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
    // The application writes, and has it open.
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
  // Sets of one second have no order.
  REQUIRE((list["sets"][0]["label"] == "one") !=
          (list["sets"][1]["label"] == "one"));
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

  // A byte rots in the newest set's own MANIFEST.
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

TEST_CASE("A push changes nothing in the source and stages nothing",
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

TEST_CASE("An option that an action of archive has no use for is refused",
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

}  // namespace sstferry
