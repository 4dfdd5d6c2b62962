#include <unistd.h>

#include <regex>
#include <set>

#include <nlohmann/json.hpp>

#include "sstferry/options.h"
#include "tests/support/catch.h"

namespace sstferry::summary_test {
namespace {

using nlohmann::json;

const std::vector<std::string> kKeys = {"schema",
                                        "status",
                                        "exit_code",
                                        "error",
                                        "started_at",
                                        "finished_at",
                                        "versions",
                                        "mode",
                                        "source",
                                        "target",
                                        "selection",
                                        "transfer_id",
                                        "snapshot_sequence",
                                        "last_flush_seconds_before",
                                        "column_families",
                                        "parts",
                                        "chunks",
                                        "chunks_built",
                                        "chunks_resumed",
                                        "chunks_cloned",
                                        "files_cloned",
                                        "files_reused",
                                        "bytes_reused",
                                        "other_files",
                                        "other_files_bytes",
                                        "method",
                                        "method_reason",
                                        "methods",
                                        "chunks_unchecked",
                                        "sst_bytes_resumed",
                                        "entries",
                                        "key_value_bytes",
                                        "sst_bytes",
                                        "wire_bytes",
                                        "ingest_calls",
                                        "levels",
                                        "seconds",
                                        "sst_bytes_per_second",
                                        "key_value_bytes_per_second",
                                        "stage_seconds",
                                        "peak_rss_bytes",
                                        "lanes",
                                        "parts_unchanged",
                                        "parts_sent",
                                        "parts_compared",
                                        "parts_left",
                                        "bytes_skipped",
                                        "write_blocked_micros",
                                        "compaction_debt_bytes",
                                        "ingested_levels",
                                        "retries",
                                        "state",
                                        "sequence_old",
                                        "sequence_new",
                                        "outage_seconds"};

json Parse(const Summary& summary, const std::string& command) {
  const std::string text = SummaryToJson(summary, command);
  INFO(text);
  const json object = json::parse(text, nullptr, false);
  REQUIRE(object.is_object());
  return object;
}

void RequireKeys(const json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    INFO(key);
    REQUIRE(object.contains(key));
  }
}

// Adds the names of all values in `object` that are 0, an empty text or an
// empty object.
void AddEmpty(const std::string& name, const json& object,
              std::set<std::string>* empty) {
  if (object.is_object() && !object.empty()) {
    for (const auto& [key, value] : object.items()) {
      AddEmpty(name.empty() ? key : name + "." + key, value, empty);
    }
  } else if (object == 0 || object == "" || object == json::object() ||
             object == false) {
    empty->insert(name);
  }
}

}  // namespace

TEST_CASE("The summary of every command has every documented key",
          "[pipeline]") {
  for (const char* command : {"pull", "verify", "plan", "serve"}) {
    INFO(command);
    const json object = Parse(Summary(), command);
    RequireKeys(object, kKeys);
    REQUIRE(object["schema"] == 1);
    REQUIRE(object["status"] == "OK");
    REQUIRE(object["exit_code"] == 0);
    REQUIRE(object["error"].is_null());
    RequireKeys(object["versions"], {"source", "target"});
    RequireKeys(object["stage_seconds"], {"source", "target"});
    Summary known;
    known.source_stage_seconds["idle"] = known.target_stage_seconds["idle"] = 1;
    const json stages = Parse(known, command)["stage_seconds"];
    RequireKeys(stages["source"],
                {"snapshot", "plan", "read_build", "send_wait", "held_cpu",
                 "held_io", "held_latency", "idle"});
    RequireKeys(stages["target"],
                {"receive", "stage_write", "check", "ingest", "verify", "sync",
                 "swap", "delete", "idle"});
  }
}

TEST_CASE("Unknown values are null, and only counted values are 0",
          "[pipeline]") {
  const std::set<std::string> counted = {
      "exit_code",       "bytes_read",        "bytes_written",
      "chunks",          "chunks_built",      "chunks_resumed",
      "other_files",     "other_files_bytes", "entries",
      "key_value_bytes", "sst_bytes",         "sst_bytes_resumed",
      "wire_bytes",      "compressed.frames", "compressed.bytes_before",
      "ingest_calls",    "seconds",           "compressed.bytes_after",
      "retries"};
  for (const char* command :
       {"pull", "refresh", "swap", "verify", "plan", "serve"}) {
    INFO(command);
    Summary nothing;
    nothing.left.address = nothing.right.address = "/a";
    std::set<std::string> empty;
    AddEmpty("", Parse(nothing, command), &empty);
    REQUIRE(empty == counted);
  }
}

TEST_CASE("A job has null for values that only another job counts",
          "[pipeline]") {
  const std::vector<std::string> of_refresh = {
      "parts_unchanged", "parts_sent",      "parts_compared",
      "parts_left",      "parts_delta",     "entries_put",
      "entries_deleted", "bytes_skipped",   "chunks_delta",
      "sequence_new",    "parts_proven",    "parts_unproven",
      "parts_whole",     "compaction_debt_bytes"};
  const std::vector<std::string> of_clone = {
      "chunks_cloned", "chunks_unchecked", "files_cloned", "files_reused",
      "bytes_reused"};
  Summary summary;
  summary.column_families = {"default"};
  const auto require = [&](const std::vector<std::string>& keys, bool known) {
    const json object = Parse(summary, "pull");
    REQUIRE(object["snapshot_sequence"] == 0);
    for (const std::string& key : keys) {
      INFO(summary.mode << ' ' << key);
      REQUIRE(object[key].is_null() != known);
    }
  };
  summary.mode = "pull";
  summary.method = "ingest";
  require(of_refresh, false);
  require(of_clone, false);
  require({"outage_seconds", "exchanged", "verified"}, false);
  summary.mode = "refresh";
  require(of_refresh, true);
  require({"outage_seconds", "exchanged"}, false);
  summary.mode = "swap";
  summary.method = "clone";
  require(of_clone, true);
  require({"outage_seconds", "exchanged", "sequence_new"}, true);
  require({"parts_unchanged", "sequence_old"}, false);
  // a swap that ingested a delta into a linked copy
  summary.parts_unchanged = 1;
  summary.sequence_old = 7;
  require(of_refresh, true);
  require({"sequence_old"}, true);
  summary.verified = true;
  require({"verified"}, true);
}

TEST_CASE("A plan has null for unknown free space", "[pipeline]") {
  Summary summary;
  summary.needed_bytes = 8;
  REQUIRE(Parse(summary, "plan")["needed_bytes"] == 8);
  REQUIRE(Parse(summary, "plan")["free_bytes"].is_null());
  summary.target = "/t";  // whose disk is full
  REQUIRE(Parse(summary, "plan")["free_bytes"] == 0);
}

TEST_CASE("A summary has how much both methods send", "[pipeline]") {
  Summary summary;
  MethodSummary ingest;
  ingest.method = "ingest";
  ingest.why_not = "an order that is not known";
  MethodSummary clone;
  clone.method = "clone";
  clone.files = 7;
  clone.bytes = 1000;
  summary.methods = {ingest, clone};
  const json object = Parse(summary, GENERATE("plan", "pull"));
  REQUIRE(object["methods"][0]["possible"] == false);
  REQUIRE(object["methods"][0]["why_not"] == "an order that is not known");
  for (const char* key : {"files", "bytes"}) {
    REQUIRE(object["methods"][0][key].is_null());
  }
  REQUIRE(object["methods"][1] ==
          json({{"method", "clone"},
                {"possible", true},
                {"why_not", nullptr},
                {"files", 7},
                {"bytes", 1000}}));
}

TEST_CASE("Rates do not count the time to delete the replaced database",
          "[pipeline]") {
  Summary summary;
  summary.sst_bytes = 500;
  summary.key_value_bytes = 400;
  summary.seconds = 12;
  summary.target_stage_seconds = {{"delete", 10.0}};
  const json object = Parse(summary, "pull");
  REQUIRE(object["seconds"] == 12.0);
  REQUIRE(object["sst_bytes_per_second"] == 250.0);
  REQUIRE(object["key_value_bytes_per_second"] == 200.0);
}

TEST_CASE("A summary carries its values under their names", "[pipeline]") {
  Summary summary;
  summary.status = MakeStatus(EndState::kNoSpace, "staging: full");
  summary.error_where = "/t.sstferry/staging";
  summary.mode = "pull";
  summary.column_families = {"default", "\xff"};
  summary.chunks = 3;
  summary.sst_bytes = 500;
  summary.key_value_bytes = 400;
  summary.seconds = 2;
  summary.levels = {{0, 0}, {6, 3}};
  summary.ingested_levels = {{5, 2}};
  summary.source_stage_seconds = {{"plan", 0.5}};
  summary.source_versions = {"sstferry 0.1.0", "9.10.0"};
  summary.snapshot_sequence = UINT64_MAX;
  summary.selection.families = {"x"};
  summary.selection.interval.begin = std::string(1, '\0');
  const json object = Parse(summary, "pull");
  REQUIRE(object["selection"] == json({{"column_families", {"x"}},
                                       {"begin", "0x00"},
                                       {"end", nullptr}}));
  REQUIRE(object["status"] == "NO_SPACE");
  REQUIRE(object["exit_code"] == 4);
  REQUIRE(object["error"]["code"] == "NO_SPACE");
  REQUIRE(object["error"]["message"] == "staging: full");
  REQUIRE(object["error"]["next"].is_null());
  REQUIRE(object["error"]["where"] == "/t.sstferry/staging");
  REQUIRE(object["column_families"].size() == 2);
  REQUIRE(object["chunks"] == 3);
  REQUIRE(object["sst_bytes_per_second"] == 250.0);
  REQUIRE(object["key_value_bytes_per_second"] == 200.0);
  REQUIRE(object["levels"] == json({{"0", 0}, {"6", 3}}));
  REQUIRE(object["ingested_levels"] == json({{"5", 2}}));
  REQUIRE(object["stage_seconds"]["source"]["plan"] == 0.5);
  REQUIRE(object["versions"]["source"]["rocksdb"] == "9.10.0");
  REQUIRE(object["snapshot_sequence"] == UINT64_MAX);
  REQUIRE_FALSE(object.contains("entries_left"));
  REQUIRE_FALSE(object.contains("items"));
}

TEST_CASE("Exit codes of summaries follow the documented table",
          "[pipeline]") {
  const std::vector<std::pair<EndState, int>> rows = {
      {EndState::kRefused, 1},      {EndState::kIncompatible, 1},
      {EndState::kDenied, 1},       {EndState::kNoSpace, 4},
      {EndState::kCorrupt, 1},      {EndState::kSourceError, 1},
      {EndState::kInternal, 1},     {EndState::kDifferent, 3},
      {EndState::kCancelled, 4},    {EndState::kDeadline, 4},
      {EndState::kDeadPeer, 4},     {EndState::kTooSlow, 4},
      {EndState::kSnapshotGone, 4}, {EndState::kChangedSince, 3},
      {EndState::kBusy, 5}};
  REQUIRE(rows.size() == kMaxEndState);
  for (const auto& [state, exit_code] : rows) {
    Summary summary;
    summary.status = MakeStatus(state, "x");
    const json object = Parse(summary, "pull");
    REQUIRE(object["status"] == EndStateName(state));
    REQUIRE(object["exit_code"] == exit_code);
  }
}

TEST_CASE("Verify and plan add their keys, with keys of any bytes",
          "[pipeline]") {
  Summary summary;
  summary.status = MakeStatus(EndState::kDifferent, "1 difference",
                              "sstferry pull /a /b");
  summary.entries_left = 2;
  summary.entries_right = 1;
  summary.differences = 1;
  summary.first_differences = {
      {"default", std::string("\x00\xff", 2), 2000, "only left", ""}};
  summary.left = {"/a", "aa00", "id-a", 7, "", 0};
  summary.right = {"/b", "", "id-b", 8, "00ff", 0};
  json object = Parse(summary, "verify");
  for (const char* key : {"compared", "entries_left", "entries_right",
                          "files_compared", "differences"}) {
    REQUIRE(object[key].is_null());  // nothing was compared
  }
  summary.compared = "entries";
  object = Parse(summary, "verify");
  REQUIRE(object["entries_left"] == 2);
  REQUIRE(object["entries_right"] == 1);
  REQUIRE(object["differences"] == 1);
  REQUIRE(object["files_compared"].is_null());
  REQUIRE(object["left"] == json({{"address", "/a"},
                                  {"snapshot_transfer_id", "aa00"},
                                  {"database_id", "id-a"},
                                  {"snapshot_sequence", 7},
                                  {"pulled", nullptr}}));
  REQUIRE(object["right"]["pulled"] ==
          json({{"transfer_id", "00ff"}, {"snapshot_sequence", 0}}));
  REQUIRE(object["right"]["snapshot_transfer_id"].is_null());
  REQUIRE(object["error"]["message"] == "1 difference");
  REQUIRE(object["error"]["next"] == "sstferry pull /a /b");
  REQUIRE(object["first_differences"][0]["key_bytes"] == 2000);
  REQUIRE(object["exit_code"] == 3);
  REQUIRE(object["first_differences"][0]["key"] == "0x00FF");
  REQUIRE(object["first_differences"][0]["what"] == "only left");

  summary = Summary();
  summary.items = {
      {"default", std::nullopt, "k\xc3\xa9y", "12.sst", 7, "rebuild", "why"}};
  summary.served_names = {"a"};
  summary.needed_bytes = 8;
  summary.free_bytes = 9;
  summary.target = "/t";
  object = Parse(summary, "plan");
  const json& item = object["items"][0];
  RequireKeys(item, {"column_family", "begin", "end", "file", "bytes",
                     "action", "reason"});
  REQUIRE(item["begin"].is_null());
  REQUIRE(item["end"] == "k\xc3\xa9y");
  REQUIRE(item["bytes"] == 7);
  REQUIRE(object["served_names"] == json({"a"}));
  REQUIRE(object["needed_bytes"] == 8);
  REQUIRE(object["free_bytes"] == 9);
}

TEST_CASE("KeyToText keeps printable text and writes other keys as hex",
          "[pipeline]") {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"", ""},
      {"user:1", "user:1"},
      {"k\xc3\xa9y \xf0\x9f\x9a\xa2", "k\xc3\xa9y \xf0\x9f\x9a\xa2"},
      {"0x41", "0x30783431"},          // would read back as "A"
      {"a\n", "0x610A"},
      {"\x7f", "0x7F"},
      {"\xc2\x9b", "0xC29B"},          // a C1 control
      {"\xc0\x80", "0xC080"},          // overlong
      {"\xed\xa0\x80", "0xEDA080"},    // surrogate
      {"\xf4\x90\x80\x80", "0xF4908080"},
      {"\xe2\x82", "0xE282"},          // cut short
      {"\x80", "0x80"},
  };
  for (const auto& [key, text] : rows) {
    REQUIRE(KeyToText(key) == text);
  }
}

TEST_CASE("NowRfc3339 is UTC with milliseconds", "[pipeline]") {
  REQUIRE(std::regex_match(
      NowRfc3339(),
      std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")));
}

TEST_CASE("ShellWord quotes what a shell would change", "[pipeline]") {
  REQUIRE(ShellWord("s3://b/p@2026-11-24T03:00:00Z") ==
          "s3://b/p@2026-11-24T03:00:00Z");
  REQUIRE(ShellWord("/backup/[p]") == "'/backup/[p]'");
  REQUIRE(ShellWord("sst://[::1]:7420/db") == "'sst://[::1]:7420/db'");
  REQUIRE(ShellWord("a*") == "'a*'");
  REQUIRE(ShellWord("it's") == "'it'\\''s'");
  REQUIRE(ShellWord("") == "''");
}

TEST_CASE("PeakRssBytes includes memory that was used", "[pipeline]") {
  const uint64_t before = PeakRssBytes();
  REQUIRE(before > 1'000'000);
  {
    std::vector<char> block(64'000'000, 'x');
    REQUIRE(block[block.size() / 2] == 'x');
  }
  REQUIRE(PeakRssBytes() >= before);
  REQUIRE(PeakRssBytes() > 60'000'000);
}

TEST_CASE("ParseSourceAddress reads directories and URLs and prints them",
          "[pipeline]") {
  for (const std::string text :
       {"/data/db", "db", "a/b://c", "./unix:/s:db", "unix", "./db1:/x",
        "a/b:/c", "db1:x", ":/x"}) {
    SourceAddress address;
    INFO(text);
    REQUIRE_OK(ParseSourceAddress(text, &address));
    REQUIRE(address.is_directory());
    REQUIRE(address.directory == text);
    REQUIRE(address.ToString() == text);
  }
  const std::vector<std::pair<std::string, std::string>> urls = {
      {"sst://host/db", "sst://host:7420/db"},
      {"sst://host:1/A.b_c-9", "sst://host:1/A.b_c-9"},
      {"sst://host/a/b", "sst://host:7420/a/b"},
      {"unix:/run/s:a/b", "unix:/run/s:a/b"},
      {"sst://[::1]:7420/db", "sst://[::1]:7420/db"},
      {"sst://host", "sst://host:7420"},
      {"sst://host/", "sst://host:7420"},
      {"unix:/run/s", "unix:/run/s"},
      {"unix:/run/s:", "unix:/run/s"},
      {"unix:/run/s:A.b_c-9", "unix:/run/s:A.b_c-9"},
      {"db1:/data/db", "ssh://db1/data/db"},
      {"app@db1:/data/db", "ssh://app@db1/data/db"},
      {"ssh://db1/data/db", "ssh://db1/data/db"},
      {"ssh://app@db1:2222/data/d b", "ssh://app@db1:2222/data/d b"},
      {"ssh://a@b@db1/x", "ssh://a@b@db1/x"},
      {"[::1]:/x", "ssh://[::1]/x"},
      {"ssh://[fe80::1]:22/x", "ssh://[fe80::1]:22/x"},
  };
  for (const auto& [text, printed] : urls) {
    SourceAddress address;
    INFO(text);
    REQUIRE_OK(ParseSourceAddress(text, &address));
    REQUIRE_FALSE(address.is_directory());
    REQUIRE(address.ToString() == printed);
  }
  for (const std::string text :
       {"", "sst://", "sst:///db", "sst://host/a//b", "sst://host/a/../b",
        "sst://host/a b", "sst://host:0/db", "sst://host:65536/db",
        "sst://host:x/db", "sst://::1/db", "http://host/db", "unix:",
        "unix:s:db", "unix:7420", "unix:/s/:db", "unix:/s:a/../b",
        "unix:/s:a:b", "sst://unix:/s:db", "unix:/s:a,unix:/s:b", "sst:/x",
        "ssh:/x", "ssh://db1", "ssh://db1/", "ssh://@db1/x", "ssh://db1:0/x",
        "ssh://db1:65536/x", "ssh:///x", "-oProxyCommand=x:/y",
        "ssh://-lroot/x", "-l@db1:/x", "a b@db1:/x", "a;b@db1:/x", "db1:/x\ny",
        "ssh://db1/\x1b[31m"}) {
    SourceAddress address;
    INFO(text);
    REQUIRE(ParseSourceAddress(text, &address).IsInvalidArgument());
  }
}

TEST_CASE("ParseSourceAddress reads archives and the sets that they are asked "
          "for",
          "[pipeline]") {
  SourceAddress address;
  for (const std::string text :
       {"s3://bucket", "s3://bucket/a/b", "s3://bucket/a@latest",
        "s3://bucket@2026-11-24T03:00:00Z", "s3://bucket/a@b@c/d"}) {
    INFO(text);
    REQUIRE_OK(ParseSourceAddress(text, &address));
    REQUIRE(address.is_archive());
    REQUIRE_FALSE(address.is_directory());
    REQUIRE(address.ToString() == text);
  }
  REQUIRE(address.archive->bucket == "bucket");
  REQUIRE(address.archive->prefix == "a");
  REQUIRE(address.set == "b@c/d");
  REQUIRE_OK(ParseSourceAddress("file:///backup/orders@one", &address));
  REQUIRE(address.archive->directory == "/backup/orders");
  REQUIRE(address.set == "one");
  for (const std::string text :
       {"s3://", "s3://bucket@", "s3:///a", "s3://a b", "s3://bucket/../a",
        "file://backup", "file:///backup@", "s3:/bucket"}) {
    INFO(text);
    const bool is_directory =
        ParseSourceAddress(text, &address).ok() && address.is_directory();
    REQUIRE_FALSE(address.is_archive());
    REQUIRE_FALSE(is_directory);
  }
}

TEST_CASE("ParseSourceAddress refuses a list of addresses", "[pipeline]") {
  SourceAddress address;
  for (const std::string text :
       {"sst://a/x,sst://b/y", "/data/a,sst://a/x", "sst://a/x,sst://a/x",
        ",sst://a/x"}) {
    INFO(text);
    const rocksdb::Status status = ParseSourceAddress(text, &address);
    REQUIRE(status.IsInvalidArgument());
    REQUIRE(status.ToString().find("expected one address, found several") !=
            std::string::npos);
  }
  for (const std::string text : {"sst://a/x,/data/a", "sst://a/x,"}) {
    INFO(text);
    REQUIRE(ParseSourceAddress(text, &address).IsInvalidArgument());
  }
  // The name of a directory may contain a comma.
  REQUIRE_OK(ParseSourceAddress("/data/a,b", &address));
  REQUIRE(address.directory == "/data/a,b");
}

TEST_CASE("A database name has a limited alphabet and length", "[pipeline]") {
  REQUIRE(IsValidDatabaseName("a"));
  REQUIRE(IsValidDatabaseName("A-z.0_9"));
  REQUIRE(IsValidDatabaseName(std::string(240, 'x')));
  REQUIRE(IsValidDatabaseName("1/2/3/4/5/6/7/8"));
  for (const std::string& name :
       {std::string(), std::string(241, 'x'), std::string("a b"),
        std::string("a//b"), std::string("a/.."), std::string("/a"),
        std::string("1/2/3/4/5/6/7/8/9"), std::string("\xc3\xa9"),
        std::string("a\0b", 3)}) {
    REQUIRE_FALSE(IsValidDatabaseName(name));
  }
}

}  // namespace sstferry::summary_test
