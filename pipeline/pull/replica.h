// Checks that a pull may make a TARGET_DIR current from a source, by the
// record of the pull that made it (last_transfer.json).
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/base/last_transfer.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// The record of an existing TARGET_DIR.
struct Replica {
  uint64_t sequence = 0;  // the source's sequence number; 0: unknown
  std::vector<std::string> families;
};

// Checks options.target_dir. OK with *found false if it is empty or does not
// exist. An empty `source_database_id` (the source has not been asked yet) is
// not compared.
//   kRefused  no database; made from another or an unknown source, without
//             options.adopt; holds more than the pull asks for, or less without
//             options.adopt, or files that an exchange must not remove
[[nodiscard]] rocksdb::Status CheckReplica(
    const PullOptions& options, const std::string& source_database_id,
    bool* found, Replica* replica);

// Checks that the pull asks for no more than TARGET_DIR holds by the record of
// its last transfer: a replica of a part is not to grow because a run forgot
// --cf, --begin and --end.
//   kRefused  it asks for more, without options.adopt
[[nodiscard]] rocksdb::Status CheckNotMore(const PullOptions& options,
                                           const LastTransfer& last);
// Returns what TARGET_DIR holds after a refresh in place.
SelectionText HeldAfterRefresh(const PullOptions& options,
                               const LastTransfer& last);

// Sets *id to the transfer that the database in `dir` is of; zeros: there is no
// database. Returns false if there is one of which nobody knows how old it is.
bool FindOwnTransfer(const std::string& dir, TransferId* id);

// Sets *source_database_id, the id by which a target remembers its source, to
// options.source_id if the source has none.
//   kRefused  the two differ, or a refresh has neither
[[nodiscard]] rocksdb::Status ChooseSourceId(const PullOptions& options,
                                             std::string* source_database_id);

}  // namespace sstferry
