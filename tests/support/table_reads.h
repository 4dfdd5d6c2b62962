// What this process reads of table files, whoever in it reads: counted in its
// own pread(), which takes the C library's place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sstferry::test {

// RocksDB reads at most so much of a table's end when it opens it.
inline constexpr uint64_t kTableTailBytes = 512u << 10;

// Counts from its making on. A table is known by its inode: a hard link is the
// same one.
//
// Threads: counts all; one object at a time.
class TableReads {
 public:
  // The tables that lie in these directories now.
  explicit TableReads(const std::vector<std::string>& directories);
  ~TableReads();
  TableReads(const TableReads&) = delete;
  TableReads& operator=(const TableReads&) = delete;

  uint64_t tables() const;
  // Reads that met a data block, but for those of a table's end.
  uint64_t data_reads() const;
  uint64_t all_reads() const;
};

}  // namespace sstferry::test
