// Reads the record that a finished pull left beside its database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

inline constexpr char kLastTransferName[] = "last_transfer.json";

// A selection as it is recorded: families in order, keys as KeyToText() writes
// them.
struct SelectionText {
  std::vector<std::string> families;  // empty: all
  std::optional<std::string> begin;
  std::optional<std::string> end;
  bool is_all() const {
    return families.empty() && !begin.has_value() && !end.has_value();
  }
  friend bool operator==(const SelectionText&, const SelectionText&) = default;
};
SelectionText TextOf(const Selection& selection);

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
  SelectionText asked;
  // The part of its source that the directory holds: more than was asked for
  // if a refresh in place asked for less.
  SelectionText holds;
  bool verified = false;
  friend bool operator==(const LastTransfer&, const LastTransfer&) = default;
};

// Returns false if `directory` has no such record of a transfer with an id. The
// file is not trusted, because any program may have written it: its size is
// bounded, and only the members above are taken from it.
bool ReadLastTransfer(const std::string& directory, LastTransfer* out);

// Returns the contents of a record of `summary`, whose directory holds `holds`.
std::string LastTransferText(const Summary& summary,
                             const SelectionText& holds);

// Returns the contents of the record of a promotion: that of the last cut in
// `directory`, with the sequence and the moment (microseconds since 1970; 0:
// not known) that the database begins with. Empty: there is no record of a cut.
std::string PromotedTransferText(const std::string& directory,
                                 uint64_t sequence, uint64_t moment_micros);

// Returns the selection as words of a command; empty: everything was asked for.
std::string SelectionWords(const SelectionText& selection);

// Reads at most the first `bytes` bytes of a file. *found is false only if it is
// known that there is none: what this account may not look at is an error. Of
// what is no regular file, a link included, *text is empty.
//   kDenied    this account may not look there
//   kInternal  it cannot be read
[[nodiscard]] rocksdb::Status ReadRecord(const std::string& path, size_t bytes,
                                         bool* found, std::string* text);

// Returns at most the first `bytes` bytes of a regular file; "" if it cannot be
// read.
std::string ReadStart(const std::string& path, size_t bytes);

}  // namespace sstferry
