// The record that a pull writes before it exchanges two directories. After a
// crash, the next pull uses the record to tell the new directory from the old
// one.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// The record as lines of text: transfer id, identity of the new database's
// directory, identity of the old database's directory, and "adopted" if the old
// database is kept, "refresh" if the exchange runs no hooks, or "after_swap" if
// a command of the operator must run after it.
struct ExchangeRecord {
  std::string transfer_id;   // 32 hex digits
  std::string new_identity;
  std::string old_identity;  // kNoDirectory: TARGET_DIR did not exist
  bool adopts_old = false;   // PullOptions::adopts_old
  bool by_refresh = false;   // Existing::kRefresh
  // PullOptions::after_swap was given, and not by a follower.
  bool has_after_swap = false;

  std::string Encode() const;
  // Returns false if a line is missing or has an unexpected value.
  [[nodiscard]] bool DecodeFrom(const std::string& text);
};

inline constexpr char kNoDirectory[] = "none";

// Finds the inode number of a directory. *inode is empty only if the
// directory certainly does not exist. Omits the device number, because a reboot
// may change it, and all compared directories are siblings in one file system.
//   kInternal  it is unknown whether the directory exists
[[nodiscard]] rocksdb::Status FindInode(const std::string& path,
                                        std::string* inode);

// The role of a directory in an exchange, according to the exchange's record.
enum class Exchanged {
  kNothing,  // the name certainly does not exist
  kNew,
  kOld,
  kAnother,  // neither database, or it is unknown which one
};

// Finds out which database of the exchange has the name `dir`. An inode number
// alone proves nothing: on overlayfs, a later mount may give it to the other
// directory. So the new database must also have the transfer's id in
// last_transfer.json, and the old one must not. A copy of either database is
// kAnother, because its inode number is new.
//   kInternal, kDenied  the directory or its last_transfer.json cannot be read
[[nodiscard]] rocksdb::Status FindExchanged(const ExchangeRecord& record,
                                            const std::string& dir,
                                            Exchanged* found);

}  // namespace sstferry
