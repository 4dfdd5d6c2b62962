// A history of write batches that is a pure function of the batch number: the
// contents of a database at any sequence number can be computed without a log
// of the writes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace sstferry {

struct HistoryOperation {
  enum class Kind { kPut, kDelete, kDeleteRange };
  Kind kind = Kind::kPut;
  size_t family = 0;
  std::string key;
  std::string value;  // or the end of the deleted range
};

// Returns the operations of batch `number`; each takes one sequence number.
// Batches span families and overwrite, delete and range-delete a bounded set of
// keys.
std::vector<HistoryOperation> HistoryBatch(uint64_t number, size_t families);

rocksdb::WriteBatch ToWriteBatch(
    const std::vector<HistoryOperation>& operations,
    const std::vector<rocksdb::ColumnFamilyHandle*>& families);

class HistoryModel {
 public:
  explicit HistoryModel(size_t families) : state_(families) {}

  // Applies complete batches until the model is at `sequence` or after it.
  // Returns false if it is not at `sequence`, because no batch ends there, or
  // the model was already after it.
  bool AdvanceTo(uint64_t sequence);
  const std::map<std::string, std::string>& family(size_t i) const {
    return state_[i];
  }
  size_t families() const { return state_.size(); }
  uint64_t batches() const { return next_batch_; }

 private:
  std::vector<std::map<std::string, std::string>> state_;
  uint64_t next_batch_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace sstferry
