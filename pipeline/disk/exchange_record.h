// The record that a pull writes before it exchanges two directories. After a
// crash the next pull uses it to distinguish the new directory from the old
// one.
#pragma once

#include <string>

namespace sstferry {

// The record as lines of text: transfer id, identity of the new database's
// directory, identity of the old one's, and "adopted" if the old one is kept
// whole, or "refresh" if no command runs around the exchange.
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
// the device number: a reboot may change it, and all compared directories are
// siblings on one file system.
std::string IdentityOf(const std::string& path);

}  // namespace sstferry
