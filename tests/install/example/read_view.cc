// usage: read_view LINK [TIMES]
// Counts the keys in the newest view of a standby, TIMES times. LINK is
// DIR.view/current of a standby that is followed with --view-every.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/version.h"

namespace {

#if ROCKSDB_MAJOR >= 10
using OpenedDb = std::unique_ptr<rocksdb::DB>;
#else
using OpenedDb = rocksdb::DB*;
#endif

rocksdb::Status CountKeys(const std::string& link, uint64_t* keys) {
  // Resolves `link` once, because RocksDB also opens files later, when `link`
  // may lead to another view.
  std::error_code error;
  const std::string view = std::filesystem::canonical(link, error);
  if (error) {
    return rocksdb::Status::IOError(link, error.message());
  }
  rocksdb::Options options;  // add the application's comparator etc.
  OpenedDb opened{};
  const rocksdb::Status status =
      rocksdb::DB::OpenForReadOnly(options, view, &opened);
  if (!status.ok()) {
    return status;
  }
  const std::unique_ptr<rocksdb::DB> db(std::move(opened));
  const std::unique_ptr<rocksdb::Iterator> it(
      db->NewIterator(rocksdb::ReadOptions()));
  *keys = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    ++*keys;
  }
  return it->status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: read_view LINK [TIMES]\n";
    return 2;
  }
  const int times = argc > 2 ? std::atoi(argv[2]) : 1;
  for (int i = 0; i < times; ++i) {
    // An application must close a view within keep-views * view-every.
    uint64_t keys = 0;
    const rocksdb::Status status = CountKeys(argv[1], &keys);
    if (!status.ok()) {
      std::cerr << status.ToString() << "\n";
      return 1;
    }
    std::cout << keys << " keys" << std::endl;
  }
  return 0;
}
