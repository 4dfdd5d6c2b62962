// Tests followers of a live database, over the connection that any target uses.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "format/coding.h"
#include "format/end_state.h"
#include "pipeline/follow/followed_source.h"
#include "pipeline/follow/source_followers.h"
#include "pipeline/follow/source_rounds.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/transaction_db.h"
#include "sstferry/source.h"
#include "sstferry/transport.h"
#include "tests/support/catch.h"
#include "tests/support/edited_options.h"
#include "tests/support/log_bytes.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/standby_world.h"
#include "tests/support/test_db.h"

namespace sstferry::test::follow_wire_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

// A follower that keeps the WALs of its last cut and the records after it, but
// no tables.
class Follower {
 public:
  Follower(Dialer* dialer, std::string name, std::string source,
           const Timeouts& timeouts = Timeouts())
      : rounds_(dialer, timeouts), source_(std::move(source)) {
    request_.database = std::move(name);
    request_.wait_millis = 5000;
  }

  // Requests rounds until it has the source's records up to `sequence`. Takes
  // each cut that is due.
  void FollowTo(uint64_t sequence) {
    while (sequence_ < sequence) Ask();
  }

  void Ask() {
    Round round;
    REQUIRE_OK(rounds_.Ask(request_, &round));
    if (round.end.cut != CutReason::kNone) {
      REQUIRE(round.logs.empty());
      ++cuts_[round.end.cut];
      TakeCut();
      return;
    }
    for (const WalBytes& log : round.logs) {
      std::string& wal = wals_[log.wal_number];
      REQUIRE(wal.size() == log.offset_bytes);
      wal += log.bytes;
      request_.position.wal_number = log.wal_number;
      request_.position.wal_bytes = wal.size();
      request_.position.wal = DigestOf(wal);
    }
    REQUIRE((round.logs.empty() || round.end.wal == request_.position.wal));
    sequence_ = round.end.more_bytes == 0 ? round.end.last_sequence : sequence_;
    Judge(round.end.judged);
  }

  void TakeCut() {
    SnapshotOptions options;
    options.database_dir = fs::canonical(source_);
    options.as_files = true;
    std::unique_ptr<Snapshot> snapshot;
    REQUIRE_OK(Snapshot::Create(options, &snapshot));
    const std::string from = snapshot->own_path() + "/db";
    REQUIRE_OK(PositionOfCut(snapshot->files()->files, from,
                             snapshot->database_id(), &request_.position));
    cut_manifest_ = request_.position.manifest;
    wals_.clear();
    for (const CloneFile& file : snapshot->files()->files) {
      // A newer WAL has no record yet, so the follower receives it from its
      // start.
      if (file.kind == CloneFileKind::kWal &&
          file.number <= request_.position.wal_number) {
        std::ifstream in(from + "/" + CloneFileName(file), std::ios::binary);
        std::string& wal = wals_[file.number];
        wal = BytesIn(in);
        wal.resize(file.records_end);
      }
    }
    sequence_ = std::max(sequence_, snapshot->sequence());
  }

  // Stores what the source has judged.
  void Judge(const FollowJudged& judged) {
    if (judged.manifest_bytes != 0) {
      request_.position.manifest_bytes = judged.manifest_bytes;
      request_.position.manifest = judged.manifest;
    }
  }

  // Requires that the follower's WALs equal the beginning of the source's WALs.
  void RequireSame() const {
    for (const auto& [number, wal] : wals_) {
      CloneFile file;
      file.kind = CloneFileKind::kWal;
      file.number = number;
      const std::string path = source_ + "/" + CloneFileName(file);
      if (fs::exists(path)) {
        std::ifstream in(path, std::ios::binary);
        const std::string all = BytesIn(in);
        REQUIRE(all.substr(0, wal.size()) == wal);
      }
    }
  }

  const Digest128& cut_manifest() const { return cut_manifest_; }
  int cuts(CutReason reason) const {
    const auto found = cuts_.find(reason);
    return found == cuts_.end() ? 0 : found->second;
  }
  int cuts() const {
    int all = 0;
    for (const auto& [reason, count] : cuts_) all += count;
    return all;
  }
  SourceRounds* rounds() { return &rounds_; }
  FollowRequest* request() { return &request_; }
  const std::map<uint64_t, std::string>& wals() const { return wals_; }
  // Continues from another follower's position.
  void Resume(const FollowRequest& request,
              std::map<uint64_t, std::string> wals) {
    request_ = request;
    wals_ = std::move(wals);
  }

 private:
  SourceRounds rounds_;
  const std::string source_;
  FollowRequest request_;
  uint64_t sequence_ = 0;
  Digest128 cut_manifest_{};
  std::map<CutReason, int> cuts_;
  std::map<uint64_t, std::string> wals_;
};

// Returns the position of a cut that is taken now.
FollowPosition CutOf(const std::string& path) {
  SnapshotOptions options;
  options.database_dir = fs::canonical(path);
  options.as_files = true;
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  FollowPosition position;
  REQUIRE_OK(PositionOfCut(snapshot->files()->files,
                           snapshot->own_path() + "/db",
                           snapshot->database_id(), &position));
  return position;
}

struct Followed {
  // `prepare` gets the path of the database before it is opened.
  explicit Followed(
      const rocksdb::Options& made = Options(),
      uint64_t max_held_bytes = 1'000'000'000,
      const std::function<void(const std::string&)>& prepare = nullptr)
      : opened((prepare != nullptr ? prepare(dir / "db") : void(),
                std::make_unique<OpenDb>(made, dir / "db"))),
        db(*opened) {
    options.databases.emplace_back().name = "db";
    options.databases[0].directory = dir / "db";
    options.max_held_bytes = max_held_bytes;
    Serve();
  }
  ~Followed() { Stop(); }
  void Serve() {
    MemoryTransport transport = MakeMemoryTransport();
    dialer = std::move(transport.dialer);
    REQUIRE_OK(
        MakeSourceServer(options, std::move(transport.listener), &server));
    runs = std::thread([this] { ended = server->Run(); });
  }
  void Stop() {
    server->Stop();
    runs.join();
    REQUIRE_OK(ended);
  }
  static rocksdb::Options Options() {
    rocksdb::Options options({}, Quiet());
    options.create_if_missing = true;
    return options;
  }
  std::unique_ptr<Follower> Join() {
    return std::make_unique<Follower>(dialer.get(), "db", dir / "db");
  }
  void Put(int count) {
    for (int i = 0; i < count; ++i) {
      db.Put(NumberedKey(next_++), std::string(100, 'v'));
    }
  }
  uint64_t sequence() const { return db->GetLatestSequenceNumber(); }
  void Ingest() {
    rocksdb::SstFileWriter writer({}, {});
    REQUIRE_OK(writer.Open(dir / "ingested"));
    REQUIRE_OK(writer.Put(NumberedKey(0), "ingested"));
    REQUIRE_OK(writer.Finish());
    REQUIRE_OK(db->IngestExternalFile(db.cf(), {dir / "ingested"}, {}));
  }

  const ScratchDir dir;
  std::unique_ptr<OpenDb> opened;
  OpenDb& db;  // valid while `opened` is set
  ServeOptions options;
  std::unique_ptr<Dialer> dialer;
  std::unique_ptr<SourceServer> server;
  std::thread runs;
  Status ended;
  uint64_t next_ = 0;
};

}  // namespace

TEST_CASE("A follower gets the records of a source across flushes, with one cut",
          "[transfer][follow]") {
  Followed source;
  source.Put(100);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->FollowTo(source.sequence());
  for (int round = 0; round < 5; ++round) {
    source.Put(200);
    follower->FollowTo(source.sequence());
    source.db.Flush();
    if (round == 3) source.db.Compact();
  }
  source.Put(1);
  follower->FollowTo(source.sequence());
  follower->RequireSame();
  REQUIRE(follower->cuts() == 1);
  REQUIRE(follower->cuts(CutReason::kFirst) == 1);
  REQUIRE(follower->wals().size() >= 5);
}

TEST_CASE("After an ingestion, earlier followers need a new cut",
          "[transfer][follow]") {
  Followed source;
  source.Put(10);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->FollowTo(source.sequence());
  source.Ingest();
  source.Put(10);
  follower->FollowTo(source.sequence());
  REQUIRE(follower->cuts(CutReason::kBarrier) == 1);
  source.Put(10);
  follower->FollowTo(source.sequence());
  follower->RequireSame();
  REQUIRE(follower->cuts() == 2);
}

TEST_CASE("New families and removed tables require a cut",
          "[transfer][follow]") {
  Followed source;
  source.Put(10);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->FollowTo(source.sequence());
  SECTION("a new family") {
    source.db.Create({"new", Quiet()});
    source.db.Put("key", "value", "new");
  }
  SECTION("tables removed") {
    source.db.Flush();
    source.db.Compact();
    REQUIRE_OK(rocksdb::DeleteFilesInRange(source.db.get(), source.db.cf(),
                                           nullptr, nullptr));
    source.Put(1);
  }
  follower->FollowTo(source.sequence());
  REQUIRE(follower->cuts(CutReason::kBarrier) == 1);
  REQUIRE(follower->cuts() == 2);
}

// The source recovers such entries only after the flush, so a standby needs a
// cut then.
TEST_CASE("A flush of entries that are in no WAL requires a cut",
          "[transfer][follow]") {
  Followed source;
  source.Put(10);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->FollowTo(source.sequence());
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  REQUIRE_OK(source.db->Put(unlogged, "unlogged", "value"));
  SECTION("after records that were followed") {
    source.Put(1);
    follower->FollowTo(source.sequence());
    REQUIRE(follower->cuts(CutReason::kSequenceGap) == 1);
  }
  SECTION("without other records") {}
  source.db.Flush();
  follower->request()->wait_millis = 200;
  for (int i = 0; i < 50 && follower->cuts(CutReason::kUnlogged) == 0; ++i) {
    follower->Ask();
  }
  source.Put(1);
  follower->FollowTo(source.sequence());
  REQUIRE(follower->cuts(CutReason::kUnlogged) == 1);
}

class KeepsAll : public rocksdb::CompactionFilter {
 public:
  const char* Name() const override { return "sstferry.test.KeepsAll"; }
};

TEST_CASE("A flush of entries that recovery does not read, because they follow "
          "a torn WAL, requires a cut",
          "[transfer][follow]") {
  // With allow_2pc, the torn WAL is still needed after the next opening.
  rocksdb::Options options = Followed::Options();
  options.allow_2pc = true;
  Followed source(options, 1'000'000'000, [&](const std::string& path) {
    const ScratchDir made;
    OpenDb db(options, made / "db");
    db.Put("large", std::string(20'000, 'v'));
    fs::copy(made / "db", path, fs::copy_options::recursive);
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".log") {
        fs::resize_file(entry.path(), entry.file_size() - 1);
      }
    }
  });
  source.Put(1);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->FollowTo(source.sequence());
  REQUIRE(follower->cuts() == 1);
  const auto flush = [&] {
    source.db.Flush();
    source.Put(1);
    follower->FollowTo(source.sequence());
  };
  flush();
  REQUIRE(follower->cuts(CutReason::kUnlogged) >= 1);
  // Now the torn WAL is no longer needed. Its end of use may have required a
  // cut of its own.
  flush();
  const int cuts = follower->cuts();
  REQUIRE(cuts <= 3);
  for (int i = 0; i < 3; ++i) flush();
  REQUIRE(follower->cuts() == cuts);
}

// With WRITE_PREPARED, the batch of three entries takes one sequence number,
// but its WAL does not show that. The reader does not see the later put,
// because its WAL is gone between two rounds, and the put's number could be
// that of the batch's second entry.
TEST_CASE("A flush of entries from an unseen WAL requires a cut, even if the "
          "batch before them takes one sequence number",
          "[transfer][follow]") {
  const ScratchDir dir;
  rocksdb::TransactionDBOptions transactions;
  transactions.write_policy = rocksdb::WRITE_PREPARED;
  rocksdb::TransactionDB* made = nullptr;
  REQUIRE_OK(rocksdb::TransactionDB::Open(Followed::Options(), transactions,
                                          dir / "db", &made));
  std::unique_ptr<rocksdb::TransactionDB> db(made);
  rocksdb::WriteBatch batch;
  for (const char* key : {"a", "b", "c"}) {
    REQUIRE_OK(batch.Put(key, "1"));
  }
  REQUIRE_OK(db->Write(rocksdb::WriteOptions(), &batch));
  FollowedSourceOptions options;
  options.database_dir = fs::canonical(dir / "db");
  FollowedSource source(options);
  bool more = false;
  REQUIRE_OK(source.ReadRound(true, &more));
  MemoryTransport transport = MakeMemoryTransport();
  Follower follower(transport.dialer.get(), "db", dir / "db");
  follower.TakeCut();
  REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
  REQUIRE_OK(db->Put(rocksdb::WriteOptions(), "a", "2"));
  REQUIRE(db->GetLatestSequenceNumber() == 2);
  REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
  db.reset();  // RocksDB then removes its unneeded WALs
  REQUIRE_OK(source.ReadRound(true, &more));
  Round round;
  FollowedSource::Found found;
  REQUIRE_OK(source.Answer(*follower.request(), &found, &round));
  REQUIRE(round.end.cut == CutReason::kUnlogged);
}

// Appends a record to a closed database's file, as a later RocksDB might.
void AppendTo(const std::string& path, const std::string& record) {
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out << record;
  REQUIRE(out.good());
}

// Returns a batch with one entry of an unknown type.
std::string BatchOfUnknown(uint64_t sequence) {
  std::string batch;
  PutFixed64(&batch, sequence);
  PutFixed32(&batch, 1);
  return batch + "\x7a\x01k\x01v";
}

TEST_CASE("A follower stops only at records, entries and tags that must not be "
          "ignored",
          "[transfer][follow]") {
  const ScratchDir dir;
  uint64_t sequence = 0;
  {
    OpenDb db(dir / "db", OneFamily(Quiet()));
    db.Put("key", "value");
    sequence = db->GetLatestSequenceNumber();
  }
  std::string wal;
  std::string manifest;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir / "db")) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".log")) wal = entry.path();
    if (name.starts_with("MANIFEST-")) manifest = entry.path();
  }
  REQUIRE(fs::file_size(wal) > 0);
  FollowedSourceOptions options;
  options.database_dir = fs::canonical(dir / "db");
  FollowedSource source(options);
  bool more = false;
  REQUIRE_OK(source.ReadRound(true, &more));
  MemoryTransport transport = MakeMemoryTransport();
  Follower follower(transport.dialer.get(), "db", dir / "db");
  follower.TakeCut();
  std::string expected;
  bool asks_for_cut = false;
  SECTION("a record of a WAL") {
    AppendTo(wal, PhysicalRecord(12, "x"));
    expected = "a record of type 12";
  }
  SECTION("a record of a WAL that may be ignored") {
    AppendTo(wal, PhysicalRecord(200, "x"));
  }
  SECTION("an entry of a batch") {
    AppendTo(wal, PhysicalRecord(1, BatchOfUnknown(sequence + 1)));
    expected = "found 122";
  }
  SECTION("a tag of the MANIFEST") {
    AppendTo(manifest, PhysicalRecord(1, "\x68"));  // 104
    expected = "found 104";
  }
  SECTION("a tag of the MANIFEST that may be ignored") {
    // 8192 + 500 as a varint, and a length of 1.
    AppendTo(manifest, PhysicalRecord(1, "\xf4\x43\x01x"));
    asks_for_cut = true;
  }
  SECTION("an option") {
    EditOptions(dir / "db", "[DBOptions]\n",
                "[DBOptions]\n  shape_of_a_fork=round\n");
  }
  const Status status = source.ReadRound(true, &more);
  INFO(status.ToString());
  REQUIRE(status.ok() == expected.empty());
  REQUIRE(status.ToString().find(expected) != std::string::npos);
  if (!expected.empty()) {
    REQUIRE(EndStateOf(status) == EndState::kRefused);
    return;
  }
  Round round;
  FollowedSource::Found found;
  REQUIRE_OK(source.Answer(*follower.request(), &found, &round));
  REQUIRE((round.end.cut == CutReason::kBarrier) == asks_for_cut);
}

TEST_CASE("A follower ends at a damaged record of its source's MANIFEST, and "
          "waits for one that is being written",
          "[transfer][follow][corruption]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "db", OneFamily(Quiet()));
    db.Put("key", "value");
  }
  std::string manifest;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir / "db")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("MANIFEST-")) manifest = entry.path();
  }
  FollowedSourceOptions options;
  options.database_dir = fs::canonical(dir / "db");
  FollowedSource source(options);
  bool more = false;
  REQUIRE_OK(source.ReadRound(true, &more));
  std::string record = PhysicalRecord(1, "\xf4\x43\x01x");
  record.pop_back();
  AppendTo(manifest, record);
  REQUIRE_OK(source.ReadRound(true, &more));
  AppendTo(manifest, "y");  // not the byte of the checksum
  const Status status = source.ReadRound(true, &more);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(MessageOf(status).find(": expected checksum ") != std::string::npos);
}

TEST_CASE("A compaction filter requires a cut if the follower must be exact",
          "[transfer][follow]") {
  const KeepsAll filter;
  rocksdb::Options options = Followed::Options();
  options.compaction_filter = &filter;
  Followed source(options);
  source.Put(10);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->request()->exact_filters = GENERATE(false, true);
  follower->FollowTo(source.sequence());
  source.db.Flush();
  source.db.Compact();
  source.Put(1);
  follower->FollowTo(source.sequence());
  REQUIRE(follower->cuts(CutReason::kFilter) ==
          (follower->request()->exact_filters ? 1 : 0));
}

// Returns the path of the newest OPTIONS file.
std::string NewestOptions(const std::string& dir) {
  std::string newest;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("OPTIONS-")) newest = std::max(newest, name);
  }
  return dir + "/" + newest;
}

TEST_CASE("A compaction filter of a source that was opened again, or made "
          "anew, requires a cut",
          "[transfer][follow]") {
  const bool is_new = GENERATE(false, true);
  INFO(is_new);
  const KeepsAll filter;
  Followed source;
  FollowedSourceOptions options;
  options.database_dir = fs::canonical(source.dir / "db");
  FollowedSource reader(options);
  bool more = false;
  source.Put(10);
  for (int i = 0; i < 2; ++i) REQUIRE_OK(reader.ReadRound(true, &more));
  // A new database has OPTIONS with a lower number.
  for (int i = 0; is_new && i < 5; ++i) {
    source.opened.reset();
    source.opened =
        std::make_unique<OpenDb>(Followed::Options(), source.dir / "db");
    REQUIRE_OK(reader.ReadRound(true, &more));
  }
  source.opened.reset();
  if (is_new) fs::remove_all(source.dir / "db");
  rocksdb::Options with = Followed::Options();
  with.compaction_filter = &filter;
  OpenDb db(with, source.dir / "db");
  // RocksDB writes OPTIONS after CURRENT, by which a reader finds the new life.
  const std::string newest = NewestOptions(source.dir / "db");
  fs::rename(newest, source.dir / "hidden");
  REQUIRE_OK(reader.ReadRound(true, &more));
  fs::rename(source.dir / "hidden", newest);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->TakeCut();
  follower->request()->exact_filters = GENERATE(false, true);
  db.Put("k", "v");
  db.Flush();
  db.Compact();
  REQUIRE_OK(reader.ReadRound(true, &more));
  Round round;
  FollowedSource::Found found;
  REQUIRE_OK(reader.Answer(*follower->request(), &found, &round));
  REQUIRE((round.end.cut == CutReason::kFilter) ==
          follower->request()->exact_filters);
}

TEST_CASE("Families may have a compaction filter while OPTIONS cannot be read",
          "[transfer][follow]") {
  Followed source;
  FollowedSourceOptions options;
  options.database_dir = fs::canonical(source.dir / "db");
  FollowedSource reader(options);
  bool more = false;
  source.Put(10);
  for (int i = 0; i < 2; ++i) REQUIRE_OK(reader.ReadRound(true, &more));
  const std::unique_ptr<Follower> follower = source.Join();
  follower->TakeCut();
  follower->request()->exact_filters = GENERATE(false, true);
  const std::string unreadable = source.dir / "db/OPTIONS-999999";
  fs::create_directory(unreadable);
  source.Put(1);
  source.db.Flush();
  source.db.Compact();
  Round round;
  FollowedSource::Found found;
  const bool is_listed = GENERATE(false, true);
  const bool is_mended = GENERATE(false, true);
  REQUIRE_OK(reader.ReadRound(is_listed, &more));
  if (is_mended) fs::remove(unreadable);
  REQUIRE_OK(reader.ReadRound(true, &more));
  REQUIRE_OK(reader.Answer(*follower->request(), &found, &round));
  INFO(round.end.note);
  REQUIRE((round.end.cut == CutReason::kFilter) ==
          (follower->request()->exact_filters && (is_listed || !is_mended)));
}

// Drops all entries of a flush.
class DropsAll : public rocksdb::CompactionFilter {
 public:
  const char* Name() const override { return "sstferry.test.DropsAll"; }
  // Skips the entries, which leaves no deletion in their place.
  Decision FilterV2(int, const rocksdb::Slice&, ValueType,
                    const rocksdb::Slice&, std::string*,
                    std::string* skip_until) const override {
    *skip_until = "\xff";
    return Decision::kRemoveAndSkipUntil;
  }
};

class DropsAllFactory : public rocksdb::CompactionFilterFactory {
 public:
  const char* Name() const override { return "sstferry.test.DropsAllFactory"; }
  bool ShouldFilterTableFileCreation(
      rocksdb::TableFileCreationReason) const override {
    return true;
  }
  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context&) override {
    return std::make_unique<DropsAll>();
  }
};

TEST_CASE("A flush that a filter leaves empty requires a cut if the follower "
          "must be exact",
          "[transfer][follow]") {
  rocksdb::Options options = Followed::Options();
  options.compaction_filter_factory = std::make_shared<DropsAllFactory>();
  Followed source(options);
  source.Put(10);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->request()->exact_filters = GENERATE(false, true);
  follower->FollowTo(source.sequence());
  source.db.Flush();
  rocksdb::ColumnFamilyMetaData tables;
  source.db->GetColumnFamilyMetaData(&tables);
  REQUIRE(tables.file_count == 0);
  source.Put(1);
  follower->FollowTo(source.sequence());
  REQUIRE(follower->cuts(CutReason::kFilter) ==
          (follower->request()->exact_filters ? 1 : 0));
}

// The marker of a rollback takes no sequence number, so sequence numbers do not
// show that it is missing.
TEST_CASE("A transaction that was rolled back in an unseen WAL requires a cut",
          "[transfer][follow]") {
  const ScratchDir dir;
  rocksdb::Options options = Followed::Options();
  options.create_missing_column_families = true;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  rocksdb::TransactionDB* made = nullptr;
  REQUIRE_OK(rocksdb::TransactionDB::Open(
      options, rocksdb::TransactionDBOptions(), dir / "db",
      {{"default", Quiet()}, {"other", Quiet()}}, &families, &made));
  std::unique_ptr<rocksdb::TransactionDB> db(made);
  const rocksdb::WriteOptions write;
  for (rocksdb::ColumnFamilyHandle* family : families) {
    REQUIRE_OK(db->Put(write, family, "key", "value"));
  }
  std::unique_ptr<rocksdb::Transaction> transaction(
      db->BeginTransaction(write));
  REQUIRE_OK(transaction->SetName("moved"));
  REQUIRE_OK(transaction->Put("prepared", "value"));
  REQUIRE_OK(transaction->Prepare());
  FollowedSourceOptions reads;
  reads.database_dir = fs::canonical(dir / "db");
  FollowedSource reader(reads);
  bool more = false;
  for (int i = 0; i < 2; ++i) REQUIRE_OK(reader.ReadRound(true, &more));
  FollowRequest request;
  request.position = CutOf(dir / "db");
  const bool is_seen = GENERATE(false, true);
  // The next WAL contains only the marker, and the WAL after it is empty.
  REQUIRE_OK(db->Flush(rocksdb::FlushOptions(), families[0]));
  const std::string marked = PathsWith(dir / "db", ".log").back();
  REQUIRE_OK(transaction->Rollback());
  if (is_seen) REQUIRE_OK(reader.ReadRound(true, &more));
  REQUIRE_OK(db->Flush(rocksdb::FlushOptions(), families[1]));
  REQUIRE(AwaitThat([&marked] { return !fs::exists(marked); }));
  FollowedSource::Found found;
  Round round;
  for (int i = 0; i < 3; ++i) {
    REQUIRE_OK(reader.ReadRound(true, &more));
    REQUIRE_OK(reader.Answer(request, &found, &round));
  }
  REQUIRE(round.end.cut ==
          (is_seen ? CutReason::kNone : CutReason::kSequenceGap));
  REQUIRE(round.end.note ==
          (is_seen ? ""
                   : "transaction moved has ended in a WAL that was not seen"));
  transaction.reset();
  for (rocksdb::ColumnFamilyHandle* family : families) {
    REQUIRE_OK(db->DestroyColumnFamilyHandle(family));
  }
}

TEST_CASE("Ten followers of one database cost one reading of its WALs",
          "[transfer][follow]") {
  Followed source;
  source.Put(10);
  std::vector<std::unique_ptr<Follower>> followers;
  for (int i = 0; i < 10; ++i) {
    followers.push_back(source.Join());
    followers.back()->FollowTo(source.sequence());
  }
  source.Put(1000);
  for (const auto& follower : followers) {
    follower->FollowTo(source.sequence());
    follower->RequireSame();
    REQUIRE(follower->cuts() == 1);
  }
  uint64_t wal_bytes = 0;
  for (const std::string& wal : PathsWith(source.dir / "db", ".log")) {
    wal_bytes += fs::file_size(wal);
  }
  const std::vector<FollowedState> followed = source.server->state().followed;
  REQUIRE(followed.size() == 1);
  REQUIRE(followed[0].database == "db");
  REQUIRE(followed[0].followers.size() == 10);
  REQUIRE(followed[0].read_bytes <= wal_bytes);
  REQUIRE(followed[0].read_bytes > 100'000);
}

TEST_CASE("A follower that needs more WALs than the source keeps takes a cut",
          "[transfer][follow]") {
  const bool is_held = GENERATE(false, true);
  Followed source(Followed::Options(), is_held ? 1'000'000 : 50'000);
  source.Put(10);
  const std::unique_ptr<Follower> away = source.Join();
  const std::unique_ptr<Follower> near = source.Join();
  away->FollowTo(source.sequence());
  near->FollowTo(source.sequence());
  for (int i = 0; i < 10; ++i) {
    source.Put(100);
    source.db.Flush();  // which removes its WAL
    near->FollowTo(source.sequence());
  }
  REQUIRE(near->cuts() == 1);
  away->FollowTo(source.sequence());
  REQUIRE(away->cuts(CutReason::kNotHeld) == (is_held ? 0 : 1));
  REQUIRE(away->cuts() == (is_held ? 1 : 2));
  source.Put(10);
  away->FollowTo(source.sequence());
  away->RequireSame();
}

TEST_CASE("An answer may take longer than the timeouts while its bytes arrive",
          "[transfer][follow]") {
  Followed source;
  source.Put(10);
  source.Stop();
  source.options.max_rate_bytes_per_sec = 400'000;
  source.Serve();
  Timeouts timeouts;
  timeouts.peer = std::chrono::milliseconds(1500);
  timeouts.stall = std::chrono::milliseconds(1500);
  Follower follower(source.dialer.get(), "db", source.dir / "db", timeouts);
  follower.request()->wait_millis = 100;
  follower.FollowTo(source.sequence());
  // The answer takes more than 3 s.
  constexpr uint64_t kValues = 5;
  constexpr uint64_t kValueBytes = 256u << 10;
  for (uint64_t i = 0; i < kValues; ++i) {
    source.db.Put(NumberedKey(i), std::string(kValueBytes, 'v'));
  }
  REQUIRE(AwaitThat([&source] {
    const std::vector<FollowedState> followed =
        source.server->state().followed;
    return followed.at(0).followers.at(0).behind_bytes >=
           kValues * kValueBytes;
  }));
  follower.FollowTo(source.sequence());
  REQUIRE(follower.cuts() == 1);
  follower.RequireSame();
}

TEST_CASE("A follower that was away resumes where it was",
          "[transfer][follow]") {
  Followed source;
  source.Put(10);
  std::unique_ptr<Follower> follower = source.Join();
  follower->FollowTo(source.sequence());
  const FollowRequest request = *follower->request();
  follower.reset();
  source.Put(10);
  const std::unique_ptr<Follower> again = source.Join();
  Round round;
  REQUIRE_OK(again->rounds()->Ask(request, &round));
  REQUIRE(round.end.cut == CutReason::kNone);
  REQUIRE(round.logs.size() == 1);
  REQUIRE(round.logs[0].offset_bytes == request.position.wal_bytes);

  SECTION("but not with another MANIFEST") {
    FollowRequest other = request;
    ++other.position.manifest.low;
    REQUIRE_OK(again->rounds()->Ask(other, &round));
    REQUIRE(round.end.cut == CutReason::kNewLife);
  }
  SECTION("but not after the end of the source's bytes") {
    FollowRequest other = request;
    other.position.wal_bytes += 1u << 30;
    REQUIRE_OK(again->rounds()->Ask(other, &round));
    REQUIRE(round.end.cut == CutReason::kNewLife);
  }
  SECTION("but it is not reported as current while the source cannot know") {
    FollowRequest other = request;
    other.position.wal_bytes += 1u << 30;
    other.wait_millis = 5;  // shorter than two rounds
    int asked = 0;
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::steady_clock::duration first_took{};
    do {
      REQUIRE(++asked < 900);
      REQUIRE_OK(again->rounds()->Ask(other, &round));
      if (asked == 1) first_took = std::chrono::steady_clock::now() - begin;
      REQUIRE((round.end.cut == CutReason::kNewLife ||
               round.end.more_bytes > 0));
    } while (round.end.cut == CutReason::kNone);
    // On a busy machine, two rounds may pass before the first answer, which
    // then already requires the cut.
    REQUIRE((asked > 1 || first_took > std::chrono::milliseconds(6)));
  }
}

// The flush made a WAL unnecessary, so a reader that starts later never sees
// it.
TEST_CASE("A new reader of a source trusts what another has judged, and no "
          "more",
          "[transfer][follow]") {
  Followed source;
  source.db.Create({"other", Quiet()});
  source.Put(10);
  std::unique_ptr<Follower> follower = source.Join();
  follower->FollowTo(source.sequence());
  source.db.Flush();
  source.Put(10);
  source.db.Put("key", "value", "other");
  follower->FollowTo(source.sequence());
  REQUIRE(follower->cuts() == 1);
  FollowRequest request = *follower->request();
  const std::map<uint64_t, std::string> wals = follower->wals();
  REQUIRE(request.position.manifest_bytes > request.position.cut_bytes);
  const Digest128 cut = follower->cut_manifest();
  follower.reset();
  source.Stop();
  CutReason expected = CutReason::kNone;
  SECTION("unchanged") {}
  SECTION("without the judgement") {
    request.position.manifest_bytes = request.position.cut_bytes;
    request.position.manifest = cut;
    expected = CutReason::kUnlogged;
  }
  SECTION("for another MANIFEST") {
    ++request.position.manifest.low;
    expected = CutReason::kNewLife;
  }
  SECTION("for more bytes than the MANIFEST has") {
    request.position.manifest_bytes += 1'000'000;
    expected = CutReason::kNewLife;
  }
  SECTION("before an ingestion") {
    source.Ingest();
    expected = CutReason::kBarrier;
  }
  SECTION("before a flush of entries that are in no WAL") {
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    REQUIRE_OK(source.db->Put(unlogged, "unlogged", "value"));
    // The WAL stays, because the other family still needs it.
    REQUIRE_OK(source.db->Flush(rocksdb::FlushOptions(), source.db.cf()));
    expected = CutReason::kUnlogged;
  }
  source.Serve();
  follower = source.Join();
  request.wait_millis = 100;
  Round round;
  // The reader finds entries that are in a table but in no WAL only in its
  // second round.
  for (int i = 0; i < 100 && round.end.cut == CutReason::kNone &&
                  (expected != CutReason::kNone ||
                   round.end.judged == FollowJudged());
       ++i) {
    REQUIRE_OK(follower->rounds()->Ask(request, &round));
  }
  INFO(CutReasonName(round.end.cut));
  REQUIRE(round.end.cut == expected);
  if (expected == CutReason::kNone) {
    REQUIRE(round.end.judged ==
            FollowJudged{request.position.manifest_bytes,
                         request.position.manifest});
    source.Put(10);
    source.db.Flush();
    source.Put(10);
    follower->Resume(request, wals);
    follower->FollowTo(source.sequence());
    follower->RequireSame();
    REQUIRE(follower->cuts() == 0);
  }
}

TEST_CASE("A flush counts as judged only when it is known which of its entries "
          "are in WALs",
          "[transfer][follow]") {
  Followed source;
  source.db.Create({"other", Quiet()});
  source.Put(10);
  source.db.Put("key", "value", "other");  // so that the WAL is still needed
  FollowedSourceOptions options;
  options.database_dir = fs::canonical(source.dir / "db");
  FollowedSource reader(options);
  bool more = false;
  REQUIRE_OK(reader.ReadRound(true, &more));
  const std::unique_ptr<Follower> follower = source.Join();
  follower->TakeCut();
  FollowRequest request = *follower->request();
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  REQUIRE_OK(source.db->Put(unlogged, "unlogged", "value"));
  REQUIRE_OK(source.db->Flush(rocksdb::FlushOptions(), source.db.cf()));
  // After this round, the flushed entries may still be in a WAL that the reader
  // has not seen.
  REQUIRE_OK(reader.ReadRound(true, &more));
  FollowedSource::Found found;
  Round round;
  REQUIRE_OK(reader.Answer(request, &found, &round));
  REQUIRE(round.end.cut == CutReason::kNone);
  REQUIRE(round.end.judged.manifest_bytes >= request.position.cut_bytes);
  request.position.manifest_bytes = round.end.judged.manifest_bytes;
  request.position.manifest = round.end.judged.manifest;
  FollowedSource other(options);
  for (int i = 0; i < 2; ++i) REQUIRE_OK(other.ReadRound(true, &more));
  REQUIRE_OK(other.Answer(request, &found, &round));
  REQUIRE(round.end.cut == CutReason::kUnlogged);
  REQUIRE(round.end.judged == FollowJudged());
}

TEST_CASE("A follower that has everything soon learns that the source was "
          "closed",
          "[transfer][follow]") {
  Followed source;
  source.Put(10);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->FollowTo(source.sequence());
  follower->request()->wait_millis = kMaxFollowWaitMillis;
  Round round;
  // On a busy machine, an answer may be too old to say that the source is open.
  for (int i = 0; i < 20; ++i) {
    source.Put(1);
    REQUIRE_OK(follower->rounds()->Ask(*follower->request(), &round));
    if (round.end.source_process == SourceProcess::kOpen) break;
  }
  REQUIRE(round.end.source_process == SourceProcess::kOpen);
  REQUIRE(round.heard_micros >= round.asked_micros);
  follower->FollowTo(source.sequence());
  source.opened.reset();
  const auto begin = std::chrono::steady_clock::now();
  while (!round.end.source_closed) {
    REQUIRE_OK(follower->rounds()->Ask(*follower->request(), &round));
  }
  REQUIRE(round.end.source_process == SourceProcess::kClosed);
  // If the source did not tell at once that it was closed, the answer would
  // take kMaxFollowWaitMillis.
  REQUIRE(std::chrono::steady_clock::now() - begin <
          std::chrono::milliseconds(kMaxFollowWaitMillis * 9 / 10));
}

TEST_CASE("A source counts as closed only when everything that it wrote is "
          "judged",
          "[transfer][follow]") {
  Followed source;
  source.Put(10);
  FollowedSourceOptions options;
  options.database_dir = fs::canonical(source.dir / "db");
  FollowedSource reader(options);
  bool more = false;
  for (int i = 0; i < 2; ++i) REQUIRE_OK(reader.ReadRound(true, &more));
  const std::unique_ptr<Follower> follower = source.Join();
  follower->TakeCut();
  // The close flushes entries that are in no WAL.
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  REQUIRE_OK(source.db->Put(unlogged, "unlogged", "value"));
  source.opened.reset();
  FollowedSource::Found found;
  Round round;
  for (int i = 0; i < 3; ++i) {
    INFO("round " << i);
    REQUIRE_OK(reader.ReadRound(true, &more));
    REQUIRE_OK(reader.Answer(*follower->request(), &found, &round));
    REQUIRE_FALSE(round.end.source_closed);
    REQUIRE((round.end.cut == CutReason::kUnlogged) == (i > 0));
  }
  follower->TakeCut();
  // A round that did not look for new WALs cannot report a close.
  REQUIRE_OK(reader.ReadRound(false, &more));
  REQUIRE_OK(reader.Answer(*follower->request(), &found, &round));
  REQUIRE(round.end.cut == CutReason::kNone);
  REQUIRE_FALSE(round.end.source_closed);
  REQUIRE_OK(reader.ReadRound(true, &more));
  REQUIRE_OK(reader.Answer(*follower->request(), &found, &round));
  REQUIRE(round.end.source_closed);
}

TEST_CASE("Close() ends a wait for records that never arrive",
          "[transfer][follow]") {
  Followed source;
  source.Put(10);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->FollowTo(source.sequence());
  follower->request()->wait_millis = kMaxFollowWaitMillis;
  Status status;
  std::thread asks([&] {
    Round round;
    while (status.ok()) {
      status = follower->rounds()->Ask(*follower->request(), &round);
    }
  });
  follower->rounds()->Close();
  asks.join();
  REQUIRE(EndStateOf(status) == EndState::kCancelled);
}

// Writes records of one size.
void PutOfOneSize(OpenDb* db, const std::string& value, int count) {
  for (int i = 0; i < count; ++i) {
    db->Put(NumberedKey(i), value);
  }
}

TEST_CASE("A source that was made anew or restored is another life, even with "
          "the same numbers and sizes",
          "[transfer][follow]") {
  const bool is_restored = GENERATE(false, true);
  const bool is_running = GENERATE(false, true);
  INFO("restored " << is_restored << ", running " << is_running);
  const ScratchDir dir;
  const std::string path = dir / "db";
  rocksdb::Options opened = Followed::Options();
  opened.write_dbid_to_manifest = false;  // as RocksDB 7.8 does
  if (is_restored) {
    { const OpenDb made(opened, path); }
    fs::copy(path, dir / "copy", fs::copy_options::recursive);
  }
  FollowedSourceOptions options;
  options.database_dir = path;
  FollowRequest request;
  std::unique_ptr<FollowedSource> reader;
  bool more = false;
  {
    OpenDb db(opened, path);
    PutOfOneSize(&db, "old", 50);
    options.database_dir = fs::canonical(path);
    reader = std::make_unique<FollowedSource>(options);
    REQUIRE_OK(reader->ReadRound(true, &more));
    request.position = CutOf(path);
  }
  FollowedSource::Found found;
  Round round;
  REQUIRE_OK(reader->Answer(request, &found, &round));
  REQUIRE(round.end.cut == CutReason::kNone);
  fs::remove_all(path);
  if (is_restored) {
    fs::copy(dir / "copy", path, fs::copy_options::recursive);
  }
  OpenDb db(opened, path);
  PutOfOneSize(&db, "new", 70);
  // The new life has the same file numbers and the same MANIFEST.
  const FollowPosition now = CutOf(path);
  REQUIRE(now.manifest_number == request.position.manifest_number);
  REQUIRE(now.wal_number == request.position.wal_number);
  REQUIRE((now.database_id == request.position.database_id) == is_restored);
  REQUIRE(now.manifest == request.position.manifest);
  if (!is_running) reader = std::make_unique<FollowedSource>(options);
  for (int i = 0; i < 2; ++i) REQUIRE_OK(reader->ReadRound(true, &more));
  REQUIRE_OK(reader->Answer(request, &found, &round));
  REQUIRE(round.logs.empty());
  REQUIRE(round.end.cut == CutReason::kNewLife);
  request.position = now;
  REQUIRE_OK(reader->Answer(request, &found, &round));
  REQUIRE(round.end.cut == CutReason::kNone);
}

TEST_CASE("A position before the end of the kept bytes is compared, too",
          "[transfer][follow]") {
  const ScratchDir dir;
  OpenDb db(Followed::Options(), dir / "db");
  FollowedSourceOptions options;
  options.database_dir = fs::canonical(dir / "db");
  options.memory_bytes = GENERATE(0, 32u << 20);  // in the file, or in memory
  FollowedSource reader(options);
  bool more = false;
  std::vector<FollowRequest> requests;
  for (int i = 0; i < 5; ++i) {
    PutOfOneSize(&db, "value", 20);
    REQUIRE_OK(reader.ReadRound(true, &more));
    requests.emplace_back().position = CutOf(dir / "db");
  }
  for (FollowRequest& request : requests) {
    FollowedSource::Found found;
    Round round;
    REQUIRE_OK(reader.Answer(request, &found, &round));
    REQUIRE(round.end.cut == CutReason::kNone);
    ++request.position.wal.low;
    REQUIRE_OK(reader.Answer(request, &found, &round));
    REQUIRE(round.end.cut == CutReason::kNewLife);
  }
}

// Makes the file of the next WAL before it has a record, as RocksDB does with
// async_wal_precreate, and for a moment with manual_wal_flush.
void MakeNextWal(const std::string& path, const std::string& bytes) {
  uint64_t newest = 0;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename();
    const size_t digit = name.find_first_of("0123456789");
    if (digit != std::string::npos) {
      newest = std::max<uint64_t>(newest, std::stoull(name.substr(digit)));
    }
  }
  std::ofstream(path + "/" + WalName(newest + 1), std::ios::binary) << bytes;
}

TEST_CASE("Records of a WAL arrive although the file of the next WAL exists",
          "[transfer][follow]") {
  // The next WAL's file is empty, or has only the record that announces
  // compression.
  const std::string begin = GENERATE(
      as<std::string>(), "", PhysicalRecord(9, std::string("\7\0\0\0", 4)));
  const bool is_before_the_cut = GENERATE(false, true);
  INFO(begin.size() << ' ' << is_before_the_cut);
  Followed source;
  source.Put(50);
  if (is_before_the_cut) MakeNextWal(source.dir / "db", begin);
  const std::unique_ptr<Follower> follower = source.Join();
  follower->FollowTo(source.sequence());
  REQUIRE(follower->cuts() == 1);
  if (!is_before_the_cut) MakeNextWal(source.dir / "db", begin);
  const std::string first =
      WalName(follower->request()->position.wal_number);
  for (int i = 0; i < 2; ++i) {
    source.Put(20);
    follower->FollowTo(source.sequence());
  }
  REQUIRE(WalName(follower->request()->position.wal_number) == first);
  source.db.Flush();
  source.Put(10);
  follower->FollowTo(source.sequence());
  REQUIRE(follower->cuts() == 1);
  follower->RequireSame();
  size_t records = 0;
  for (const auto& [number, wal] : follower->wals()) {
    records += Follow(wal, LogKind::kWal, number).records.size();
  }
  REQUIRE(records == 100);
}

TEST_CASE("A standby cannot be followed", "[transfer][follow]") {
  StandbyWorld world;
  world.Write(10);
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  SourceFollowers followers(1u << 30);
  ServedDatabase served;
  served.name = "db";
  served.directory = world.dir();
  FollowEnd end;
  const Status status = followers.Answer(
      &end, served, FollowRequest(),
      [](const WalBytes&) { return Status::OK(); }, &end);
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(MessageOf(status) == "follow: expected a database, found " +
                                   fs::canonical(world.dir()).string() +
                                   ", a standby of " + world.source_dir());
}

TEST_CASE("A database that is not served cannot be followed",
          "[transfer][follow]") {
  Followed source;
  const std::unique_ptr<Follower> follower = source.Join();
  follower->request()->database = "another";
  Round round;
  const Status status = follower->rounds()->Ask(*follower->request(), &round);
  REQUIRE(EndStateOf(status) == EndState::kRefused);
}

}  // namespace sstferry::test::follow_wire_test
