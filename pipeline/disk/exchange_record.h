// The record that a pull writes before it exchanges two directories. After a
// crash, the next pull uses the record to tell the new directory from the old
// one.
#pragma once

#include <string>

namespace sstferry {

// The record as lines of text: transfer id, identity of the new database's
// directory, identity of the old database's directory, and "adopted" if the old
// database is kept, or "refresh" if the exchange runs no hooks.
struct ExchangeRecord {
  std::string transfer_id;   // 32 hex digits
  std::string new_identity;
  std::string old_identity;  // kNoDirectory: TARGET_DIR did not exist
  bool adopts_old = false;   // PullOptions::adopts_old
  bool by_refresh = false;   // Existing::kRefresh

  std::string Encode() const;
  // Returns false if a line is missing or has an unexpected value.
  [[nodiscard]] bool DecodeFrom(const std::string& text);
};

inline constexpr char kNoDirectory[] = "none";

// Returns the inode number of a directory; empty if it does not exist. Omits
// the device number, because a reboot may change it, and all compared
// directories are siblings in one file system.
std::string IdentityOf(const std::string& path);

}  // namespace sstferry
