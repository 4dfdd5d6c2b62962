// What a finished pull recorded beside the database it made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sstferry {

inline constexpr char kLastTransferName[] = "last_transfer.json";

// Members are empty where the file does not say, or says something else than
// README's table has.
struct LastTransfer {
  std::string transfer_id;  // 32 hex digits
  std::string source;       // as the operator named it
  std::string finished_at;  // RFC 3339
  std::string source_database_id;
  std::optional<uint64_t> snapshot_sequence;
  std::vector<std::string> column_families;  // that were moved
  // What was asked for; keys as KeyToText() writes them.
  std::vector<std::string> asked_families;   // empty: all
  std::optional<std::string> begin;
  std::optional<std::string> end;
  bool verified = false;
  friend bool operator==(const LastTransfer&, const LastTransfer&) = default;
};

// False when `directory` holds no such record of a transfer with an id. The
// file may be anybody's: bounded, and nothing in it is believed but these.
bool ReadLastTransfer(const std::string& directory, LastTransfer* out);

// The first bytes of a regular file, at most so many; "" when it cannot be
// read.
std::string ReadStart(const std::string& path, size_t bytes);

}  // namespace sstferry
