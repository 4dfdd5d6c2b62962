// A small database whose tables are the result of random steps.
#pragma once

#include <rapidcheck.h>

#include <memory>
#include <string>
#include <vector>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/parts/table_file.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::test {

enum class Op {
  kPut,
  kDelete,
  kSingleDelete,
  kFlush,
  kCompact,
  kIngest,
  kHold,
  kMerge,
  kDeleteRange,
};

// `special`: also makes entries that only RocksDB's iterator can read.
inline rc::Gen<Op> OpGen(bool special) {
  return rc::gen::weightedElement<Op>({{20, Op::kPut},
                                       {6, Op::kDelete},
                                       {3, Op::kSingleDelete},
                                       {3, Op::kFlush},
                                       {1, Op::kCompact},
                                       {2, Op::kIngest},
                                       {1, Op::kHold},
                                       {special ? 1u : 0u, Op::kMerge},
                                       {special ? 1u : 0u, Op::kDeleteRange}});
}

inline std::string KeyOf(int number) {
  return number == 0 ? "" : "key" + std::to_string(number % 10) +
                                std::string(number / 10, 'x');
}

class TableWorld {
 public:
  TableWorld() { options_.create_if_missing = true; }
  ~TableWorld() {
    for (const rocksdb::Snapshot* received : received_) {
      db_->ReleaseSnapshot(received);
    }
  }

  rocksdb::Options& options() { return options_; }
  rocksdb::BlockBasedTableOptions& table() { return table_; }
  rocksdb::DB* db() { return db_.get(); }

  void Open() {
    options_.disable_auto_compactions = true;
    options_.enforce_single_del_contracts = false;
    options_.level_compaction_dynamic_level_bytes = false;
    options_.target_file_size_base = 2000;
    options_.merge_operator = MergeOperatorNamed("stringappend");
    options_.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_));
    REQUIRE_OK(rocksdb::DB::Open(options_, dir_ / "db", IntoDb(&db_)));
  }

  void Do(Op op, int number, int other) {
    const std::string key = KeyOf(number);
    const std::string value = std::to_string(++writes_) +
                              std::string(static_cast<size_t>(other), 'v');
    switch (op) {
      case Op::kPut: REQUIRE_OK(db_->Put({}, key, value)); break;
      case Op::kDelete: REQUIRE_OK(db_->Delete({}, key)); break;
      case Op::kSingleDelete: REQUIRE_OK(db_->SingleDelete({}, key)); break;
      case Op::kMerge: REQUIRE_OK(db_->Merge({}, key, value)); break;
      case Op::kDeleteRange: DeleteRange(key, KeyOf(other)); break;
      case Op::kFlush: REQUIRE_OK(db_->Flush({})); break;
      case Op::kCompact: Compact(1 + number % 4); break;
      case Op::kIngest: Ingest(key, value); break;
      case Op::kHold: received_.push_back(db_->GetSnapshot()); break;
    }
  }

  // Does up to 200 random steps.
  void Live(bool special) {
    const rc::Gen<Op> ops = OpGen(special);
    const int count = *rc::gen::inRange(1, 200);
    for (int i = 0; i < count; ++i) {
      Do(*ops, *rc::gen::inRange(0, 60), *rc::gen::inRange(0, 60));
    }
  }

  // Returns all files of the family; flushes the memtable first.
  std::vector<TableFile> Files() {
    REQUIRE_OK(db_->Flush({}));
    return ListTableFiles(db_.get(), family());
  }
  rocksdb::ColumnFamilyHandle* family() { return db_->DefaultColumnFamily(); }

 private:
  void DeleteRange(const std::string& a, const std::string& b) {
    const bool ordered = options_.comparator->Compare(a, b) <= 0;
    REQUIRE_OK(db_->DeleteRange({}, family(), ordered ? a : b,
                                ordered ? b : a));
  }
  // Compacts all files at or above `level` into that level.
  void Compact(int level) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    std::vector<std::string> names;
    for (const auto& at : metadata.levels) {
      for (const auto& file : at.files) {
        if (at.level <= level) {
          names.push_back(file.name);
        }
      }
    }
    if (!names.empty()) {
      REQUIRE_OK(db_->CompactFiles({}, names, level));
    }
  }
  void Ingest(const std::string& key, const std::string& value) {
    const std::string path = dir_ / ("in" + std::to_string(writes_) + ".sst");
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    REQUIRE_OK(writer.Open(path));
    REQUIRE_OK(writer.Put(key.empty() ? "key" : key, value));
    REQUIRE_OK(writer.Finish());
    REQUIRE_OK(db_->IngestExternalFile({path}, {}));
  }

  ScratchDir dir_;
  rocksdb::Options options_;
  rocksdb::BlockBasedTableOptions table_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<const rocksdb::Snapshot*> received_;
  int writes_ = 0;
};

}  // namespace sstferry::test
