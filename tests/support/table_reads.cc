#include "tests/support/table_reads.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <utility>

#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table_properties.h"
#include "tests/support/catch.h"

namespace sstferry::test {
namespace {

struct Table {
  uint64_t data_bytes = 0;  // the end of the data blocks
  uint64_t bytes = 0;
};

// Changes only while is_watched is false, so reads need no lock.
std::map<std::pair<dev_t, ino_t>, Table>& Tables() {
  static auto* const tables = new std::map<std::pair<dev_t, ino_t>, Table>;
  return *tables;
}

std::atomic<bool> is_watched{false};
std::atomic<uint64_t> data_count{0};
std::atomic<uint64_t> all_count{0};

void Count(int descriptor, uint64_t offset, uint64_t bytes) {
  struct stat found{};
  if (fstat(descriptor, &found) != 0) {
    return;
  }
  const auto table = Tables().find({found.st_dev, found.st_ino});
  if (table == Tables().end()) {
    return;
  }
  ++all_count;
  const bool is_tail =
      offset + bytes >= table->second.bytes && bytes <= kTableTailBytes;
  data_count += offset < table->second.data_bytes && !is_tail ? 1 : 0;
}

using ReadAt = ssize_t (*)(int, void*, size_t, off_t);

ssize_t CountedRead(const char* name, int descriptor, void* buffer,
                    size_t bytes, off_t offset) {
  if (is_watched) {
    Count(descriptor, static_cast<uint64_t>(offset), bytes);
  }
  const auto read_at = reinterpret_cast<ReadAt>(dlsym(RTLD_NEXT, name));
  return read_at(descriptor, buffer, bytes, offset);
}

void Add(const std::string& path) {
  struct stat found{};
  REQUIRE(stat(path.c_str(), &found) == 0);
  rocksdb::SstFileReader reader{rocksdb::Options()};
  REQUIRE(reader.Open(path).ok());
  Tables()[{found.st_dev, found.st_ino}] = {
      reader.GetTableProperties()->data_size,
      static_cast<uint64_t>(found.st_size)};
}

}  // namespace

TableReads::TableReads(const std::vector<std::string>& directories) {
  REQUIRE_FALSE(is_watched);
  Tables().clear();
  for (const std::string& directory : directories) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == ".sst") {
        Add(entry.path());
      }
    }
  }
  data_count = 0;
  all_count = 0;
  is_watched = true;
}

TableReads::~TableReads() { is_watched = false; }

uint64_t TableReads::tables() const { return Tables().size(); }
uint64_t TableReads::data_reads() const { return data_count; }
uint64_t TableReads::all_reads() const { return all_count; }

}  // namespace sstferry::test

// RocksDB is a shared library, so the dynamic linker resolves its reads to
// these functions before those of the C library.
extern "C" {
ssize_t pread(int descriptor, void* buffer, size_t bytes, off_t offset) {
  return sstferry::test::CountedRead("pread", descriptor, buffer, bytes,
                                     offset);
}
ssize_t pread64(int descriptor, void* buffer, size_t bytes, off64_t offset) {
  return sstferry::test::CountedRead("pread64", descriptor, buffer, bytes,
                                     offset);
}
}
