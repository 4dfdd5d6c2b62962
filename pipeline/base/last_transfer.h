// Reads the record of the last transfer into a database's directory, and
// formats its contents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

inline constexpr char kLastTransferName[] = "last_transfer.json";

// A recorded selection: families in order, keys as written by KeyToText().
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

// Contents of the record. A member is empty if the file does not have it, or
// has it in an undocumented format.
struct LastTransfer {
  std::string transfer_id;  // 32 hex digits
  std::string source;       // as given by the operator
  std::string finished_at;  // RFC 3339
  std::string promoted_at;  // RFC 3339; empty: it was not promoted
  std::string source_database_id;
  std::optional<uint64_t> snapshot_sequence;
  // The directory's own last sequence number after the transfer. It may be
  // higher than the directory ever reaches (WithTargetSequence()).
  std::optional<uint64_t> target_sequence;
  std::string snapshot_taken_at;  // RFC 3339
  std::string method;             // "ingest", "clone"
  std::vector<std::string> column_families;  // those that were transferred
  SelectionText asked;
  // The portion of the source that the directory holds: more than `asked` if a
  // refresh in place requested less.
  SelectionText holds;
  // True if the directory may hold more than `holds`, because no transfer made
  // it, and only a portion of it was adopted.
  bool holds_more = false;
  bool verified = false;
  // Returns true if the record names the database of which the directory is a
  // copy. Returns false after a promotion, because an application may have
  // written to the directory since.
  bool is_copy() const {
    return !source_database_id.empty() && promoted_at.empty();
  }
  friend bool operator==(const LastTransfer&, const LastTransfer&) = default;
};

// Reads the record. Returns false if `directory` has no record with a transfer
// id. Any program may have written the file, so its size is limited, and only
// the members above are used.
bool ReadLastTransfer(const std::string& directory, LastTransfer* out);
// Like ReadLastTransfer(), but reports why the file cannot be read, as
// ReadRecord() does. Then *found is false.
[[nodiscard]] rocksdb::Status FindLastTransfer(const std::string& directory,
                                               bool* found, LastTransfer* out);

// Returns true if the database of the record, which is at sequence number `own`
// now, has got more writes since the transfer than its source, which is at
// `source` now: an application writes to it, as after a failover. Compares only
// how much each number has grown: a database into which chunks are ingested
// does not have the numbers of its source.
bool HasMoreWrites(const LastTransfer& last, uint64_t own, uint64_t source);

// A replica's point in time.
struct ReplicaMoment {
  // The earlier of two times, in seconds since 1970: that of the snapshot, by
  // the source's clock, and the end of its transfer, by this machine's clock.
  // So the snapshot is not newer than this, even if the source's clock was
  // ahead.
  uint64_t seconds = 0;
  // The source's clock was at least this much ahead; 0: not known to be ahead.
  uint64_t source_ahead_seconds = 0;
};
// Returns nullopt if the snapshot's time is unknown.
std::optional<ReplicaMoment> MomentOf(const LastTransfer& last);

// Formats the record of `summary`, for a directory that holds `holds` and, with
// `holds_more`, perhaps more. If `holds` is more than was requested, the rest
// is as old as the snapshot of `before`. The record then has the time of that
// snapshot, so that it is never newer than the directory's oldest data.
std::string LastTransferText(const Summary& summary,
                             const SelectionText& holds, bool holds_more,
                             const LastTransfer& before);

// Formats the record in `directory` with another target_sequence; empty if
// there is no record. Written before an ingestion, with a number that the
// ingestion does not exceed: if the process dies before the next record, the
// ingestion does not look like writes of an application.
std::string WithTargetSequence(const std::string& directory,
                               uint64_t sequence);

// Formats the record of a promotion: the record of the last cut in `directory`,
// with the sequence number and moment (microseconds since 1970; 0: unknown) at
// which the database begins. Without a record of a cut, the result has no
// transfer id, so ReadLastTransfer() returns false for it.
std::string PromotedTransferText(const std::string& directory,
                                 uint64_t sequence, uint64_t moment_micros);

// Formats the selection as command-line options; empty: everything.
std::string SelectionWords(const SelectionText& selection);

// Reads at most the first `bytes` bytes of a file. *found is false only if the
// file certainly does not exist; a path that this account may not access is an
// error. *text is empty for anything except a regular file, also for a link.
//   kDenied    this account may not access the path
//   kInternal  the file cannot be read
[[nodiscard]] rocksdb::Status ReadRecord(const std::string& path, size_t bytes,
                                         bool* found, std::string* text);

// Returns at most the first `bytes` bytes of a regular file; "" if it cannot be
// read.
std::string ReadStart(const std::string& path, size_t bytes);

}  // namespace sstferry
