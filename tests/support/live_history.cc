#include "tests/support/live_history.h"

#include <cstdio>
#include <cstdlib>

namespace sstferry {
namespace {

constexpr uint64_t kKeys = 4000;
constexpr uint64_t kMaxOperations = 8;
constexpr uint64_t kMaxValueBytes = 300;

uint64_t Next(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Aborts on failure. REQUIRE is not possible: writers call this in threads.
void Must(const rocksdb::Status& status) {
  if (!status.ok()) {
    fprintf(stderr, "history: %s\n", status.ToString().c_str());
    std::abort();
  }
}

std::string Key(uint64_t n) {
  char text[16];
  snprintf(text, sizeof(text), "k%08u", static_cast<unsigned>(n));
  return text;
}

}  // namespace

std::vector<HistoryOperation> HistoryBatch(uint64_t number, size_t families) {
  uint64_t state = number * 0x2545f4914f6cdd1dull + 1;
  std::vector<HistoryOperation> operations(1 + Next(&state) % kMaxOperations);
  for (HistoryOperation& operation : operations) {
    const uint64_t n = Next(&state) % kKeys;
    const uint64_t dice = Next(&state) % 100;
    operation.family = Next(&state) % families;
    operation.key = Key(n);
    if (dice < 85) {
      operation.value.assign(Next(&state) % kMaxValueBytes,
                             static_cast<char>('a' + dice % 26));
      operation.value += std::to_string(number);
    } else if (dice < 98) {
      operation.kind = HistoryOperation::Kind::kDelete;
    } else {
      operation.kind = HistoryOperation::Kind::kDeleteRange;
      operation.value = Key(n + 1 + Next(&state) % 20);
    }
  }
  return operations;
}

rocksdb::WriteBatch ToWriteBatch(
    const std::vector<HistoryOperation>& operations,
    const std::vector<rocksdb::ColumnFamilyHandle*>& families) {
  rocksdb::WriteBatch batch;
  for (const HistoryOperation& operation : operations) {
    auto* family = families[operation.family];
    switch (operation.kind) {
      case HistoryOperation::Kind::kPut:
        Must(batch.Put(family, operation.key, operation.value));
        break;
      case HistoryOperation::Kind::kDelete:
        Must(batch.Delete(family, operation.key));
        break;
      case HistoryOperation::Kind::kDeleteRange:
        Must(batch.DeleteRange(family, operation.key, operation.value));
        break;
    }
  }
  return batch;
}

bool HistoryModel::AdvanceTo(uint64_t sequence) {
  while (sequence_ < sequence) {
    const auto operations = HistoryBatch(next_batch_, state_.size());
    next_batch_++;
    sequence_ += operations.size();
    for (const HistoryOperation& operation : operations) {
      auto& entries = state_[operation.family];
      switch (operation.kind) {
        case HistoryOperation::Kind::kPut:
          entries[operation.key] = operation.value;
          break;
        case HistoryOperation::Kind::kDelete:
          entries.erase(operation.key);
          break;
        case HistoryOperation::Kind::kDeleteRange:
          entries.erase(entries.lower_bound(operation.key),
                        entries.lower_bound(operation.value));
          break;
      }
    }
  }
  return sequence_ == sequence;
}

}  // namespace sstferry
