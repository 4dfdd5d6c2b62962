#include "tools/sstferry/version.h"

#include <zstd.h>

#include "format/messages_any.h"
#include "rocksdb/version.h"
#include "sstferry/options.h"

namespace sstferry {

std::string RocksdbVersion() { return rocksdb::GetRocksVersionAsString(); }

std::string VersionText() {
  return SoftwareVersion() + "\nRocksDB " + RocksdbVersion() + "\nzstd " +
         ZSTD_versionString() + "\nprotocol " +
         std::to_string(kProtocolVersion) + " (speaks " +
         std::to_string(kOldestProtocolVersion) + " to " +
         std::to_string(kProtocolVersion) + ")\n";
}

}  // namespace sstferry
