// Reads and formats last_transfer.json, a record that sstferry keeps in every
// replica. The record describes the last transfer into the directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

inline constexpr char kLastTransferName[] = "last_transfer.json";

// The selected part of a database, as recorded. The families are sorted. The
// keys are in the format of KeyToText().
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

// The state of a database before a refresh in place ingests chunks into it.
struct IngestionStart {
  uint64_t sequence = 0;      // last sequence number
  uint64_t table_number = 0;  // highest number of a table; 0: no table
  friend bool operator==(const IngestionStart&,
                         const IngestionStart&) = default;
};

// Contents of the record. A member stays empty if the record lacks it, or if
// its format is unknown.
struct LastTransfer {
  std::string transfer_id;  // 32 hex digits
  std::string source;       // as given by the operator
  std::string finished_at;  // RFC 3339
  std::string promoted_at;  // RFC 3339; empty: not promoted
  std::string source_database_id;
  std::optional<uint64_t> snapshot_sequence;
  // The last sequence number of the directory's database after the transfer. If
  // the record of a clone lacks this number, it is snapshot_sequence.
  std::optional<uint64_t> target_sequence;
  // Set if a refresh in place began to ingest into the database, but has not
  // recorded the end of the ingestion. Then target_sequence does not count this
  // ingestion.
  std::optional<IngestionStart> ingesting;
  std::string snapshot_taken_at;  // RFC 3339
  std::string method;             // "ingest", "clone"
  std::vector<std::string> column_families;  // transferred families
  SelectionText asked;
  // The part of the source's data that is in the directory. This is more than
  // `asked` if the last refresh in place requested only a part of it.
  SelectionText holds;
  // True if the directory may have more data than `holds`. This happens if no
  // transfer made the database, and --adopt accepted only a part of it.
  bool holds_more = false;
  bool verified = false;
  // Returns true if the directory is a copy of the database that the record
  // names. Returns false after a promotion, because an application may have
  // written to the directory after the promotion.
  bool is_copy() const {
    return !source_database_id.empty() && promoted_at.empty();
  }
  friend bool operator==(const LastTransfer&, const LastTransfer&) = default;
};

// Reads the record. Returns false if `directory` has no record with a transfer
// id. Reads a limited number of bytes, and uses only the members of
// LastTransfer, because any program may have written the file.
bool ReadLastTransfer(const std::string& directory, LastTransfer* out);
// Does the same as ReadLastTransfer(), but returns the errors of ReadRecord().
// After an error, *found is false.
[[nodiscard]] rocksdb::Status FindLastTransfer(const std::string& directory,
                                               bool* found, LastTransfer* out);

// Returns true if the target has got more writes since the transfer than the
// source. An application then writes to the target, for example after a
// failover. `own` is the target's sequence number now, and `source` is the
// source's. Compares the growth of both numbers and not the numbers themselves:
// after an ingestion, the target's number differs from the source's.
bool HasMoreWrites(const LastTransfer& last, uint64_t own, uint64_t source);

// The time of a replica's data.
struct ReplicaMoment {
  // Seconds since 1970. The earlier of two times: the time of the snapshot by
  // the source's clock, and the end of the transfer by this machine's clock.
  // The snapshot is never newer than this time, even if the source's clock was
  // ahead.
  uint64_t seconds = 0;
  // Minimum number of seconds by which the source's clock was ahead. 0 if it is
  // not known to have been ahead.
  uint64_t source_ahead_seconds = 0;
};
// Computes the time of the replica that `last` describes. Returns nullopt if
// the record has no time of the snapshot.
std::optional<ReplicaMoment> MomentOf(const LastTransfer& last);

// Formats the record of the transfer that `summary` describes. `holds` and
// `holds_more` are members of the record. If the directory has data that this
// transfer did not request, that data is as old as the transfer of `before`,
// the previous record. The new record then gets the snapshot time of `before`,
// so that the record is never newer than the oldest data.
std::string LastTransferText(const Summary& summary,
                             const SelectionText& holds, bool holds_more,
                             const LastTransfer& before);

// Formats the record in `directory`, but with target_sequence and ingesting of
// `last`. Sets *text to "" if there is no record. A refresh in place writes
// this record before and after it ingests chunks. A later run can then tell the
// ingestion from an application's writes.
//   kDenied, kInternal  the record cannot be read
[[nodiscard]] rocksdb::Status FormatSequences(const std::string& directory,
                                              const LastTransfer& last,
                                              std::string* text);

// Formats the record of a promotion from the standby's record in `directory`.
// `sequence` is the sequence number of the promoted database, and
// `moment_micros` is the time of its data (microseconds since 1970; 0:
// unknown). If `directory` has no record, the result has no transfer id, and
// ReadLastTransfer() returns false for it.
std::string PromotedTransferText(const std::string& directory,
                                 uint64_t sequence, uint64_t moment_micros);

// Formats the selection as command-line options. Returns an empty string if
// everything is selected.
std::string SelectionWords(const SelectionText& selection);

// Reads at most the first `bytes` bytes of a file. Sets *found to false only if
// the file certainly does not exist. If `path` is a symbolic link or anything
// else but a regular file, *found is true and *text is empty.
//   kDenied    this account may not access the path
//   kInternal  the file cannot be read
[[nodiscard]] rocksdb::Status ReadRecord(const std::string& path, size_t bytes,
                                         bool* found, std::string* text);

// Returns at most the first `bytes` bytes of a regular file. Returns an empty
// string if the file cannot be read.
std::string ReadStart(const std::string& path, size_t bytes);

}  // namespace sstferry
