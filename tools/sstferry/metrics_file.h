// The file of --metrics-file, which other programs read at any time.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// The text of an earlier file; empty if there is none, or if it is no plain
// file of at most a megabyte.
std::string ReadMetricsFile(const std::string& path);

// Replaces the file as a whole, with mode 0644: node_exporter is another user.
// kInternal: it stays as it was.
[[nodiscard]] rocksdb::Status WriteMetricsFile(const std::string& path,
                                               const std::string& text);

}  // namespace sstferry
