// The record that a pull writes before it exchanges two directories. After a
// crash the next pull reads it to tell the new directory from the old one.
#pragma once

#include <string>

namespace sstferry {

// The record as lines of text: transfer id, identity of the new database's
// directory, identity of the old one's, and "adopted" if it stays whole.
struct ExchangeRecord {
  std::string transfer_id;   // 32 hex digits
  std::string new_identity;
  std::string old_identity;  // kNoDirectory: TARGET_DIR did not exist
  bool adopts_old = false;   // PullOptions::adopts_old

  std::string Encode() const;
  // False if a line is missing or has an unexpected value.
  [[nodiscard]] bool DecodeFrom(const std::string& text);
};

inline constexpr char kNoDirectory[] = "none";

// Returns the inode number of a directory; empty if it does not exist. Leaves
// out the device's number: a reboot may change it, and all directories that are
// compared are siblings on one file system.
std::string IdentityOf(const std::string& path);

}  // namespace sstferry
