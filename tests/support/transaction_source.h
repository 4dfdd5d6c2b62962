// A source whose application uses two-phase transactions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/utilities/transaction_db.h"

namespace sstferry::test {

// An open database with the families of StandbyWorld. Its calls require
// success.
class TransactionSource {
 public:
  // Opens an existing database that is closed.
  explicit TransactionSource(const std::string& path);
  ~TransactionSource();
  TransactionSource(const TransactionSource&) = delete;
  TransactionSource& operator=(const TransactionSource&) = delete;

  void Put(const std::string& key);
  // Prepares a transaction that puts `entries` keys, which begin with its name.
  void Prepare(const std::string& name, int entries);
  void Commit(const std::string& name);
  // Rolls back a prepared transaction, perhaps one that was recovered. Returns
  // false if none has this name.
  bool Rollback(const std::string& name);
  // Returns the number of keys that begin with `prefix`.
  uint64_t Count(const std::string& prefix) const;
  uint64_t sequence() const { return db_->GetLatestSequenceNumber(); }

 private:
  std::unique_ptr<rocksdb::TransactionDB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

}  // namespace sstferry::test
