// Checks that a pull may make a TARGET_DIR current from a source, using the
// record of the pull that made it (last_transfer.json).
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/base/last_transfer.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Facts from the record of an existing TARGET_DIR.
struct Replica {
  uint64_t sequence = 0;  // the source's sequence number; 0: unknown
  std::vector<std::string> families;
};

// Checks options.target_dir. Returns OK with *found false if it is empty or
// does not exist. An empty `source_database_id` (the source has not been asked
// yet) is not compared.
//   kRefused  TARGET_DIR is not a database, has more than the pull asks for, or
//             has files that an exchange must not remove. Without
//             options.adopt, also if it was made from another or an unknown
//             source, was promoted since, or has less than the pull asks for
[[nodiscard]] rocksdb::Status CheckReplica(
    const PullOptions& options, const std::string& source_database_id,
    bool* found, Replica* replica);

// Checks that TARGET_DIR is no standby: its follower may be running.
//   kRefused  TARGET_DIR is a standby
[[nodiscard]] rocksdb::Status CheckNoStandby(const PullOptions& options);

// Checks that TARGET_DIR, now at sequence number `own`, is not newer than its
// source, now at `sequence`. It is newer if it got more writes than the source
// since the last transfer, `last` (HasMoreWrites()). Returns OK if `last` has
// no sequence numbers.
//   kRefused  TARGET_DIR is newer, without options.adopt
[[nodiscard]] rocksdb::Status CheckNotNewer(const PullOptions& options,
                                            const LastTransfer& last,
                                            uint64_t own, uint64_t sequence);

// Like CheckNotNewer(), for an exchange: reads the files of TARGET_DIR, which
// may be open. Returns OK if its MANIFEST is damaged or missing: an exchange
// also repairs it.
//   kRefused  TARGET_DIR is newer, or cannot be read now, without options.adopt
[[nodiscard]] rocksdb::Status CheckSourceNotOlder(
    rocksdb::FileSystem* file_system, const PullOptions& options,
    uint64_t sequence);

// Checks that the pull asks for no more than TARGET_DIR has according to the
// record of its last transfer. A replica of a part of the source must not grow
// because the user forgot --cf, --begin and --end.
//   kRefused  the pull asks for more, without options.adopt
[[nodiscard]] rocksdb::Status CheckNotMore(const PullOptions& options,
                                           const LastTransfer& last);
// Returns the command that refreshes TARGET_DIR without exchanging directories.
std::string InPlaceCommand(const PullOptions& options);
// Returns the selection in TARGET_DIR after a refresh in place.
SelectionText HeldAfterRefresh(const PullOptions& options,
                               const LastTransfer& last);
// Returns LastTransfer::holds_more after a refresh in place: true if TARGET_DIR
// may hold more than HeldAfterRefresh().
bool HoldsMoreAfterRefresh(const PullOptions& options,
                           const LastTransfer& last);

// Sets *id to the transfer that made the database in `dir`; zeros if `dir` has
// no database. Returns false if it has one, but the transfer is unknown.
bool FindOwnTransfer(const std::string& dir, TransferId* id);

// Sets *source_database_id, the id by which a target recognizes its source, to
// options.source_id if the source has no id.
//   kRefused  both exist and differ, or a refresh has neither
[[nodiscard]] rocksdb::Status ChooseSourceId(const PullOptions& options,
                                             std::string* source_database_id);

}  // namespace sstferry
