// Reads the record that a finished pull left beside its database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sstferry {

inline constexpr char kLastTransferName[] = "last_transfer.json";

// Contents of the record. Members are empty if the file does not have them, or
// not in the documented form.
struct LastTransfer {
  std::string transfer_id;  // 32 hex digits
  std::string source;       // as given by the operator
  std::string finished_at;  // RFC 3339
  std::string source_database_id;
  std::optional<uint64_t> snapshot_sequence;
  std::string snapshot_taken_at;  // RFC 3339
  std::string method;             // "ingest", "clone"
  std::vector<std::string> column_families;  // transferred ones
  // The requested selection; keys as KeyToText() writes them.
  std::vector<std::string> asked_families;   // empty: all
  std::optional<std::string> begin;
  std::optional<std::string> end;
  bool verified = false;
  friend bool operator==(const LastTransfer&, const LastTransfer&) = default;
};

// Returns false if `directory` has no such record of a transfer with an id. The
// file is not trusted, because any program may have written it: its size is
// bounded, and only the members above are taken from it.
bool ReadLastTransfer(const std::string& directory, LastTransfer* out);

// Returns the selection as words of a command; empty: everything was asked for.
std::string SelectionWords(const LastTransfer& last);

// Returns at most the first `bytes` bytes of a regular file; "" if it cannot be
// read.
std::string ReadStart(const std::string& path, size_t bytes);

}  // namespace sstferry
