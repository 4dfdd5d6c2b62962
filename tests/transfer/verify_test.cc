// Tests a verify of a source that is still written to, and of a replica that
// was pulled from it.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/named_comparator.h"
#include "tests/support/test_db.h"
#include "tools/sstferry/operation_runner.h"

namespace sstferry::test::verify_test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kEntries = 2000;

SourceAddress Directory(const std::string& path) {
  SourceAddress address;
  address.directory = path;
  return address;
}

VerifyOptions Between(const std::string& left, const std::string& right) {
  VerifyOptions options;
  REQUIRE_OK(ParseSourceAddress(left, &options.left));
  options.right = Directory(right);
  options.lanes = 2;
  return options;
}

Summary Verify(const VerifyOptions& options) {
  Summary summary;
  const rocksdb::Status status = MakeVerify(options)->Run(&summary);
  REQUIRE(status.ToString() == summary.status.ToString());
  INFO(status.ToString());
  return summary;
}

bool Says(const Summary& summary, const std::string& text) {
  return summary.status.ToString().find(text) != std::string::npos;
}

void RequireEnd(const Summary& summary, EndState state,
                const std::string& text = "") {
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == state);
  REQUIRE(Says(summary, text));
}

void Fill(OpenDb* db, const std::string& family = "default") {
  for (uint64_t i = 0; i < kEntries; ++i) {
    db->Put(NumberedKey(i), RandomBytes(100, i), family);
  }
  db->Flush();
}

Families DefaultAnd(const std::string& name) {
  Families families = OneFamily(Quiet());
  families.emplace_back(name, Quiet());
  return families;
}

void PullTo(const std::string& source, const std::string& target,
            PullOptions options = {}) {
  const Ferried ferried = Ferry(source, target, std::move(options));
  INFO(ferried.message());
  REQUIRE_OK(ferried.status);
}

// Puts new values to the first keys until it is destroyed. Pauses between
// writes, because each verify reads the whole WAL.
class Writer {
 public:
  explicit Writer(OpenDb* db) {
    db->Put(NumberedKey(0), "the first new value");
    thread_ = std::thread([this, db, stop = stop_.get_future()] {
      const std::chrono::milliseconds between(1);
      for (uint64_t i = 1;
           stop.wait_for(between) == std::future_status::timeout; ++i) {
        written_ = i;
        MustWork((*db)->Put(rocksdb::WriteOptions(), NumberedKey(i % 100),
                            std::to_string(i)));
      }
    });
  }
  ~Writer() {
    stop_.set_value();
    thread_.join();
  }
  uint64_t written() const { return written_; }

 private:
  std::promise<void> stop_;
  std::atomic<uint64_t> written_{0};
  std::thread thread_;
};

}  // namespace

TEST_CASE("A verify during writes reports CHANGED_SINCE, and the next command",
          "[transfer][verify]") {
  const ScratchDir dir;
  { OpenDb db(dir / "source", OneFamily(Quiet())); Fill(&db); }
  PullTo(dir / "source", dir / "copy");
  OpenDb db(dir / "source", OneFamily(Quiet()));
  ServeOptions serve;
  serve.databases = {{"db", dir / "source", nullptr, {}}};
  TestServer server(serve);
  const std::string left =
      GENERATE(true, false) ? server.url("db") : dir / "source";
  RequireEnd(Verify(Between(left, dir / "copy")), EndState::kOk);
  const uint64_t pulled = db->GetLatestSequenceNumber();

  Writer writer(&db);
  for (int round = 0; round < 3; ++round) {
    const uint64_t before = writer.written();
    const Summary summary = Verify(Between(left, dir / "copy"));
    RequireEnd(summary, EndState::kChangedSince,
               "right was pulled from left at sequence " +
                   std::to_string(pulled) + ", and left is at sequence " +
                   std::to_string(summary.left.snapshot_sequence));
    REQUIRE(summary.left.snapshot_sequence > pulled);
    REQUIRE(summary.right.pulled_sequence == pulled);
    REQUIRE(summary.right.pulled_transfer_id.size() == 32);
    REQUIRE(summary.left.pulled_transfer_id.empty());
    REQUIRE(summary.left.database_id == summary.source_database_id);
    REQUIRE(NextOf(summary.status).find("sstferry refresh ") !=
            std::string::npos);
    REQUIRE(summary.differences >= 1);
    REQUIRE(summary.differences <= 100);
    REQUIRE(summary.first_differences[0].key == NumberedKey(0));
    // The writer did continue during the verify.
    while (writer.written() == before) {
      std::this_thread::yield();
    }
  }
  // Changes of the source elsewhere are no difference in this interval.
  VerifyOptions rest = Between(left, dir / "copy");
  rest.selection.interval.begin = NumberedKey(100);
  RequireEnd(Verify(rest), EndState::kOk);
}

TEST_CASE("A flipped value is DIFFERENT if the record is gone, or if the "
          "source did not change",
          "[transfer][verify]") {
  const ScratchDir dir;
  { OpenDb db(dir / "source", OneFamily(Quiet())); Fill(&db); }
  PullTo(dir / "source", dir / "copy");
  { OpenDb db(dir / "copy", OneFamily(Quiet())); db.Put(NumberedKey(7), "no"); }
  const VerifyOptions options = Between(dir / "source", dir / "copy");
  Summary summary = Verify(options);
  RequireEnd(summary, EndState::kDifferent, "left is still at that sequence");
  REQUIRE(ExitCodeOf(EndStateOf(summary.status)) == 3);
  REQUIRE(Says(summary, "1 difference in 2000 left and 2000 right entries"));
  REQUIRE(summary.first_differences[0].key == NumberedKey(7));
  REQUIRE(summary.first_differences[0].what == "value differs");

  { OpenDb db(dir / "source", OneFamily(Quiet())); db.Put("new", "value"); }
  RequireEnd(Verify(options), EndState::kChangedSince);
  fs::remove(dir / "copy/last_transfer.json");
  summary = Verify(options);
  RequireEnd(summary, EndState::kDifferent, "neither side has a record");
  REQUIRE(summary.differences == 2);
  REQUIRE(summary.right.pulled_transfer_id.empty());
}

TEST_CASE("A source that was restored to an older state is DIFFERENT",
          "[transfer][verify]") {
  const ScratchDir dir;
  { OpenDb db(dir / "source", OneFamily(Quiet())); Fill(&db); }
  fs::copy(dir / "source", dir / "older");
  { OpenDb db(dir / "source", OneFamily(Quiet())); db.Put("new", "value"); }
  PullTo(dir / "source", dir / "copy");
  const Summary summary = Verify(Between(dir / "older", dir / "copy"));
  RequireEnd(summary, EndState::kDifferent,
             "an older state was restored there");
  // The copy may be the only one that has the newer state.
  REQUIRE(NextOf(summary.status).empty());
  REQUIRE_FALSE(fs::exists(dir / "copy/sstferry.health"));
}

TEST_CASE("Families on one side only are reported as differences by their "
          "names",
          "[transfer][verify]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", DefaultAnd("more"));
    Fill(&db);
    Fill(&db, "more");
  }
  PullTo(dir / "source", dir / "copy");
  PullOptions named;
  named.selection.families = {"default"};
  PullTo(dir / "source", dir / "part", named);
  {
    OpenDb db(dir / "source", DefaultAnd("more"));
    db.Put("new", "value");
  }
  // The pull left the family out, so it is no change at the source.
  Summary summary = Verify(Between(dir / "source", dir / "part"));
  RequireEnd(summary, EndState::kDifferent, "and only with --cf default");
  REQUIRE(summary.first_differences[0].column_family == "more");
  REQUIRE(summary.first_differences[0].what == "column family only left");
  REQUIRE(summary.first_differences[1].key == "new");
  REQUIRE(NextOf(summary.status) == "sstferry verify " + (dir / "source") +
                                        " " + (dir / "part") +
                                        " --cf default");
  VerifyOptions part = Between(dir / "source", dir / "part");
  part.selection.families = {"default"};
  RequireEnd(Verify(part), EndState::kChangedSince);
  // Now the copy loses the family.
  {
    OpenDb db(dir / "copy", DefaultAnd("more"));
    REQUIRE_OK(db->DropColumnFamily(db.cf("more")));
  }
  RequireEnd(Verify(Between(dir / "source", dir / "copy")),
             EndState::kDifferent, "explains column family 'more'");
  summary = Verify(Between(dir / "copy", dir / "source"));
  RequireEnd(summary, EndState::kDifferent, "explains column family 'more'");
  REQUIRE(summary.first_differences[0].what == "column family only right");
  // A family that is requested by name but missing is refused.
  part.right = Directory(dir / "copy");
  part.selection.families = {"more"};
  RequireEnd(Verify(part), EndState::kRefused, "more");
}

TEST_CASE("A verify counts all differences and shows the first ones",
          "[transfer][verify]") {
  const ScratchDir dir;
  const Families two = DefaultAnd("more");
  for (const char* name : {"left", "right"}) {
    OpenDb db(dir / name, two);
    Fill(&db);
    Fill(&db, "more");
    db.Compact();
    if (*name == 'r') {
      for (uint64_t i = 50; i < kEntries; i += 50) {
        db.Delete(NumberedKey(i));
        db.Put(NumberedKey(i), "other", "more");
      }
    }
  }
  constexpr uint64_t kDifferences = 2 * (kEntries / 50 - 1);
  VerifyOptions options = Between(dir / "left", dir / "right");
  options.lanes = 4;
  for (const uint32_t show : {0u, 1u, 5u, 60u, 1000u}) {
    INFO(show);
    options.max_differences_shown = show;
    const Summary summary = Verify(options);
    RequireEnd(summary, EndState::kDifferent, "78 differences in 4000 left");
    REQUIRE(summary.differences == kDifferences);
    REQUIRE(summary.first_differences.size() ==
            std::min<uint64_t>(show, kDifferences));
    for (size_t i = 0; i < summary.first_differences.size(); ++i) {
      const DifferenceSummary& shown = summary.first_differences[i];
      const bool first = i < kDifferences / 2;
      const size_t nth = first ? i : i - kDifferences / 2;
      REQUIRE(shown.key == NumberedKey(50 * (nth + 1)));
      REQUIRE(shown.column_family == (first ? "default" : "more"));
      REQUIRE(shown.what == (first ? "only left" : "value differs"));
    }
  }
}

TEST_CASE("A verify that cannot reach one side does not wait for the other",
          "[transfer][verify]") {
  const ScratchDir dir;
  for (const char* const name : {"gone", "busy"}) {
    OpenDb db(dir / name, OneFamily(Quiet()));
    Fill(&db);
  }
  TestServer gone(ServeSample(dir / "gone"));
  ServeOptions serve = ServeSample(dir / "busy");
  serve.max_transfers = 1;
  TestServer busy(serve);
  gone.Stop();
  Opened opened;
  std::unique_ptr<Channel> control;
  REQUIRE_OK(OpenSample(busy.address(), &opened, &control));
  VerifyOptions options;
  REQUIRE_OK(ParseSourceAddress(gone.url("db"), &options.left));
  REQUIRE_OK(ParseSourceAddress(busy.url("db"), &options.right));
  if (GENERATE(false, true)) std::swap(options.left, options.right);
  const std::unique_ptr<Operation> verify = MakeVerify(options);
  Summary summary;
  std::future<rocksdb::Status> runs = std::async(
      std::launch::async, [&] { return verify->Run(&summary); });
  const bool has_ended =
      runs.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  verify->Cancel();
  runs.wait();
  REQUIRE(has_ended);
  RequireEnd(summary, EndState::kDeadPeer);
}

TEST_CASE("Keys that are equal only in the family's order are differences",
          "[transfer][verify]") {
  static const CaselessComparator order;
  rocksdb::ColumnFamilyOptions caseless = Quiet();
  caseless.comparator = &order;
  const ScratchDir dir;
  { OpenDb db(dir / "left", OneFamily(caseless)); db.Put("Name", "value"); }
  { OpenDb db(dir / "right", OneFamily(caseless)); db.Put("NAME", "value"); }
  VerifyOptions options = Between(dir / "left", dir / "right");
  options.registry.comparators = {&order};
  const Summary summary = Verify(options);
  RequireEnd(summary, EndState::kDifferent);
  REQUIRE(summary.differences == 2);
  REQUIRE(summary.first_differences[0].key == "Name");
  REQUIRE(summary.first_differences[0].what == "only left");
  REQUIRE(summary.first_differences[1].key == "NAME");
  REQUIRE(summary.first_differences[1].what == "only right");
}

TEST_CASE("Huge keys are shown truncated, with their lengths",
          "[transfer][verify]") {
  const ScratchDir dir;
  const std::string huge(200'000, 'h');
  { OpenDb db(dir / "left", OneFamily(Quiet())); db.Put(huge, "v"); }
  { OpenDb db(dir / "right", OneFamily(Quiet())); db.Put(huge + "x", "v"); }
  const Summary summary = Verify(Between(dir / "left", dir / "right"));
  RequireEnd(summary, EndState::kDifferent);
  REQUIRE(summary.first_differences.size() == 2);
  for (const DifferenceSummary& shown : summary.first_differences) {
    REQUIRE(shown.key == huge.substr(0, kMaxShownKeyBytes));
  }
  REQUIRE(summary.first_differences[0].key_bytes == 200'000);
  REQUIRE(summary.first_differences[1].key_bytes == 200'001);
  REQUIRE(summary.status.ToString().size() < 500);
  REQUIRE(VerifyReport(summary).size() < 2000);
  REQUIRE(SummaryToJson(summary, "verify").size() < 8000);
}

}  // namespace sstferry::test::verify_test
