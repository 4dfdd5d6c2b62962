// Names and lists of other files (files of neither RocksDB nor sstferry), and
// the record of copied ones.
#include "format/other_file.h"

#include <string>
#include <vector>

#include "format/end_state.h"
#include "format/other_files_record.h"
#include "format/sealed_file.h"
#include "tests/support/catch.h"

namespace sstferry::other_file_test {
namespace {

TEST_CASE(
    "A name that may be copied is one plain component, and not a database's",
    "[format][other_files]") {
  for (const char* name :
       {"rocksdict-config.json", "SESSION_ID", "a", "A.b_c-9", "-x", "login",
        "LOGS", "Locked", "currents", "0", "000012", "000012.sst2", "x.sst.d",
        "optionsfile", "archives", "lost-and-found", "score", "pem", "key"}) {
    INFO(name);
    REQUIRE(JudgeOtherName(name) == KeptBack::kNo);
  }
  REQUIRE(JudgeOtherName(std::string(128, 'a')) == KeptBack::kNo);
  for (const std::string& name : std::vector<std::string>{
           "", ".", "..", ".x", "../x", "a/b", "/etc", "a b", "a\n", "\xc3\xa9",
           std::string("a\0b", 3), std::string(129, 'a'), "a:b", "~", "a\\b",
           // names of RocksDB, and similar ones
           "000012.sst", "12.SST", "x.ldb", "000012.blob", "000012.log",
           "app.log", "000012.dbtmp", "CURRENT.dbtmp", "000012.sst.trash",
           "CURRENT", "current", "Current.bak", "IDENTITY", "identity", "LOCK",
           "lock", "LOG", "log", "LOG.old.17", "log.old.17", "MANIFEST-000001",
           "manifest-x", "OPTIONS-000007", "Options-000007", "METADB-000001",
           "COMPACTION_PROGRESS-1", "archive", "Archive", "lost", "LOST",
           // names of sstferry
           "sstferry.health", "sstferry.x", "SSTferry.files",
           "last_transfer.json", "LAST_TRANSFER.JSON",
           "last_transfer.json.tmp"}) {
    INFO(name);
    REQUIRE(JudgeOtherName(name) == KeptBack::kName);
  }
  for (const char* name : {"core", "core.17", "Core.1", "core_x", "a.pem",
                           "A.PEM", "server.key", "x.Key"}) {
    INFO(name);
    REQUIRE(JudgeOtherName(name) == KeptBack::kSecret);
  }
}

TEST_CASE(
    "Only names that RocksDB and sstferry make are recognized as theirs",
    "[format][other_files]") {
  for (const char* name :
       {"CURRENT", "IDENTITY", "LOCK", "LOG", "LOG.old.1700000000000000",
        "MANIFEST-000005", "OPTIONS-000007", "OPTIONS-000007.dbtmp",
        "METADB-000001", "COMPACTION_PROGRESS-3", "000012.sst", "12.sst",
        "000012.ldb", "000012.blob", "000012.log", "000012.dbtmp",
        "CURRENT.dbtmp", "000012.sst.trash", "var_db_LOG", "var_db_LOG.old.17",
        "sstferry.health", "sstferry.files", "sstferry.files.tmp",
        "last_transfer.json", "last_transfer.json.tmp"}) {
    INFO(name);
    REQUIRE(IsDatabaseFileName(name));
    REQUIRE((!MayBeCopied(name) || std::string(name).find("_LOG") == 6));
  }
  for (const char* name :
       {"app.log", "x12.sst", "12x.log", ".sst", "current", "LOG2",
        "MANIFEST-", "OPTIONS-notes", "sstferry.conf", "last_transfer.json2",
        "SESSION_ID", ""}) {
    INFO(name);
    REQUIRE_FALSE(IsDatabaseFileName(name));
  }
}

TEST_CASE("A list of other files is checked before a file is requested",
          "[format][other_files]") {
  const auto refuses = [](const std::vector<OtherFile>& files) {
    const rocksdb::Status status = CheckOtherFiles(files);
    return EndStateOf(status) == EndState::kCorrupt;
  };
  constexpr uint64_t kMost = kMaxOtherFileBytes;
  REQUIRE_OK(CheckOtherFiles({}));
  REQUIRE_OK(CheckOtherFiles({{"a", kMost, KeptBack::kNo},
                              {"b", kMost, KeptBack::kNo},
                              {"c", kMost, KeptBack::kNo},
                              {"d", kMost, KeptBack::kNo},
                              {"e", 0, KeptBack::kNo}}));
  REQUIRE(refuses({{"a", kMost + 1, KeptBack::kNo}}));
  REQUIRE(refuses({{"a", UINT64_MAX, KeptBack::kNo}}));
  REQUIRE(refuses({{"a", kMost, KeptBack::kNo},
                   {"b", kMost, KeptBack::kNo},
                   {"c", kMost, KeptBack::kNo},
                   {"d", kMost, KeptBack::kNo},
                   {"e", 1, KeptBack::kNo}}));
  REQUIRE(refuses({{"a", 1, KeptBack::kNo}, {"a", 1, KeptBack::kNo}}));
  REQUIRE(refuses({{"a", 1, KeptBack::kNo}, {"A", 1, KeptBack::kNo}}));
  REQUIRE(refuses({{"../x", 1, KeptBack::kNo}}));
  REQUIRE(refuses({{"CURRENT", 1, KeptBack::kNo}}));
  REQUIRE(refuses({{"core.1", 1, KeptBack::kNo}}));
  // These names are only displayed, so any name is allowed.
  REQUIRE_OK(CheckOtherFiles({{"../x", UINT64_MAX, KeptBack::kName},
                              {"../x", 1, KeptBack::kName}}));
}

TEST_CASE(
    "The record of copied files is read back, or refused if it is damaged",
    "[format][other_files]") {
  const CopiedFiles files = {{"a.json", {{1, 2}, false}},
                             {"b", {{3, 4}, true}}};
  std::string bytes;
  EncodeCopiedFiles(files, &bytes);
  CopiedFiles read;
  REQUIRE_OK(DecodeCopiedFiles(bytes, &read));
  REQUIRE(read == files);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    INFO(i);
    REQUIRE_FALSE(DecodeCopiedFiles(bad, &read).ok());
    REQUIRE(read.empty());
  }
  std::string names;
  EncodeCopiedFiles({{"../x", {{1, 2}, false}}}, &names);
  REQUIRE_FALSE(DecodeCopiedFiles(names, &read).ok());
  REQUIRE(read.empty());
  CopiedFiles many;
  for (uint32_t i = 0; i <= kMaxCopiedFiles; ++i) {
    many[std::string(kMaxOtherNameBytes - 5, 'n') + std::to_string(10'000 + i)];
  }
  std::string most;
  EncodeCopiedFiles(many, &most);
  REQUIRE(most.size() <= kSealedHeaderBytes + kMaxCopiedFilesBytes);
  REQUIRE_OK(DecodeCopiedFiles(most, &read));
  REQUIRE(read.size() == kMaxCopiedFiles);
}

}  // namespace
}  // namespace sstferry::other_file_test
