// Messages of the control connection that only a refresh uses. See
// format/messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages_any.h"

namespace sstferry {

enum class TransferMode : uint8_t {
  kSeed = 0,     // into a new database: chunks contain only entries
  kRefresh = 1,  // into an existing database: deltas for existing data
  kClone = 2,    // the source's files, unchanged, in units
};

// A column family of the target before a refresh.
struct TargetFamily {
  std::string name;
  bool is_empty = false;  // no files, and no entries in WALs
  friend bool operator==(const TargetFamily&, const TargetFamily&) = default;
};

// Returns the encoded size in bytes of the item in a TargetFamilies payload.
size_t EncodedBytes(const TargetFamily& item);

// Follows the OpenRequest of a refresh; as many messages as needed.
struct TargetFamilies {
  static constexpr char kName[] = "TargetFamilies";

  std::vector<TargetFamily> families;
  friend bool operator==(const TargetFamilies&,
                         const TargetFamilies&) = default;
};

// Interval record: facts that a target stores about an interval after a pull,
// so that the next refresh can prove the interval unchanged.
struct IntervalRecord {
  uint32_t family = 0;  // index in TargetFamilies, or in the plan
  KeyInterval interval;
  uint64_t sequence = 0;  // of the source's snapshot; only for display
  // The source's WALs had, or may have had, entries of the interval.
  bool flushed = false;
  // The target cannot prove that its entries are still unchanged.
  bool doubted = false;
  // XXH3-128 over the identities and the read order of the source's files that
  // contain the interval's entries. The read order determines which of two
  // overlapping files is newer. See FORMAT.md.
  Digest128 backing;
  // Digest of all WAL entries that the snapshot replayed; zero: unknown, or no
  // entries were flushed.
  Digest128 wal;
  friend bool operator==(const IntervalRecord&,
                         const IntervalRecord&) = default;
};

// Returns the encoded size in bytes of the item in an IntervalRecords payload.
size_t EncodedBytes(const IntervalRecord& item);

// Sent to the source after TargetFamilies: the target's interval records. Sent
// to the target: the interval records to store after the transfer has
// succeeded.
struct IntervalRecords {
  static constexpr char kName[] = "IntervalRecords";

  std::vector<IntervalRecord> intervals;
  friend bool operator==(const IntervalRecords&,
                         const IntervalRecords&) = default;
};

// Bytes of the source record (format/source_record.h), sent to the target for
// storage, or back to the source, in as many messages as needed.
struct SourceRecordPart {
  static constexpr char kName[] = "SourceRecordPart";

  std::string bytes;
  friend bool operator==(const SourceRecordPart&,
                         const SourceRecordPart&) = default;
};

// Everything that a target sends about itself before the source plans a
// refresh.
struct ReplicaRecord {
  std::vector<TargetFamily> families;
  std::vector<IntervalRecord>
      intervals;              // IntervalRecord::family is an index in families
  std::string source_record;  // unchanged from the source; may be empty
  friend bool operator==(const ReplicaRecord&, const ReplicaRecord&) = default;
};

}  // namespace sstferry
