// Checks that a pull may make the database in TARGET_DIR current from a source.
// Uses the record of the pull that made the database (last_transfer.json).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/base/last_transfer.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Facts from the record of an existing TARGET_DIR.
struct Replica {
  uint64_t sequence = 0;  // the source's sequence number; 0: unknown
  std::vector<std::string> families;
};

// Checks that a pull may replace options.target_dir. Returns OK with *found
// false if the directory is empty or does not exist. If `source_database_id` is
// empty, because the source has not been asked yet, does not compare it.
//   kRefused  TARGET_DIR is not a database, may have more than the pull asks
//             for, or has files that an exchange must not remove. Without
//             options.adopt, also if TARGET_DIR was made from another or an
//             unknown source, was promoted since, or has less than the pull
//             asks for
[[nodiscard]] rocksdb::Status CheckReplica(
    const PullOptions& options, const std::string& source_database_id,
    bool* found, Replica* replica);

// Checks that TARGET_DIR is no standby, because a follower of a standby may be
// running.
//   kRefused  TARGET_DIR is a standby
[[nodiscard]] rocksdb::Status CheckNoStandby(const PullOptions& options);

// Checks that TARGET_DIR is not newer than its source. `own` is the current
// sequence number of TARGET_DIR, and `sequence` is the source's. TARGET_DIR is
// newer if it got more writes than the source since the last transfer, `last`
// (HasMoreWrites()). Returns OK if `last` has no sequence numbers.
//   kRefused  TARGET_DIR is newer, without options.adopt
[[nodiscard]] rocksdb::Status CheckNotNewer(const PullOptions& options,
                                            const LastTransfer& last,
                                            uint64_t own, uint64_t sequence);

// Checks the same as CheckNotNewer(), before an exchange. Reads the sequence
// number of TARGET_DIR from its files; the database may be open. Returns OK if
// its MANIFEST is damaged or missing, because an exchange also repairs it.
//   kRefused  TARGET_DIR is newer, or cannot be read now, without options.adopt
[[nodiscard]] rocksdb::Status CheckSourceNotOlder(
    rocksdb::FileSystem* file_system, const PullOptions& options,
    uint64_t sequence);

// Checks that the pull asks for no more data than TARGET_DIR has. The record of
// the last transfer says what TARGET_DIR has. For example, a user who forgets
// --cf must not turn a replica of one family into a replica of all. `orders`
// are the orders of the column families. Compares intervals in each of them,
// because an interval may be smaller in one order and larger in another.
//   kRefused  the pull asks for more, without options.adopt
[[nodiscard]] rocksdb::Status CheckNotMore(
    const PullOptions& options, const LastTransfer& last,
    const std::vector<const rocksdb::Comparator*>& orders);
// Returns the command that refreshes TARGET_DIR without exchanging directories.
std::string InPlaceCommand(const PullOptions& options);
// Returns what TARGET_DIR contains after a refresh in place, as a selection.
// `orders` are those of the column families.
SelectionText HeldAfterRefresh(
    const PullOptions& options, const LastTransfer& last,
    const std::vector<const rocksdb::Comparator*>& orders);
// Returns the value of LastTransfer::holds_more after a refresh in place. It is
// true if TARGET_DIR may contain more than HeldAfterRefresh() returns.
bool HoldsMoreAfterRefresh(const PullOptions& options,
                           const LastTransfer& last);

// Sets *id to the id of the transfer that made the database in `dir`, or to
// zeros if `dir` has no database. Returns false if `dir` has a database whose
// transfer is unknown.
bool FindOwnTransfer(const std::string& dir, TransferId* id);

// Sets *source_database_id, by which a target recognizes its source, to
// options.source_id if the source has no id.
//   kRefused  both ids exist and differ, or both are missing in a refresh or a
//             swap
[[nodiscard]] rocksdb::Status ChooseSourceId(const PullOptions& options,
                                             std::string* source_database_id);

}  // namespace sstferry
