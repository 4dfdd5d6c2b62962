// Counts all reads of table files in this process, by a pread() that replaces
// the C library's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sstferry::test {

// Number of bytes that RocksDB reads at most at a table's end to open it.
inline constexpr uint64_t kTableTailBytes = 512u << 10;

// Counts from its construction on. Identifies tables by their inodes, so hard
// links are the same table.
//
// Threads: counts the reads of all threads; one object at a time.
class TableReads {
 public:
  // Counts reads of the tables that are in these directories now.
  explicit TableReads(const std::vector<std::string>& directories);
  ~TableReads();
  TableReads(const TableReads&) = delete;
  TableReads& operator=(const TableReads&) = delete;

  uint64_t tables() const;
  // Returns the number of reads of data blocks, except reads of a table's end.
  uint64_t data_reads() const;
  uint64_t all_reads() const;
};

}  // namespace sstferry::test
