#include "tests/support/sample_database.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"

namespace sstferry {

void MakeSampleDatabase(const std::string& path, const SampleShape& shape) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.disable_auto_compactions = true;
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(options, path, IntoDb(&db)));
  std::mt19937 random(7);
  for (size_t i = 0; i < shape.entries; ++i) {
    char key[32];
    std::snprintf(key, sizeof(key), "key%09zu", i);
    std::string value(shape.value_bytes, '\0');
    for (char& c : value) {
      c = static_cast<char>(random());
    }
    REQUIRE_OK(db->Put(rocksdb::WriteOptions(), key, value));
    const size_t a_file = std::max<size_t>(1, shape.entries / shape.files);
    if (!shape.in_wal_only && (i + 1) % a_file == 0) {
      REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
    }
  }
  if (!shape.in_wal_only) {
    REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
  }
  REQUIRE_OK(db->Close());
}

std::map<std::string, std::string> EntriesOf(const std::string& path) {
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(
      rocksdb::DB::OpenForReadOnly(rocksdb::Options(), path, IntoDb(&db)));
  std::map<std::string, std::string> entries;
  const std::unique_ptr<rocksdb::Iterator> it(
      db->NewIterator(rocksdb::ReadOptions()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    entries[it->key().ToString()] = it->value().ToString();
  }
  REQUIRE_OK(it->status());
  return entries;
}

PullOptions AsChunks(PullOptions options) {
  if (options.method == PullMethod::kAuto) {
    options.method = PullMethod::kIngest;
  }
  return options;
}

PullOptions PullFrom(const std::string& source, const std::string& target) {
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.snapshot_ttl = std::chrono::seconds(0);
  options.source.directory = source;
  options.target_dir = target;
  options.lanes = 2;
  options.chunk_bytes = 256u << 10;
  // Without retries, a test sees each failure.
  options.timeouts.retry = std::chrono::milliseconds(0);
  return options;
}

PullOptions PullFrom(const HostPort& where, const std::string& target) {
  PullOptions options = PullFrom("", target);
  options.source = AddressAt(where);
  return options;
}

Summary RunPull(const PullOptions& options) {
  Summary summary;
  const rocksdb::Status status = MakePull(options)->Run(&summary);
  // Throws on failure. REQUIRE is not possible: tests run pulls in threads of
  // their own.
  if (status.ToString() != summary.status.ToString()) {
    throw std::runtime_error("the pull returned " + status.ToString() +
                             ", its summary says " +
                             summary.status.ToString());
  }
  return summary;
}

std::vector<std::string> NamesOf(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace sstferry
