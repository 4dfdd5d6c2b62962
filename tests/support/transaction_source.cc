#include "tests/support/transaction_source.h"

#include "rocksdb/utilities/transaction.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test {

TransactionSource::TransactionSource(const std::string& path) {
  rocksdb::TransactionDB* made = nullptr;
  REQUIRE_OK(rocksdb::TransactionDB::Open(
      rocksdb::DBOptions(), rocksdb::TransactionDBOptions(), path,
      {{"default", Quiet()}, {"other", Quiet()}}, &families_, &made));
  db_.reset(made);
}

TransactionSource::~TransactionSource() {
  for (rocksdb::ColumnFamilyHandle* const family : families_) {
    db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  }
}

void TransactionSource::Put(const std::string& key) {
  REQUIRE_OK(db_->Put(rocksdb::WriteOptions(), families_[0], key, "value"));
}

void TransactionSource::Prepare(const std::string& name, int entries) {
  // The database owns the transaction, by its name.
  rocksdb::Transaction* const transaction =
      db_->BeginTransaction(rocksdb::WriteOptions());
  REQUIRE_OK(transaction->SetName(name));
  for (int i = 0; i < entries; ++i) {
    REQUIRE_OK(
        transaction->Put(families_[0], name + std::to_string(i), "value"));
  }
  REQUIRE_OK(transaction->Prepare());
}

void TransactionSource::Commit(const std::string& name) {
  const std::unique_ptr<rocksdb::Transaction> transaction(
      db_->GetTransactionByName(name));
  REQUIRE(transaction != nullptr);
  REQUIRE_OK(transaction->Commit());
}

bool TransactionSource::Rollback(const std::string& name) {
  const std::unique_ptr<rocksdb::Transaction> transaction(
      db_->GetTransactionByName(name));
  if (transaction == nullptr) {
    return false;
  }
  REQUIRE_OK(transaction->Rollback());
  return true;
}

uint64_t TransactionSource::Count(const std::string& prefix) const {
  uint64_t count = 0;
  const std::unique_ptr<rocksdb::Iterator> it(
      db_->NewIterator(rocksdb::ReadOptions(), families_[0]));
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix);
       it->Next()) {
    ++count;
  }
  REQUIRE_OK(it->status());
  return count;
}

}  // namespace sstferry::test
