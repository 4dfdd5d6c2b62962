// Tests that --method auto does what docs/methods.md says (tests/docs has its
// rows), and what a plan says about it.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "rocksdb/comparator.h"
#include "rocksdb/convenience.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/transaction_db.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/compacted.h"
#include "tests/support/edited_options.h"
#include "tests/support/named_comparator.h"
#include "tests/support/refreshed.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test::method_test {
namespace {

namespace fs = std::filesystem;

// A key that is too long for chunks, which the source finds only when it builds
// its chunk.
const std::string kLongKey(300u << 10, 'z');

void FillPlain(const std::string& path, int entries = 500) {
  OpenDb db(path, OneFamily(Quiet()));
  for (int i = 0; i < entries; ++i) db.Put(NumberedKey(i), RandomBytes(80, i));
  db.Flush();
}

void AddLongKey(const std::string& path) {
  OpenDb db(path, OneFamily(Quiet()));
  db.Put(kLongKey, "value");
  db.Flush();
}

const NamedComparator& OddOrder() {
  static const NamedComparator order("an application's own order");
  return order;
}

Families OddFamilies() {
  Families families = OneFamily(Quiet());
  families[0].options.comparator = &OddOrder();
  return families;
}

void FillOdd(const std::string& path, int entries = 300) {
  OpenDb db(path, OddFamilies());
  for (int i = 0; i < entries; ++i) db.Put(NumberedKey(i), RandomBytes(80, i));
  db.Flush();
  db.Put("more", "in the WAL");
}

constexpr char kWholeDatabase[] =
    "auto: the files of a whole database are sent as they are";

void RequireCloned(const Ferried& moved) {
  INFO(moved.message());
  INFO(moved.summary.method_reason);
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.method == "clone");
  REQUIRE(moved.summary.files_cloned > 0);
  REQUIRE(moved.summary.method_reason == kWholeDatabase);
}

std::unique_ptr<rocksdb::TransactionDB> OpenTransactions(
    const std::string& path, rocksdb::TxnDBWritePolicy policy) {
  rocksdb::Options options{rocksdb::DBOptions(), Quiet()};
  options.create_if_missing = true;
  // RocksDB's statistics thread would write into LOG, but the test requires an
  // unchanged source.
  options.stats_persist_period_sec = 0;
  options.stats_dump_period_sec = 0;
  rocksdb::TransactionDBOptions kind;
  kind.write_policy = policy;
  rocksdb::TransactionDB* db = nullptr;
  REQUIRE_OK(rocksdb::TransactionDB::Open(options, kind, path, &db));
  return std::unique_ptr<rocksdb::TransactionDB>(db);
}

// Makes a prepared transaction, and another write after it.
std::unique_ptr<rocksdb::Transaction> Prepare(rocksdb::TransactionDB* db) {
  REQUIRE_OK(db->Put({}, "before", "1"));
  std::unique_ptr<rocksdb::Transaction> prepared(db->BeginTransaction({}));
  REQUIRE_OK(prepared->SetName("transfer of money"));
  REQUIRE_OK(prepared->Put("prepared", "2"));
  REQUIRE_OK(prepared->Prepare());
  REQUIRE_OK(db->Put({}, "after", "3"));
  REQUIRE_OK(db->FlushWAL(true));
  return prepared;
}

PullOptions From(const ScratchDir& dir) {
  PullOptions options;
  options.source.directory = dir / "source";
  options.target_dir = dir / "target";
  return options;
}

}  // namespace

TEST_CASE("Auto sends the files of a whole database, and a plan says so in the "
          "same words",
          "[transfer][method][plan]") {
  const ScratchDir dir;
  FillPlain(dir / "source");
  const Summary plan = PlanOf(dir / "source");
  REQUIRE(plan.method == "clone");
  REQUIRE(plan.method_reason == kWholeDatabase);
  const Via via = GENERATE(Via::kDirectory, Via::kTcp);
  RequireCloned(FerryByRule(dir / "source", dir / "target", {}, via));
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("Auto sends chunks if the source says that its files cannot be "
          "cloned",
          "[transfer][method]") {
  const ScratchDir dir;
  FillPlain(dir / "source");
  fs::create_directory(dir / "source" + "/titandb");
  const Via via = GENERATE(Via::kDirectory, Via::kTcp);
  const Ferried moved =
      FerryByRule(dir / "source", dir / "target", {}, via);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.method == "ingest");
  INFO(moved.summary.method_reason);
  REQUIRE(moved.summary.method_reason.starts_with("auto: a clone is refused: "));
  REQUIRE(moved.summary.method_reason.find("titandb") != std::string::npos);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("Auto sends chunks of a part, whatever a clone of the whole would "
          "cost",
          "[transfer][method]") {
  const ScratchDir dir;
  FillPlain(dir / "source");
  PullOptions options;
  options.selection.interval.begin = NumberedKey(0);
  const Ferried moved =
      FerryByRule(dir / "source", dir / "target", options, Via::kTcp);
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.method == "ingest");
  REQUIRE(moved.summary.method_reason.find("--begin") != std::string::npos);
  REQUIRE(moved.summary.methods.empty());
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A plan lists every file", "[transfer][method][plan]") {
  const ScratchDir dir;
  const Families families = OneFamily(SmallFiles());
  std::set<std::string> names;
  {
    OpenDb db(dir / "source", families);
    FillCompacted(&db, 0, 2000);
    for (uint64_t i = 1000; i < 3000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(200, i));
    }
    db.Flush();
    std::vector<rocksdb::LiveFileMetaData> live;
    db->GetLiveFilesMetaData(&live);
    for (const auto& file : live) names.insert(file.relative_filename);
  }
  const Summary plan = PlanOf(dir / "source", AsChunks({}));
  std::set<std::string> planned;
  for (const PlanItemSummary& item : plan.items) {
    REQUIRE(item.action == "rebuild");
    planned.insert(item.file);
  }
  REQUIRE(planned == names);
  REQUIRE(names.size() > 5);
}

TEST_CASE("Auto clones a database with a comparator that is unknown here",
          "[transfer][method]") {
  const ScratchDir dir;
  FillOdd(dir / "source");
  const Via via = GENERATE(Via::kDirectory, Via::kTcp);
  RequireCloned(FerryByRule(dir / "source", dir / "target", {}, via));
  REQUIRE(EntriesOf(dir / "target", OddFamilies()) ==
          EntriesOf(dir / "source", OddFamilies()));
  REQUIRE(EntriesOf(dir / "target", OddFamilies()).size() == 301);
}

TEST_CASE("Auto clones user-defined timestamps", "[transfer][method]") {
  const ScratchDir dir;
  Families families = OneFamily(Quiet());
  const rocksdb::Comparator* stamped = nullptr;
  REQUIRE_OK(rocksdb::Comparator::CreateFromString(
      rocksdb::ConfigOptions(), "leveldb.BytewiseComparator.u64ts", &stamped));
  families[0].options.comparator = stamped;
  const std::string at_one(8, '\1');
  const std::string at_two(8, '\2');
  {
    OpenDb db(dir / "source", families);
    REQUIRE_OK(db->Put({}, db.cf(), "key", at_one, "old"));
    db.Flush();
    REQUIRE_OK(db->Put({}, db.cf(), "key", at_two, "new"));
  }
  RequireCloned(FerryByRule(dir / "source", dir / "target"));
  OpenDb db(dir / "target", families);
  for (const auto& [stamp, expected] :
       {std::pair(at_one, "old"), std::pair(at_two, "new")}) {
    rocksdb::ReadOptions read;
    const rocksdb::Slice slice(stamp);
    read.timestamp = &slice;
    std::string value;
    REQUIRE_OK(db->Get(read, db.cf(), "key", &value));
    REQUIRE(value == expected);
  }
}

TEST_CASE("Auto clones merge operands of an operator that is unknown here",
          "[transfer][method]") {
  class Joined : public rocksdb::AssociativeMergeOperator {
   public:
    const char* Name() const override { return "sstferry.test.Joined"; }
    bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing,
               const rocksdb::Slice& operand, std::string* result,
               rocksdb::Logger*) const override {
      *result = (existing != nullptr ? existing->ToString() : "") +
                operand.ToString();
      return true;
    }
  };
  const ScratchDir dir;
  Families families = OneFamily(Quiet());
  families[0].options.merge_operator = std::make_shared<Joined>();
  rocksdb::DBOptions db_options;
  db_options.avoid_flush_during_shutdown = true;
  const bool in_wal = GENERATE(false, true);
  CAPTURE(in_wal);
  {
    OpenDb db(dir / "source", families, db_options);
    db.Put("key", "a");
    db.Flush();
    db.Merge("key", "b");
    if (!in_wal) db.Flush();
  }
  RequireCloned(FerryByRule(dir / "source", dir / "target"));
  REQUIRE(EntriesOf(dir / "target", families)[0].second == "ab");
}

TEST_CASE("Auto clones cuckoo tables", "[transfer][method]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.table_factory.reset(rocksdb::NewCuckooTableFactory());
  rocksdb::DBOptions mapped;
  mapped.allow_mmap_reads = true;
  const Families families = OneFamily(options);
  {
    OpenDb db(dir / "source", families, mapped);
    for (int i = 0; i < 500; ++i) db.Put(NumberedKey(i), "value");
    db.Flush();
  }
  RequireCloned(FerryByRule(dir / "source", dir / "target"));
  OpenDb db(dir / "target", families, mapped);
  for (int i = 0; i < 500; i += 7) {
    std::string value;
    REQUIRE_OK(db->Get({}, NumberedKey(i), &value));
    REQUIRE(value == "value");
  }
}

TEST_CASE("Auto clones a database with prepared transactions",
          "[transfer][method]") {
  const ScratchDir dir;
  const auto policy =
      GENERATE(rocksdb::WRITE_COMMITTED, rocksdb::WRITE_PREPARED,
               rocksdb::WRITE_UNPREPARED);
  const auto source = OpenTransactions(dir / "source", policy);
  const auto prepared = Prepare(source.get());
  PullOptions options;
  options.verify = GENERATE(false, true);
  const Ferried moved = FerryByRule(dir / "source", dir / "target", options);
  RequireCloned(moved);
  REQUIRE(moved.summary.verified == options.verify);
  const auto clone = OpenTransactions(dir / "target", policy);
  std::string value;
  REQUIRE_OK(clone->Get({}, "after", &value));
  std::unique_ptr<rocksdb::Transaction> there(
      clone->GetTransactionByName("transfer of money"));
  REQUIRE(there != nullptr);
  REQUIRE_OK(there->Commit());
  REQUIRE_OK(clone->Get({}, "prepared", &value));
  REQUIRE_OK(prepared->Rollback());
}

TEST_CASE("Prepared transactions are left out with a note if auto cannot clone",
          "[transfer][method]") {
  const ScratchDir dir;
  const auto source =
      OpenTransactions(dir / "source", rocksdb::WRITE_COMMITTED);
  const auto prepared = Prepare(source.get());
  PullOptions options;
  SECTION("because chunks were requested") {
    options.method = PullMethod::kIngest;
  }
  SECTION("because a part was requested") {
    options.selection.interval.begin = "a";
  }
  SECTION("because a clone is refused") {
    fs::create_directory(dir / "source" + "/blob_dir");
  }
  const Ferried moved = FerryByRule(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.method == "ingest");
  REQUIRE(moved.summary.entries == 2);
  REQUIRE(moved.notes_mention("1 prepared transactions"));
  REQUIRE_OK(prepared->Rollback());
}

TEST_CASE("A database that chunks cannot represent is refused, with the method "
          "that can transfer it",
          "[transfer][method][refused]") {
  const ScratchDir dir;
  FillOdd(dir / "source");
  PullOptions options;
  SECTION("chunks were requested") {
    options.method = PullMethod::kIngest;
  }
  SECTION("some keys were requested") {
    options.selection.interval.end = "k";
  }
  SECTION("a clone is refused, too") {
    fs::create_directory(dir / "source" + "/titandb");
  }
  const Ferried moved = FerryByRule(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(moved.message().find("an application's own order") !=
          std::string::npos);
  REQUIRE(moved.message().find("with --method clone") != std::string::npos);
}

TEST_CASE("A database that a stacked BlobDB wrote is not cloned",
          "[transfer][method][refused]") {
  const ScratchDir dir;
  FillPlain(dir / "source");
  EditOptions(dir / "source", "  compaction_filter_factory=nullptr\n",
              "  compaction_filter_factory=BlobIndexCompactionFilterFactory\n");
  PullOptions options;
  options.method = PullMethod::kClone;
  const Ferried refused = Ferry(dir / "source", dir / "refused", options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("a stacked BlobDB") != std::string::npos);
  // Chunks are possible, because no value of this database is in another file.
  const Ferried moved = FerryByRule(dir / "source", dir / "target");
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.method == "ingest");
}

TEST_CASE("Auto does not send chunks of a source that is damaged",
          "[transfer][method][corruption]") {
  const ScratchDir dir;
  FillPlain(dir / "source", 3000);
  const std::string table = PathsWith(dir / "source", ".sst").front();
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.Put("another", "table");
    db.Flush();
  }
  EndState expected = EndState::kCorrupt;
  SECTION("a block is damaged") {
    std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5000);
    file.write("damage", 6);
    REQUIRE(file.good());
  }
  SECTION("a table is missing") {
    fs::remove(table);
    expected = EndState::kSourceError;
  }
  const Ferried moved = FerryByRule(dir / "source", dir / "target");
  INFO(moved.message());
  REQUIRE(moved.state() == expected);
  REQUIRE(moved.summary.method == "clone");
}

TEST_CASE("No reader of a source passes over damage at the begin of a table",
          "[transfer][corruption]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const std::string target = dir / "target";
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.target_file_size_base = 32u << 10;
  options.compression = rocksdb::kNoCompression;
  const bool deletes = GENERATE(false, true);
  {
    OpenDb db(source, OneFamily(options));
    for (int i = 0; i < 3000; ++i) db.Put(NumberedKey(i), RandomBytes(80, i));
    db.Flush();
    db.Compact();
    if (deletes) {
      db.DeleteRange(NumberedKey(100), NumberedKey(110));
      db.Flush();
    }
  }
  PullOptions chunks;
  chunks.method = PullMethod::kIngest;
  REQUIRE_OK(Ferry(source, target, chunks).status);
  const auto all = EntriesOf(target, OneFamily(options));
  REQUIRE(all.size() == (deletes ? 2990 : 3000));
  std::vector<std::string> tables = PathsWith(source, ".sst");
  std::sort(tables.begin(), tables.end());
  REQUIRE(tables.size() > 4);
  {
    std::fstream file(tables[2],
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20);
    file.write("damage", 6);
    REQUIRE(file.good());
  }
  rocksdb::Status status;
  SECTION("a pull") { status = Ferry(source, dir / "another", chunks).status; }
  SECTION("a refresh") { status = Refresh(source, target, chunks).status; }
  SECTION("a verify") {
    VerifyOptions verify;
    verify.left.directory = source;
    verify.right.directory = target;
    Summary summary;
    status = MakeVerify(verify)->Run(&summary);
  }
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(status.ToString().find(tables[2].substr(tables[2].rfind('/') + 1)) !=
          std::string::npos);
  REQUIRE(EntriesOf(target, OneFamily(options)) == all);
}

TEST_CASE("If chunks are found impossible late, the pull ends and names the "
          "other method",
          "[transfer][method]") {
  const ScratchDir dir;
  FillPlain(dir / "source", 4000);
  AddLongKey(dir / "source");
  PullOptions options;
  options.chunk_bytes = 64 << 10;
  options.method = PullMethod::kIngest;
  const Via via = GENERATE(Via::kDirectory, Via::kTcp);
  const Ferried moved = Ferry(dir / "source", dir / "target", options, via);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(moved.message().find("262144 key") != std::string::npos);
  REQUIRE(moved.message().find("with --method clone") != std::string::npos);
  RequireCloned(FerryByRule(dir / "source", dir / "clone", {}, via));
  ExpectSameEntries(dir / "source", dir / "clone");
}

TEST_CASE("Auto clones for a swap", "[transfer][method]") {
  const ScratchDir dir;
  FillOdd(dir / "source");
  RequireCloned(FerryByRule(dir / "source", dir / "target"));
  PullOptions options = From(dir);
  options.mode = PullMode::kSwap;
  Summary summary;
  REQUIRE_OK(MakePull(options)->Run(&summary));
  REQUIRE(summary.method == "clone");
  REQUIRE(EntriesOf(dir / "target", OddFamilies()).size() == 301);
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
}

TEST_CASE("A replica keeps its kind at a swap by auto, and a plan says so",
          "[transfer][method][plan]") {
  const bool is_clone = GENERATE(false, true);
  const ScratchDir dir;
  FillPlain(dir / "source");
  PullOptions seed;
  seed.method = is_clone ? PullMethod::kClone : PullMethod::kIngest;
  REQUIRE_OK(Ferry(dir / "source", dir / "target", seed).status);
  OpenDb(dir / "source", OneFamily(Quiet())).Put("a new", "key");
  PullOptions options = From(dir);
  options.mode = PullMode::kSwap;
  Summary planned;
  REQUIRE_OK(MakePlan(options)->Run(&planned));
  REQUIRE(planned.method == (is_clone ? "clone" : "ingest"));
  Summary swapped;
  REQUIRE_OK(MakePull(options)->Run(&swapped));
  REQUIRE(swapped.method == planned.method);
  REQUIRE(swapped.method_reason == planned.method_reason);
  REQUIRE((swapped.method_reason == kWholeDatabase) == is_clone);
  REQUIRE(swapped.files_reused > 0);
  ExpectSameEntries(dir / "source", dir / "target");
  // A replica changes its kind if another method is requested.
  OpenDb(dir / "source", OneFamily(Quiet())).Put("another", "key");
  options.method = is_clone ? PullMethod::kIngest : PullMethod::kClone;
  REQUIRE_OK(MakePull(options)->Run(&swapped));
  REQUIRE(swapped.method == (is_clone ? "ingest" : "clone"));
}

TEST_CASE("A refresh of chunks with auto is never a clone",
          "[transfer][method][refresh]") {
  const ScratchDir dir;
  FillPlain(dir / "source");
  REQUIRE_OK(Ferry(dir / "source", dir / "target").status);
  AddLongKey(dir / "source");
  PullOptions options = From(dir);
  options.mode = PullMode::kRefresh;
  Summary summary;
  const rocksdb::Status status = MakePull(options)->Run(&summary);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(summary.method == "ingest");
  REQUIRE(status.ToString().find("swap the whole database with --method "
                                 "clone") != std::string::npos);
}

namespace {

// Cancels the pull once it has received `after` bytes.
rocksdb::Status PullAndStop(PullOptions options, uint64_t after,
                            Summary* summary) {
  options.max_rate_bytes_per_sec = 500'000;
  const std::unique_ptr<Operation> pull = MakePull(options);
  std::atomic<bool> ended{false};
  std::thread stop([&] {
    while (!ended && pull->progress().done_bytes < after) {
      std::this_thread::yield();
    }
    pull->Cancel();
  });
  const rocksdb::Status status = pull->Run(summary);
  ended = true;
  stop.join();
  return status;
}

}  // namespace

TEST_CASE("A pull that was begun as a clone is resumed as a clone",
          "[transfer][method]") {
  const ScratchDir dir;
  PullOptions options = From(dir);
  options.chunk_bytes = 64 << 10;
  Families families = OneFamily(Quiet());
  SECTION("by the same command, which chose it") {
    FillOdd(dir / "source", 60000);
    families = OddFamilies();
  }
  SECTION("by a command that sets no method") {
    FillPlain(dir / "source", 60000);
    options.method = PullMethod::kClone;
  }
  Summary first;
  REQUIRE(EndStateOf(PullAndStop(options, 600'000, &first)) ==
          EndState::kCancelled);
  REQUIRE(first.method == "clone");
  options.method = PullMethod::kAuto;
  Summary summary;
  const rocksdb::Status status = MakePull(options)->Run(&summary);
  INFO(status.ToString());
  REQUIRE_OK(status);
  REQUIRE(summary.method == "clone");
  REQUIRE(summary.method_reason ==
          "auto: the unfinished pull uses this method");
  REQUIRE(summary.transfer_id == first.transfer_id);
  REQUIRE(summary.chunks_resumed > 0);
  REQUIRE(EntriesOf(dir / "target", families) ==
          EntriesOf(dir / "source", families));
}

TEST_CASE("A pull that was begun as chunks is resumed as chunks",
          "[transfer][method]") {
  const ScratchDir dir;
  FillPlain(dir / "source", 60000);
  PullOptions options = From(dir);
  options.chunk_bytes = 64 << 10;
  options.method = PullMethod::kIngest;
  Summary first;
  REQUIRE(EndStateOf(PullAndStop(options, 600'000, &first)) ==
          EndState::kCancelled);
  REQUIRE(first.method == "ingest");
  options.method = PullMethod::kAuto;
  SECTION("by a plain rerun") {
    Summary summary;
    REQUIRE_OK(MakePull(options)->Run(&summary));
    REQUIRE(summary.method == "ingest");
    REQUIRE(summary.chunks_resumed > 0);
    REQUIRE(summary.transfer_id == first.transfer_id);
  }
  SECTION("and a clone that is asked for is refused until --restart") {
    options.method = PullMethod::kClone;
    Summary summary;
    REQUIRE(EndStateOf(MakePull(options)->Run(&summary)) ==
            EndState::kRefused);
    options.restart = true;
    REQUIRE_OK(MakePull(options)->Run(&summary));
    REQUIRE(summary.method == "clone");
  }
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A plan says how many bytes both methods send",
          "[transfer][method][plan]") {
  const ScratchDir dir;
  FillPlain(dir / "source", 3000);
  PullOptions options = From(dir);
  options.target_dir.clear();
  options.method = GENERATE(PullMethod::kAuto, PullMethod::kIngest);
  Summary plan;
  REQUIRE_OK(MakePlan(options)->Run(&plan));
  REQUIRE(plan.methods.size() == 2);
  const MethodSummary& ingest = plan.methods[0];
  const MethodSummary& clone = plan.methods[1];
  REQUIRE(ingest.method == "ingest");
  REQUIRE(clone.method == "clone");
  for (const MethodSummary& method : plan.methods) {
    REQUIRE(method.why_not.empty());
    REQUIRE(method.bytes > 3000 * 80);
    REQUIRE(method.bytes < 3000 * 200);
  }
  REQUIRE(clone.files >= 1);
  const bool asks = options.method == PullMethod::kIngest;
  REQUIRE(plan.method == (asks ? "ingest" : "clone"));
  REQUIRE(ingest.files == (asks ? 1 : 0));
  REQUIRE(plan.items.empty() != asks);
}

TEST_CASE("A plan says why a method is not possible",
          "[transfer][method][plan]") {
  const ScratchDir dir;
  FillOdd(dir / "source");
  PullOptions options = From(dir);
  options.target_dir.clear();
  Summary plan;
  REQUIRE_OK(MakePlan(options)->Run(&plan));
  REQUIRE(plan.method == "clone");
  REQUIRE(plan.snapshot_sequence > 0);
  options.method = PullMethod::kIngest;
  REQUIRE(EndStateOf(MakePlan(options)->Run(&plan)) == EndState::kRefused);
  fs::create_directory(dir / "plain");
  FillPlain(dir / "plain" + "/db");
  fs::create_directory(dir / "plain" + "/db/titandb");
  options.source.directory = dir / "plain" + "/db";
  options.method = PullMethod::kAuto;
  plan = Summary();
  REQUIRE_OK(MakePlan(options)->Run(&plan));
  REQUIRE(plan.method == "ingest");
  REQUIRE(plan.methods.size() == 2);
  REQUIRE(plan.methods[1].why_not.find("titandb") != std::string::npos);
}

}  // namespace sstferry::test::method_test
