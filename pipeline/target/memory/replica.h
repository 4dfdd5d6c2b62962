// Whether a TARGET_DIR may be made current from a source: what it remembers of
// the pull that made it.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Of a directory that is there and not empty.
struct Replica {
  uint64_t sequence = 0;  // of the source, that it holds; 0: it does not say
  std::vector<std::string> families;
};

// OK, with *found false, when there is nothing to lose. `source_database_id`
// may be empty: nobody has asked the source yet, and it is not compared.
//   kRefused  no database; made from another source, or nobody says from
//             which, without options.adopt; holds more than is asked for, or
//             what an exchange must not take away
[[nodiscard]] rocksdb::Status CheckReplica(
    const PullOptions& options, const std::string& source_database_id,
    bool* found, Replica* replica);

// The id by which a target remembers its source: what the source says, else
// options.source_id.
//   kRefused  they differ, or a refresh gets neither
[[nodiscard]] rocksdb::Status ChooseSourceId(const PullOptions& options,
                                             std::string* source_database_id);

}  // namespace sstferry
