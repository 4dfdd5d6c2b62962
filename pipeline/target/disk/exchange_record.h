// What is written down before two directories are exchanged, so that whoever
// comes after a crash can tell which is which.
#pragma once

#include <string>

namespace sstferry {

// Lines of text: transfer id, identity of the new database's directory, of the
// old one's, and "refresh" for an exchange between two hooks.
struct ExchangeRecord {
  std::string transfer_id;   // 32 hex digits
  std::string new_identity;
  std::string old_identity;  // kNoDirectory: nothing was to be replaced
  bool refresh = false;

  std::string Encode() const;
  // False when something is missing or strange.
  [[nodiscard]] bool DecodeFrom(const std::string& text);
};

inline constexpr char kNoDirectory[] = "none";

// The inode number of a directory; empty when it does not exist. The device's
// number is left out: it may change with a reboot, and all directories
// compared are siblings on one file system.
std::string IdentityOf(const std::string& path);

}  // namespace sstferry
