#include "format/rocksdb/wal_facts.h"

#include <filesystem>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/limits.h"
#include "format/rocksdb/sst_coding.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/write_batch.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::wal_facts_test {

using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::Transaction;

namespace {

// Adds all WALs of a directory, oldest first.
void AddWals(const std::string& directory, WalFacts* facts) {
  std::map<uint64_t, std::string> wals;
  for (const std::string& path : test::PathsWith(directory, ".log")) {
    wals[std::stoull(std::filesystem::path(path).stem())] = path;
  }
  for (const auto& [number, path] : wals) {
    const test::Followed followed =
        test::Follow(test::FileBytes(path), LogKind::kWal, number);
    REQUIRE_OK(followed.status);
    for (const std::string& record : followed.records) {
      REQUIRE_OK(facts->Add(number, record));
    }
  }
}

// A TransactionDB with named transactions.
class Transactions {
 public:
  Transactions(const std::string& path, rocksdb::TxnDBWritePolicy policy)
      : path_(path) {
    rocksdb::TransactionDBOptions options;
    options.write_policy = policy;
    rocksdb::Options db_options;
    db_options.create_if_missing = true;
    rocksdb::TransactionDB* raw = nullptr;
    REQUIRE_OK(rocksdb::TransactionDB::Open(db_options, options, path, &raw));
    db_.reset(raw);
  }

  std::unique_ptr<Transaction> Begin(const std::string& name) {
    std::unique_ptr<Transaction> transaction(db_->BeginTransaction({}));
    REQUIRE_OK(transaction->SetName(name));
    return transaction;
  }

  // Returns a prepared transaction with three keys.
  std::unique_ptr<Transaction> Prepare(const std::string& name) {
    std::unique_ptr<Transaction> transaction = Begin(name);
    for (const char* key : {"a", "b", "c"}) {
      REQUIRE_OK(transaction->Put(name + key, "value"));
    }
    REQUIRE_OK(transaction->Prepare());
    return transaction;
  }

  rocksdb::TransactionDB* operator->() { return db_.get(); }
  WalFacts Facts() {
    WalFacts facts;
    AddWals(path_, &facts);
    return facts;
  }

 private:
  std::string path_;
  std::unique_ptr<rocksdb::TransactionDB> db_;
};

using Names = std::set<std::string>;

// Returns the bytes of a batch in a WAL, with one put for each of `keys`.
std::string BatchAt(uint64_t sequence, const std::vector<std::string>& keys) {
  rocksdb::WriteBatch batch;
  for (const std::string& key : keys) {
    REQUIRE_OK(batch.Put(key, "value"));
  }
  std::string record = batch.Data();
  for (int i = 0; i < 8; ++i) {
    record[i] = static_cast<char>(sequence >> (8 * i));
  }
  return record;
}

constexpr char kBlobIndexType = '\x11';
constexpr char kEntityType = '\x16';

// Returns the bytes of a batch with one entry of this type at key "k".
std::string OneEntry(char type, const std::string& value) {
  std::string batch(12, '\0');
  batch[8] = 1;
  batch += type;
  batch += "\x01k";
  batch += static_cast<char>(value.size());
  return batch + value;
}

}  // namespace

TEST_CASE("Keys of every family are kept in the order of the WALs",
          "[format][rocksdb]") {
  const ScratchDir dir;
  test::Families families = test::OneFamily(test::Quiet());
  families.emplace_back("second", test::Quiet());
  test::OpenDb db(dir / "db", families);
  db.Put("z", "1");
  db.Put("a", "1", "second");
  REQUIRE_OK(db->Flush({}, db.cf()));  // begins the next WAL
  db.DeleteRange("b", "d");
  db.Put("y", "2", "second");
  WalFacts facts;
  AddWals(dir / "db", &facts);
  REQUIRE(facts.entries() == 4);
  REQUIRE_FALSE(facts.has_prepare_sections());
  REQUIRE_FALSE(facts.counts_batches());
  const WalFamily& first = facts.families().at(0);
  REQUIRE(first.entries == 2);
  const WalFamily& second = facts.families().at(db.cf("second")->GetID());
  REQUIRE(second.entries == 2);
}

TEST_CASE("WALs name a limited number of column families",
          "[format][rocksdb]") {
  // Returns a batch that deletes an empty key of each family.
  const auto batch = [](uint32_t families) {
    std::string record;
    PutFixed64(&record, 1);
    PutFixed32(&record, families);
    for (uint32_t id = 0; id < families; ++id) {
      record.push_back('\x04');
      sst::PutVarint64(&record, id);
      record.push_back('\0');
    }
    return record;
  };
  WalFacts facts;
  REQUIRE_OK(facts.Add(5, batch(kMaxFamilies)));
  REQUIRE_OK(facts.Add(5, batch(kMaxFamilies)));
  REQUIRE(facts.families().size() == kMaxFamilies);
  const Status status = facts.Add(5, batch(2 * kMaxFamilies));
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(MessageOf(status).starts_with(
      "WAL 5: expected entries of at most 16384 column families, found more"));
  REQUIRE(facts.families().size() == kMaxFamilies + 1);
}

TEST_CASE("Prepared transactions are named until they end",
          "[format][rocksdb]") {
  const rocksdb::TxnDBWritePolicy policy =
      GENERATE(rocksdb::WRITE_COMMITTED, rocksdb::WRITE_PREPARED,
               rocksdb::WRITE_UNPREPARED);
  const ScratchDir dir;
  Transactions db(dir / "db", policy);
  REQUIRE_OK(db->Put({}, "plain", "value"));
  REQUIRE_FALSE(db.Facts().has_prepare_sections());
  const auto stays = db.Prepare("stays");
  const auto commits = db.Prepare("commits");
  const auto rolls_back = db.Prepare("rolls back");
  REQUIRE(db.Facts().prepared() == Names{"stays", "commits", "rolls back"});
  REQUIRE(db.Facts().has_prepare_sections());
  REQUIRE_OK(commits->Commit());
  REQUIRE_OK(rolls_back->Rollback());
  REQUIRE_OK(db->Put({}, "plain", "value"));
  const WalFacts facts = db.Facts();
  REQUIRE(facts.prepared() == Names{"stays"});
  REQUIRE(facts.counts_batches() == (policy != rocksdb::WRITE_COMMITTED));
  REQUIRE_OK(stays->Rollback());  // RocksDB asserts that none is open
}

TEST_CASE("Unprepared transactions do not count as prepared ones",
          "[format][rocksdb]") {
  const ScratchDir dir;
  Transactions db(dir / "db", rocksdb::WRITE_UNPREPARED);
  rocksdb::TransactionOptions options;
  options.write_batch_flush_threshold = 1;
  std::vector<std::unique_ptr<Transaction>> open;
  for (const char* name : {"one", "two", "three"}) {
    open.emplace_back(db->BeginTransaction({}, options));
    REQUIRE_OK(open.back()->SetName(name));
    for (const char* key : {"a", "b", "c"}) {
      REQUIRE_OK(open.back()->Put(std::string(name) + key, "value"));
    }
  }
  REQUIRE(db.Facts().prepared().empty());
  REQUIRE_OK(open[0]->Prepare());
  REQUIRE_OK(open[1]->Rollback());
  const WalFacts facts = db.Facts();
  REQUIRE(facts.prepared() == Names{"one"});
  REQUIRE(facts.counts_batches());
  REQUIRE_OK(open[0]->Rollback());  // RocksDB asserts that none is open
  REQUIRE_OK(open[2]->Rollback());
}

TEST_CASE(
    "WritePrepared's commits without prepare are detected by their sequences",
    "[format][rocksdb]") {
  const rocksdb::TxnDBWritePolicy policy =
      GENERATE(rocksdb::WRITE_COMMITTED, rocksdb::WRITE_PREPARED);
  const ScratchDir dir;
  Transactions db(dir / "db", policy);
  for (const char* value : {"1", "2"}) {
    const std::unique_ptr<Transaction> transaction(db->BeginTransaction({}));
    for (const char* key : {"a", "b", "c"}) {
      REQUIRE_OK(transaction->Put(key, value));
    }
    REQUIRE_OK(transaction->Commit());
  }
  const WalFacts facts = db.Facts();
  REQUIRE_FALSE(facts.has_prepare_sections());
  REQUIRE(facts.counts_batches() == (policy == rocksdb::WRITE_PREPARED));
}

TEST_CASE("A batch that was written again does not count as overlapping",
          "[format][rocksdb]") {
  WalFacts facts;
  REQUIRE_OK(facts.Add(1, BatchAt(10, {"a", "b", "c"})));
  REQUIRE_OK(facts.Add(1, BatchAt(10, {"a"})));
  REQUIRE_OK(facts.Add(1, BatchAt(11, {"a", "b"})));
  REQUIRE_OK(facts.Add(2, BatchAt(13, {"a", "b"})));
  REQUIRE_FALSE(facts.counts_batches());
  REQUIRE_OK(facts.Add(2, BatchAt(14, {"a"})));
  REQUIRE(facts.counts_batches());
}

TEST_CASE("A batch without entries takes no sequence", "[format][rocksdb]") {
  WalFacts facts;
  REQUIRE_OK(facts.Add(1, BatchAt(10, {"a", "b"})));
  REQUIRE(facts.newest_sequence() == 11);
  // RocksDB writes such a batch after a recovery.
  REQUIRE_OK(facts.Add(2, BatchAt(12, {})));
  REQUIRE(facts.newest_sequence() == 11);
  REQUIRE_OK(facts.Add(2, BatchAt(12, {"c"})));
  REQUIRE(facts.newest_sequence() == 12);
}

TEST_CASE("Entries of a write-committed section take no sequence",
          "[format][rocksdb]") {
  // RocksDB groups the batches of several writers into one record: here a
  // prepared section of two puts, and a put.
  std::string group = BatchAt(10, {"a", "b", "c"});
  const std::string put = group.substr(group.size() - 9);
  REQUIRE(put == std::string("\1\1c\5value", 9));
  group.insert(12, "\x09");
  group.insert(group.size() - put.size(), "\x0a\x01t");
  WalFacts facts;
  REQUIRE_OK(facts.Add(1, group));
  REQUIRE_OK(facts.Add(1, BatchAt(11, {"a"})));
  REQUIRE(facts.prepared() == Names{"t"});
  REQUIRE(facts.entries() == 4);
  REQUIRE_FALSE(facts.counts_batches());
  // The same name is prepared again before the first transaction has ended.
  REQUIRE_FALSE(facts.prepares_twice());
  REQUIRE_OK(facts.Add(3, group));
  REQUIRE(facts.prepares_twice());
}

TEST_CASE("A commit takes the sequences of the entries that it commits",
          "[format][rocksdb]") {
  std::string section = BatchAt(10, {"a", "b", "c"});
  section.insert(12, "\x09");
  section += "\x0a\x01t";
  const std::string commit = BatchAt(10, {}) + "\x0b\x01t";
  WalFacts facts;
  REQUIRE_OK(facts.Add(1, BatchAt(9, {"z"})));
  REQUIRE_OK(facts.Add(1, section));
  REQUIRE(facts.newest_sequence() == 9);
  REQUIRE_OK(facts.Add(2, commit));
  REQUIRE(facts.newest_sequence() == 12);
  REQUIRE_OK(facts.Add(2, BatchAt(13, {"a"})));
  REQUIRE(facts.newest_sequence() == 13);
  REQUIRE_FALSE(facts.counts_batches());
  // Tables have all entries of a section that is in no WAL.
  WalFacts later;
  REQUIRE_OK(later.Add(2, commit));
  REQUIRE(later.newest_sequence() == 10);
}

TEST_CASE("RocksDB counts the sequences of transactions in the same way",
          "[format][rocksdb]") {
  const ScratchDir dir;
  Transactions db(dir / "db", rocksdb::WRITE_COMMITTED);
  REQUIRE_OK(db->Put({}, "plain", "value"));
  const auto commits = db.Prepare("commits");
  const auto rolls_back = db.Prepare("rolls back");
  REQUIRE(db.Facts().newest_sequence() == db->GetLatestSequenceNumber());
  REQUIRE_OK(db->Put({}, "plain", "value"));
  REQUIRE_OK(commits->Commit());
  REQUIRE(db->GetLatestSequenceNumber() == 5);
  REQUIRE(db.Facts().newest_sequence() == 5);
  REQUIRE_OK(rolls_back->Rollback());
  REQUIRE(db.Facts().newest_sequence() == db->GetLatestSequenceNumber());
}

TEST_CASE("WALs report that a section prepares what is no plain value",
          "[format][rocksdb]") {
  const char type = GENERATE('\x16', '\x11', '\x01');  // entity, blob, put
  std::string batch = BatchAt(1, {}) + type + "\x01k\x01v";
  batch[8] = 1;
  WalFacts facts;
  REQUIRE_OK(facts.Add(1, batch));
  REQUIRE_FALSE(facts.prepares_entities());
  batch.insert(12, "\x09");
  batch += "\x0a\x01t";
  REQUIRE_OK(facts.Add(1, batch));
  REQUIRE(facts.prepares_entities() == (type != '\x01'));
}

TEST_CASE("WALs report which blob files they refer to", "[format][rocksdb]") {
  WalFacts facts;
  REQUIRE_OK(facts.Add(1, BatchAt(1, {"a"})));
  REQUIRE(facts.blob_files().empty());
  const std::string plain("\x01\x63\x20\x05\x00", 5);
  REQUIRE_OK(facts.Add(1, OneEntry(kBlobIndexType, plain)));
  REQUIRE(facts.blob_files() == std::set<uint64_t>{99});
  // A reference that cannot be read counts as one to file 0, which never
  // exists.
  REQUIRE_OK(facts.Add(1, OneEntry(kBlobIndexType, "v")));
  REQUIRE(facts.blob_files() == std::set<uint64_t>{0, 99});
}

TEST_CASE("WalFacts has the blob files of columns, and 0 for unreadable "
          "entities",
          "[format][rocksdb]") {
  const auto files_of = [](const std::string& entity) {
    WalFacts facts;
    REQUIRE_OK(facts.Add(1, OneEntry(kEntityType, entity)));
    return facts.blob_files();
  };
  const std::string plain("\x01\x63\x20\x05\x00", 5);
  const std::string entity = test::ReferringEntity(plain);
  REQUIRE(files_of(entity) == std::set<uint64_t>{99});
  // An entity of version 1 has no references.
  REQUIRE(files_of(std::string("\x01\x01\x01" "a\x05", 5) + plain).empty());
  // These entities are damaged, or have a type of column, a kind of reference
  // or a version that RocksDB's own blob files do not need.
  std::string odd_column = entity;
  odd_column[5] = '\x02';
  std::string odd_version = entity;
  odd_version[0] = '\x03';
  for (const std::string& odd :
       {std::string(), entity.substr(0, 4), entity.substr(0, 9),
        entity.substr(0, entity.size() - 1), entity + "x", odd_column,
        odd_version, test::ReferringEntity(test::ExpiringReference())}) {
    REQUIRE(files_of(odd).count(0) == 1);
  }
}

TEST_CASE("WalFacts has the first release that replays all entries",
          "[format][rocksdb]") {
  const auto since = [](const std::string& record) {
    WalFacts facts;
    REQUIRE_OK(facts.Add(1, record));
    Needs needs;
    facts.AddNeeds(&needs);
    return ReleaseName(needs.release());
  };
  const std::string plain("\x01\x63\x20\x05\x00", 5);
  REQUIRE(since(BatchAt(1, {"a"})).empty());
  REQUIRE(since(OneEntry(kBlobIndexType, plain)).empty());
  REQUIRE(since(OneEntry(kEntityType, std::string("\x01\x00", 2))) == "7.5");
  REQUIRE(since(OneEntry('\x18', "v" + std::string(8, '\0'))) == "9.1");
  REQUIRE(since(OneEntry(kEntityType, test::ReferringEntity(plain))) == "11.0");
}

TEST_CASE("A damaged record names its WAL", "[format][rocksdb]") {
  WalFacts facts;
  const Status status = facts.Add(12, BatchAt(1, {"a"}).substr(0, 14));
  REQUIRE(status.IsCorruption());
  REQUIRE(status.ToString().find("WAL 12: ") != std::string::npos);
}

}  // namespace sstferry::wal_facts_test
