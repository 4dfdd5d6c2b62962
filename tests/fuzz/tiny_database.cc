#include "tests/fuzz/tiny_database.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"

namespace sstferry::fuzz {

using rocksdb::Status;

void MustWork(const Status& status) {
  if (!status.ok()) {
    fprintf(stderr, "the target cannot be set up: %s\n",
            status.ToString().c_str());
    abort();
  }
}

TinyDatabase::TinyDatabase() : directory_(scratch_ / "db") {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  std::unique_ptr<rocksdb::DB> db;
  MustWork(rocksdb::DB::Open(options, directory_, IntoDb(&db)));
  rocksdb::ColumnFamilyHandle* reverse = nullptr;
  rocksdb::ColumnFamilyOptions family(options);
  family.comparator = rocksdb::ReverseBytewiseComparator();
  MustWork(db->CreateColumnFamily(family, "reverse", &reverse));
  for (int i = 100; i < 300; ++i) {
    const std::string key = std::string("key").append(std::to_string(i));
    const std::string value(static_cast<size_t>(i), 'v');
    MustWork(db->Put({}, key, value));
    MustWork(db->Put({}, reverse, key, value));
  }
  MustWork(db->Put({}, "", "the empty key"));
  MustWork(db->DeleteRange({}, db->DefaultColumnFamily(), "key250", "key260"));
  for (rocksdb::ColumnFamilyHandle* handle :
       {db->DefaultColumnFamily(), reverse}) {
    MustWork(db->Flush({}, handle));
  }
  MustWork(db->DestroyColumnFamilyHandle(reverse));
  MustWork(db->Close());
}

}  // namespace sstferry::fuzz
