// The record that a pull writes before it exchanges two directories. After a
// crash, the next pull uses the record to tell the new directory from the old
// one.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// The record has one line each for: the transfer's id, the identity of the new
// database's directory, and the identity of the old database's directory. A
// fourth line may follow: "adopted" if the old database is kept, "refresh" if
// the exchange runs no hooks, or "after_swap" if a command of the operator must
// run after the exchange.
struct ExchangeRecord {
  std::string transfer_id;   // 32 hex digits
  std::string new_identity;
  std::string old_identity;  // kNoDirectory: TARGET_DIR did not exist
  bool adopts_old = false;   // from PullOptions::adopts_old
  bool by_refresh = false;   // true for Existing::kRefresh
  // The operator's command has an --after-swap. (A follower's own hook does not
  // count.)
  bool has_after_swap = false;

  std::string Encode() const;
  // Returns false if a line is missing or has an unexpected value.
  [[nodiscard]] bool DecodeFrom(const std::string& text);
};

inline constexpr char kNoDirectory[] = "none";

// Finds the inode number of a directory. Sets *inode to "" if the directory
// certainly does not exist. Does not include the device number, because a
// reboot may change it. This is sufficient, because the compared directories
// have the same parent directory.
//   kInternal  it is unknown whether the directory exists
[[nodiscard]] rocksdb::Status FindInode(const std::string& path,
                                        std::string* inode);

// The database that a directory contains, according to the record of an
// exchange.
enum class Exchanged {
  kNothing,  // the directory certainly does not exist
  kNew,
  kOld,
  kAnother,  // neither of the two databases, or it is unknown which one
};

// Finds out which database of the exchange is in the directory `dir`. The inode
// number alone is no proof: on overlayfs, a later mount may give the number to
// the other directory. So the new database must also have the transfer's id in
// last_transfer.json, and the old database must not. For a copy of either
// database, sets *found to kAnother, because the copy's inode number is new.
//   kInternal, kDenied  the directory or its last_transfer.json cannot be read
[[nodiscard]] rocksdb::Status FindExchanged(const ExchangeRecord& record,
                                            const std::string& dir,
                                            Exchanged* found);

}  // namespace sstferry
