// Sends whole files over several TCP connections, as fast as the kernel allows.
//
// Each connection transfers files one after another; a file is
//
//   offset  size  field
//   0       2     name_bytes   0 ends the connection
//   2       8     file_bytes
//   10      n     name         no '/'
//   10+n    ...   content      by sendfile
//
// Both integers are in the machine's byte order: one program is on both sides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/support/net.h"
#include "rocksdb/status.h"

namespace sstferry::bench {

struct TransferTotals {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

enum class WriteMode {
  kBuffered,
  kDirect,  // O_DIRECT from an aligned receive buffer
};

// Lists the names of the regular files in `dir`, largest first, without LOCK
// and LOG.
[[nodiscard]] rocksdb::Status ListFiles(const std::string& dir,
                                        std::vector<std::string>* names);

// Sends files with one thread per lane; each takes the next name until none is
// left.
[[nodiscard]] rocksdb::Status SendFiles(const std::string& dir,
                                        const std::vector<std::string>& names,
                                        std::vector<Socket>* lanes,
                                        TransferTotals* totals);

// Writes the files that arrive on the lanes into `dir`, which must exist.
// Returns after fdatasync of every file and fsync of `dir`.
[[nodiscard]] rocksdb::Status ReceiveFiles(const std::string& dir,
                                           WriteMode mode,
                                           std::vector<Socket>* lanes,
                                           TransferTotals* totals);

// Accepts the source's lanes: reads the number of lanes from the first
// connection, then accepts the others.
[[nodiscard]] rocksdb::Status AcceptLanes(const Socket& listener,
                                          std::vector<Socket>* lanes);
[[nodiscard]] rocksdb::Status ConnectLanes(const std::string& host_port,
                                           uint32_t count,
                                           std::vector<Socket>* lanes);

}  // namespace sstferry::bench
