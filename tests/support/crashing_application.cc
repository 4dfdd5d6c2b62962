#include "tests/support/crashing_application.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "format/coding.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/db_ttl.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/write_batch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::Transaction;

namespace {

constexpr uint32_t kKeys = 60;
constexpr uint32_t kSlots = 4;  // named transactions

bool HasTransactions(AppKind kind) {
  return kind != AppKind::kPlain && kind != AppKind::kTtl;
}

// Drops some entries and changes others.
class SomeFilter : public rocksdb::CompactionFilter {
 public:
  const char* Name() const override { return "sstferry.test.SomeFilter"; }
  Decision FilterV2(int, const Slice&, ValueType type, const Slice& value,
                    std::string* changed, std::string*) const override {
    if (type != ValueType::kValue || value.empty() || value[0] % 3 == 0) {
      return Decision::kKeep;
    }
    *changed = "changed";
    return value[0] % 3 == 1 ? Decision::kRemove : Decision::kChangeValue;
  }
};

rocksdb::ColumnFamilyOptions FamilyOptions(const AppSetup& setup,
                                           const std::string& name) {
  static const SomeFilter kFilter;
  rocksdb::ColumnFamilyOptions options = Quiet();
  if (setup.has_styles && name == "f1") {
    options.enable_blob_files = true;
    options.min_blob_size = 20;
    options.enable_blob_garbage_collection = true;
    options.blob_garbage_collection_age_cutoff = 1.0;
  }
  if (setup.has_styles && name == "f2") {
    options.compaction_style = rocksdb::kCompactionStyleFIFO;
    options.compaction_options_fifo.max_table_files_size = 4000;
  }
  if (setup.has_styles && name == "f3" && setup.kind != AppKind::kTtl) {
    options.compaction_filter = &kFilter;
  }
  std::shared_ptr<rocksdb::MergeOperator> made;
  if (rocksdb::MergeOperator::CreateFromString(rocksdb::ConfigOptions(),
                                               "stringappend", &made)
          .ok()) {
    options.merge_operator = made;
  }
  return options;
}

rocksdb::DBOptions Options(const AppSetup& setup, const std::string& wal_dir) {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.allow_fallocate = false;  // takes most of a short run's time
  options.wal_recovery_mode =
      static_cast<rocksdb::WALRecoveryMode>(setup.recovery_mode);
  options.wal_dir = wal_dir;
  options.recycle_log_file_num = setup.recycles ? 2 : 0;
  options.wal_compression =
      setup.compresses ? rocksdb::kZSTD : rocksdb::kNoCompression;
  options.track_and_verify_wals_in_manifest = setup.tracks;
  options.manual_wal_flush = setup.flushes_manually;
  options.avoid_flush_during_recovery = setup.keeps_wals;
  options.avoid_flush_during_shutdown = true;
  options.two_write_queues = setup.has_two_queues;
  options.atomic_flush = setup.flushes_atomically;
  options.info_log_level = rocksdb::InfoLogLevel::FATAL_LEVEL;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

// The open database. A step that RocksDB refuses (its family was dropped, its
// key is locked) changes nothing.
class Application {
 public:
  Status Open(const AppSetup& setup, const std::string& dir,
              const std::string& wal_dir) {
    kind_ = setup.kind;
    setup_ = setup;
    dir_ = dir;
    const rocksdb::DBOptions options = Options(setup, wal_dir);
    std::vector<std::string> names;
    if (!rocksdb::DB::ListColumnFamilies(options, dir, &names).ok()) {
      names.assign(1, rocksdb::kDefaultColumnFamilyName);
      for (uint32_t i = 1; i < setup.families; ++i) {
        names.push_back("f" + std::to_string(i));
      }
    }
    Families families;
    for (const std::string& name : names) {
      families.emplace_back(name, FamilyOptions(setup, name));
    }
    std::vector<ColumnFamilyHandle*> handles;
    const Status s = OpenAs(options, families, &handles);
    for (ColumnFamilyHandle* handle : handles) {
      handles_[handle->GetName()] = handle;
    }
    return s;
  }

  void Take(const AppStep& step) {
    const std::string name = "t" + std::to_string(step.other % kSlots);
    switch (step.act) {
      case AppAct::kFlush:
        db_->Flush({}, Family(step.family)).PermitUncheckedError();
        break;
      case AppAct::kFlushAll:
        db_->Flush({}, All()).PermitUncheckedError();
        break;
      case AppAct::kSyncWal:
        db_->SyncWAL().PermitUncheckedError();
        break;
      case AppAct::kFlushWal:
        db_->FlushWAL(step.other % 2 == 0).PermitUncheckedError();
        break;
      case AppAct::kCompact:
        db_->CompactRange({}, Family(step.family), nullptr, nullptr)
            .PermitUncheckedError();
        break;
      case AppAct::kIngest:
        Ingest(step);
        break;
      case AppAct::kDeleteFiles: {
        const std::string begin = Key(step.key);
        const Slice first(begin);
        rocksdb::DeleteFilesInRange(db_.get(), Family(step.family), &first,
                                    nullptr)
            .PermitUncheckedError();
        break;
      }
      case AppAct::kCreateFamily:
      case AppAct::kDropFamily:
        ChangeFamilies(step);
        break;
      case AppAct::kTransact:
        if (HasTransactions(kind_)) {
          const std::unique_ptr<Transaction> transaction(Begin());
          Fill(transaction.get(), step);
          transaction->Commit().PermitUncheckedError();
        }
        break;
      case AppAct::kBegin:
      case AppAct::kPrepare:
        if (HasTransactions(kind_) && Named(name) == nullptr) {
          open_.emplace_back(Begin());
          open_.back()->SetName(name).PermitUncheckedError();
          Fill(open_.back().get(), step);
          if (step.act == AppAct::kPrepare) {
            open_.back()->Prepare().PermitUncheckedError();
          }
        }
        break;
      case AppAct::kCommit:
        if (Transaction* transaction = Named(name)) {
          transaction->Commit().PermitUncheckedError();
          Forget(transaction);
        }
        break;
      case AppAct::kRollback:
        if (Transaction* transaction = Named(name)) {
          transaction->Rollback().PermitUncheckedError();
          Forget(transaction);
        }
        break;
      default:
        Write(step);
        break;
    }
  }

  // Leaves the database open if it has open transactions: RocksDB asserts at a
  // close that there are none.
  void CloseUnlessOpenTransactions() {
    if (!open_.empty() || (transactions_ != nullptr && AnyPrepared())) {
      return;
    }
    for (const auto& [name, handle] : handles_) {
      db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
    db_.reset();
  }

  Status Read(AppView* view) {
    rocksdb::ReadOptions options;
    options.total_order_seek = true;
    for (const auto& [name, handle] : handles_) {
      auto& entries = view->families[name];
      const std::unique_ptr<rocksdb::Iterator> it(
          db_->NewIterator(options, handle));
      for (it->SeekToFirst(); it->Valid(); it->Next()) {
        entries[it->key().ToString()] = it->value().ToString();
      }
      if (!it->status().ok()) {
        return it->status();
      }
    }
    if (transactions_ != nullptr) {
      std::vector<Transaction*> prepared;
      transactions_->GetAllPreparedTransactions(&prepared);
      for (const Transaction* transaction : prepared) {
        view->prepared.insert(transaction->GetName());
      }
    }
    return Status::OK();
  }

 private:
  Status OpenAs(const rocksdb::DBOptions& options, const Families& families,
                std::vector<ColumnFamilyHandle*>* handles) {
    Status s;
    if (kind_ == AppKind::kPlain) {
      return rocksdb::DB::Open(options, dir_, families, handles, IntoDb(&db_));
    }
    if (kind_ == AppKind::kTtl) {
      rocksdb::DBWithTTL* ttl = nullptr;
      s = rocksdb::DBWithTTL::Open(options, dir_, families, handles, &ttl,
                                   std::vector<int32_t>(families.size(), 0));
      db_.reset(ttl);
      return s;
    }
    rocksdb::TransactionDBOptions transactions;
    transactions.write_policy = kind_ == AppKind::kWriteCommitted
                                    ? rocksdb::WRITE_COMMITTED
                                : kind_ == AppKind::kWritePrepared
                                    ? rocksdb::WRITE_PREPARED
                                    : rocksdb::WRITE_UNPREPARED;
    transactions.transaction_lock_timeout = 0;
    transactions.default_lock_timeout = 0;
    s = rocksdb::TransactionDB::Open(options, transactions, dir_, families,
                                     handles, &transactions_);
    db_.reset(transactions_);
    return s;
  }

  // Returns one of the existing families, chosen by `number`.
  ColumnFamilyHandle* Family(uint32_t number) const {
    return std::next(handles_.begin(), number % handles_.size())->second;
  }

  std::vector<ColumnFamilyHandle*> All() const {
    std::vector<ColumnFamilyHandle*> all;
    for (const auto& [name, handle] : handles_) {
      all.push_back(handle);
    }
    return all;
  }

  static std::string Key(uint32_t number) {
    return NumberedKey(number % kKeys);
  }
  std::string Value(const AppStep& step) const {
    return std::to_string(step.other) + std::string(step.other % 50, 'v');
  }

  void Write(const AppStep& step) {
    rocksdb::WriteOptions options;
    ColumnFamilyHandle* const family = Family(step.family);
    const std::string key = Key(step.key);
    switch (step.act) {
      case AppAct::kPutLarge:
        db_->Put(options, family, key,
                 RandomBytes(20000 + 60 * step.other, step.key))
            .PermitUncheckedError();
        break;
      case AppAct::kPutUnlogged:
        options.disableWAL = true;
        db_->Put(options, family, key, Value(step)).PermitUncheckedError();
        break;
      case AppAct::kDelete:
        db_->Delete(options, family, key).PermitUncheckedError();
        break;
      case AppAct::kMerge:
        db_->Merge(options, family, key, Value(step)).PermitUncheckedError();
        break;
      case AppAct::kDeleteRange:
        if (!HasTransactions(kind_)) {
          db_->DeleteRange(options, family, key,
                           Key(step.key) + std::to_string(step.other % 10))
              .PermitUncheckedError();
        }
        break;
      case AppAct::kBatch: {
        rocksdb::WriteBatch batch;
        for (uint32_t i = 0; i < 1 + step.other % 5; ++i) {
          batch.Put(Family(step.family + i), Key(step.key + i / 2), Value(step))
              .PermitUncheckedError();
        }
        db_->Write(options, &batch).PermitUncheckedError();
        break;
      }
      default:
        db_->Put(options, family, key, Value(step)).PermitUncheckedError();
        break;
    }
  }

  void Ingest(const AppStep& step) {
    const std::string path = dir_ + ".ingested";
    rocksdb::SstFileWriter writer(
        {}, rocksdb::Options({}, FamilyOptions(setup_, "")));
    if (writer.Open(path).ok() && kind_ == AppKind::kPlain &&
        writer.Put(Key(step.key), "ingested " + Value(step)).ok() &&
        writer.Finish().ok()) {
      db_->IngestExternalFile(Family(step.family), {path}, {})
          .PermitUncheckedError();
    }
    unlink(path.c_str());
  }

  void ChangeFamilies(const AppStep& step) {
    const std::string name = "f" + std::to_string(1 + step.family % 4);
    const auto found = handles_.find(name);
    if (step.act == AppAct::kCreateFamily && found == handles_.end()) {
      ColumnFamilyHandle* handle = nullptr;
      if (db_->CreateColumnFamily(FamilyOptions(setup_, name), name, &handle).ok()) {
        handles_[name] = handle;
      }
    }
    // With transactions, no family is dropped, because an open transaction may
    // still write to it.
    if (step.act == AppAct::kDropFamily && found != handles_.end() &&
        !HasTransactions(kind_)) {
      db_->DropColumnFamily(found->second).PermitUncheckedError();
      db_->DestroyColumnFamilyHandle(found->second).PermitUncheckedError();
      handles_.erase(found);
    }
  }

  Transaction* Begin() {
    rocksdb::TransactionOptions options;
    options.lock_timeout = 0;
    // With WRITE_UNPREPARED, this makes a transaction write to the WAL before
    // it is prepared.
    options.write_batch_flush_threshold = 1;
    return transactions_->BeginTransaction({}, options);
  }

  void Fill(Transaction* transaction, const AppStep& step) const {
    for (uint32_t i = 0; i < 1 + step.other % 4; ++i) {
      transaction
          ->Put(Family(step.family + i), Key(step.key + i), Value(step))
          .PermitUncheckedError();
    }
  }

  Transaction* Named(const std::string& name) const {
    return transactions_ == nullptr ? nullptr
                                    : transactions_->GetTransactionByName(name);
  }

  // Destroys a transaction. A transaction that RocksDB recovered from an
  // earlier run is not in open_, and must be deleted.
  void Forget(Transaction* transaction) {
    const auto ours = std::find_if(
        open_.begin(), open_.end(),
        [&](const auto& each) { return each.get() == transaction; });
    if (ours == open_.end()) {
      delete transaction;
    } else {
      open_.erase(ours);
    }
  }

  bool AnyPrepared() const {
    std::vector<Transaction*> prepared;
    transactions_->GetAllPreparedTransactions(&prepared);
    return !prepared.empty();
  }

  AppKind kind_ = AppKind::kPlain;
  AppSetup setup_{};
  std::string dir_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::TransactionDB* transactions_ = nullptr;  // db_, if it is one
  std::map<std::string, ColumnFamilyHandle*> handles_;
  std::vector<std::unique_ptr<Transaction>> open_;
};

bool AnyStep(const AppHistory& history,
             const std::function<bool(AppAct)>& is_one) {
  return std::any_of(
      history.lives.begin(), history.lives.end(), [&](const AppLife& life) {
        return std::any_of(
            life.steps.begin(), life.steps.end(),
            [&](const AppStep& step) { return is_one(step.act); });
      });
}

rc::Gen<AppSetup> SetupGen(bool has_styles) {
  using rc::gen::arbitrary;
  using rc::gen::inRange;
  return rc::gen::map(
      rc::gen::build<AppSetup>(
          rc::gen::set(&AppSetup::kind,
                       rc::gen::element(
                           AppKind::kPlain, AppKind::kPlain, AppKind::kTtl,
                           AppKind::kWriteCommitted,
                           AppKind::kWriteCommitted, AppKind::kWritePrepared,
                           AppKind::kWriteUnprepared)),
          rc::gen::set(&AppSetup::recovery_mode,
                       rc::gen::element<uint32_t>(0, 1, 2, 2, 2, 3)),
          rc::gen::set(&AppSetup::families, inRange<uint32_t>(1, 4)),
          rc::gen::set(&AppSetup::has_wal_dir, arbitrary<bool>()),
          rc::gen::set(&AppSetup::recycles, arbitrary<bool>()),
          rc::gen::set(&AppSetup::compresses, arbitrary<bool>()),
          rc::gen::set(&AppSetup::tracks, arbitrary<bool>()),
          rc::gen::set(&AppSetup::flushes_manually, arbitrary<bool>()),
          rc::gen::set(&AppSetup::keeps_wals, arbitrary<bool>()),
          rc::gen::set(&AppSetup::has_two_queues, arbitrary<bool>()),
          rc::gen::set(&AppSetup::flushes_atomically, arbitrary<bool>())),
      [has_styles](AppSetup setup) {
        setup.has_styles = has_styles;
        setup.has_two_queues =
            setup.has_two_queues && HasTransactions(setup.kind);
        return setup;
      });
}

rc::Gen<AppStep> StepGenOfApp(bool has_styles) {
  using rc::gen::inRange;
  const auto act = rc::gen::weightedElement<AppAct>(
      {{12, AppAct::kPut},       {1, AppAct::kPutLarge},
       {1, AppAct::kPutUnlogged}, {3, AppAct::kDelete},
       {2, AppAct::kMerge},      {2, AppAct::kDeleteRange},
       {6, AppAct::kBatch},      {4, AppAct::kFlush},
       {1, AppAct::kFlushAll},   {3, AppAct::kSyncWal},
       {3, AppAct::kFlushWal},   {1, AppAct::kCompact},
       {1, AppAct::kIngest},     {1, AppAct::kCreateFamily},
       {1, AppAct::kDropFamily}, {6, AppAct::kTransact},
       {3, AppAct::kPrepare},    {3, AppAct::kCommit},
       {2, AppAct::kRollback},   {1, AppAct::kBegin},
       {has_styles ? 1u : 0u, AppAct::kDeleteFiles}});
  return rc::gen::build<AppStep>(
      rc::gen::set(&AppStep::act, act),
      rc::gen::set(&AppStep::family, inRange<uint32_t>(0, 4)),
      rc::gen::set(&AppStep::key, inRange<uint32_t>(0, kKeys)),
      rc::gen::set(&AppStep::other,
                   rc::gen::resize(100, inRange<uint32_t>(0, 1000))));
}

}  // namespace

const char* AppKindName(AppKind kind) {
  switch (kind) {
    case AppKind::kPlain:
      return "DB";
    case AppKind::kTtl:
      return "DBWithTTL";
    case AppKind::kWriteCommitted:
      return "WRITE_COMMITTED";
    case AppKind::kWritePrepared:
      return "WRITE_PREPARED";
    case AppKind::kWriteUnprepared:
      return "WRITE_UNPREPARED";
  }
  return "?";
}

bool AppHistory::merges() const {
  return AnyStep(*this, [](AppAct act) { return act == AppAct::kMerge; });
}

bool AppHistory::hides_sequences() const {
  return setup.kind == AppKind::kWritePrepared ||
         setup.kind == AppKind::kWriteUnprepared ||
         AnyStep(*this, [](AppAct act) {
           return act == AppAct::kPutUnlogged || act == AppAct::kDropFamily;
         });
}

void showValue(const AppHistory& history, std::ostream& os) {
  static const char* const kActs[] = {
      "put",      "put-large", "put-unlogged", "delete",        "merge",
      "delete-range", "batch", "flush",        "flush-all",     "sync",
      "flush-wal", "compact",  "ingest",       "create-family", "drop-family",
      "transact", "prepare",   "commit",       "rollback",      "begin",
      "delete-files"};
  const AppSetup& setup = history.setup;
  os << AppKindName(setup.kind) << " mode " << setup.recovery_mode
     << " families " << setup.families << (setup.has_wal_dir ? " wal_dir" : "")
     << (setup.recycles ? " recycle" : "")
     << (setup.compresses ? " compress" : "") << (setup.tracks ? " track" : "")
     << (setup.flushes_manually ? " manual_wal_flush" : "")
     << (setup.keeps_wals ? " avoid_flush_during_recovery" : "")
     << (setup.has_two_queues ? " two_write_queues" : "")
     << (setup.flushes_atomically ? " atomic_flush" : "");
  for (const AppLife& life : history.lives) {
    os << "\n  life";
    for (const AppStep& step : life.steps) {
      os << " " << kActs[static_cast<int>(step.act)] << "(" << step.family
         << "," << step.key << "," << step.other << ")";
    }
    os << (life.ends_well ? " close" : " crash");
  }
}

rc::Gen<AppHistory> AppHistoryGen(bool has_styles) {
  const auto life = rc::gen::build<AppLife>(
      rc::gen::set(&AppLife::steps,
                   rc::gen::container<std::vector<AppStep>>(
                       StepGenOfApp(has_styles))),
      rc::gen::set(&AppLife::ends_well, rc::gen::arbitrary<bool>()));
  const auto lives = rc::gen::mapcat(
      rc::gen::inRange<size_t>(1, 5), [life](size_t count) {
        return rc::gen::container<std::vector<AppLife>>(count, life);
      });
  return rc::gen::build<AppHistory>(
      rc::gen::set(&AppHistory::setup, SetupGen(has_styles)),
      rc::gen::set(&AppHistory::lives, lives));
}

void PlayLife(const AppSetup& setup, const AppLife& life,
              const std::string& dir, const std::string& wal_dir,
              const std::function<void(size_t)>& before) {
  Application application;
  if (!application.Open(setup, dir, wal_dir).ok()) {
    _exit(kCannotOpen);
  }
  for (size_t i = 0; i < life.steps.size(); ++i) {
    if (before) before(i);
    application.Take(life.steps[i]);
  }
  if (life.ends_well) {
    application.CloseUnlessOpenTransactions();
  }
  _exit(0);  // like a crash: destroys nothing
}

void WriteView(const AppSetup& setup, const std::string& dir,
               const std::string& wal_dir, const std::string& file) {
  Application application;
  AppView view;
  Status s = application.Open(setup, dir, wal_dir);
  if (s.ok()) {
    s = application.Read(&view);
  }
  std::ofstream out(file);
  out << "status " << (s.ok() ? "" : s.ToString()) << "\n";
  for (const auto& [name, entries] : view.families) {
    out << "family " << name << "\n";
    for (const auto& [key, value] : entries) {
      out << "entry " << ToHex(key) << " =" << ToHex(value) << "\n";
    }
  }
  for (const std::string& name : view.prepared) {
    out << "prepared " << name << "\n";
  }
  out << "end\n";
  out.close();
  _exit(0);
}

AppView ReadView(const std::string& file) {
  AppView view;
  view.died = true;
  std::ifstream in(file);
  std::string family;
  std::string line;
  while (std::getline(in, line)) {
    const size_t space = line.find(' ');
    const std::string what = line.substr(0, space);
    const std::string rest =
        space == std::string::npos ? "" : line.substr(space + 1);
    if (what == "status") {
      view.error = rest;
    } else if (what == "family") {
      family = rest;
      view.families[family];
    } else if (what == "entry") {
      const size_t equals = rest.find(" =");
      view.families[family][rest.substr(0, equals)] = rest.substr(equals + 2);
    } else if (what == "prepared") {
      view.prepared.insert(rest);
    } else if (what == "end") {
      view.died = false;
    }
  }
  return view;
}

std::string Difference(const AppView& expected, const AppView& found) {
  std::ostringstream text;
  for (const auto& [name, entries] : expected.families) {
    const auto family = found.families.find(name);
    if (family == found.families.end()) {
      return "family " + name + " is missing";
    }
    for (const auto& [key, value] : entries) {
      const auto entry = family->second.find(key);
      if (entry == family->second.end()) {
        return "family " + name + ": key " + key + " is missing, expected " +
               value.substr(0, 60);
      }
      if (entry->second != value) {
        return "family " + name + ": key " + key + ": expected " +
               value.substr(0, 60) + ", found " + entry->second.substr(0, 60);
      }
    }
    for (const auto& [key, value] : family->second) {
      if (entries.count(key) == 0) {
        return "family " + name + ": key " + key + " is there, with " +
               value.substr(0, 60);
      }
    }
  }
  for (const auto& [name, entries] : found.families) {
    if (expected.families.count(name) == 0) {
      return "family " + name + " is there";
    }
  }
  return "";
}

}  // namespace sstferry::test
