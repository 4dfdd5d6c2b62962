// Contains a standby and its next cut as of the same moment, the end of the
// cut's WALs. Each side is linked and copied into a private directory
// (snapshot/private_dir.h), where RocksDB opens it. Their contents must be
// equal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/audit_file.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

struct AuditPairOptions {
  std::string standby_dir;  // directory of the running standby
  std::string cut_dir;      // the complete next cut; its WALs end at `end`
  WalLimit end;
  // The source takes a cut for each compaction with a compaction filter, so
  // families with such a filter can be compared, too.
  bool exact_filters = false;
  OperatorRegistry registry;
  std::function<bool()> cancelled;  // polled
};

// Begin or end of a slice: a key in the family with this id, or in the next
// family if that family was dropped. Null key: the family's first key.
struct AuditPlace {
  uint32_t family = 0;
  std::optional<std::string> key;
  friend bool operator==(const AuditPlace&, const AuditPlace&) = default;
};

struct AuditSlice {
  uint64_t entries = 0;  // number of compared entries
  bool is_end = false;   // no entries remain to be compared
  AuditPlace next;       // where the next slice begins; unless is_end
  // Describes the differences: family, keys and counts per side; empty: none.
  std::string difference;
};

// A pair of directories to compare.
//
// Ownership: owns both private directories, which its destructor removes.
// Threads:   one at a time.
class AuditPair {
 public:
  // Links and copies both sides. The originals may change after Take() has
  // returned.
  //   kCorrupt      a side has wrong bytes
  //   kSourceError  a side does not reach `end`; both must be taken again
  //   others        as Snapshot::Create()
  [[nodiscard]] static rocksdb::Status Take(const AuditPairOptions& options,
                                            std::unique_ptr<AuditPair>* pair);
  ~AuditPair();

  // Opens both databases. Returns errors of Snapshot::Create(), and kRefused if
  // no family can be audited.
  [[nodiscard]] rocksdb::Status Open();
  // Returns the families that are not audited. REQUIRES: Open() was called.
  const std::vector<UnauditedFamily>& unaudited() const { return unaudited_; }
  // Returns true if Compare() compares the family. REQUIRES: Open() returned
  // OK.
  bool Audits(const std::string& family) const;
  // Compares at least one entry from `begin` on, until it has read `max_bytes`
  // or is_spent() returns true. *slice describes the compared entries, even
  // after a failure.
  //   kCorrupt  a file could not be read because its bytes are wrong
  [[nodiscard]] rocksdb::Status Compare(AuditPlace begin,
                                        uint64_t max_bytes,
                                        const std::function<bool()>& is_spent,
                                        AuditSlice* slice);

 private:
  struct Side;
  class FamilyCompare;

  explicit AuditPair(AuditPairOptions options);
  [[nodiscard]] rocksdb::Status FindUnaudited(const Side& side);

  const AuditPairOptions options_;
  std::unique_ptr<Side> sides_[2];  // the standby's side, the cut's side
  std::vector<UnauditedFamily> unaudited_;
};

}  // namespace sstferry
