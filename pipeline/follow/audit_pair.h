// Makes copies of a standby and of its next cut that show the same moment: the
// end of the cut's WALs. Links and copies each side into a temporary directory
// (snapshot/private_dir.h), where RocksDB opens it. The contents of both copies
// must be equal.
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
  // Directory of the complete next cut; the WALs of the cut end at `end`.
  std::string cut_dir;
  WalLimit end;
  // True: the source requires a cut for each compaction with a compaction
  // filter. So families with such a filter can also be compared.
  bool exact_filters = false;
  OperatorRegistry registry;
  std::function<bool()> cancelled;  // AuditPair calls this often
};

// Where a slice begins or ends: at `key` in the family `family`. If `key` is
// not set, at the family's first key. If the family was dropped, at the next
// family.
struct AuditPlace {
  uint32_t family = 0;
  std::optional<std::string> key;
  friend bool operator==(const AuditPlace&, const AuditPlace&) = default;
};

struct AuditSlice {
  uint64_t entries = 0;  // number of compared entries
  bool is_end = false;   // no entries remain to be compared
  AuditPlace next;       // where the next slice begins; not set if is_end
  // Describes the differences, with the family, keys and counts per side.
  // Empty: no difference.
  std::string difference;
};

// Temporary copies of the two directories to compare.
//
// Ownership: owns both copies, which its destructor removes.
// Threads: one at a time.
class AuditPair {
 public:
  // Links and copies both sides. After Take() has returned, the original
  // directories may change.
  //   kCorrupt      a side has wrong bytes
  //   kSourceError  a side does not contain all WAL records up to `end`; the
  //                 caller must copy both sides again
  //   others        as for Snapshot::Create()
  [[nodiscard]] static rocksdb::Status Take(const AuditPairOptions& options,
                                            std::unique_ptr<AuditPair>* pair);
  ~AuditPair();

  // Opens both copies. Returns the errors of Snapshot::Create(), and kRefused
  // if no family can be audited.
  [[nodiscard]] rocksdb::Status Open();
  // Returns the families that are not audited. REQUIRES: Open() was called.
  const std::vector<UnauditedFamily>& unaudited() const { return unaudited_; }
  // Returns true if Compare() compares the family. REQUIRES: Open() returned
  // OK.
  bool Audits(const std::string& family) const;
  // Compares entries from `begin` on, at least one. Stops when it has read
  // `max_bytes` or is_spent() returns true. *slice describes the entries that
  // were compared, even after a failure.
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
  std::unique_ptr<Side> sides_[2];  // [0] the standby's, [1] the cut's
  std::vector<UnauditedFamily> unaudited_;
};

}  // namespace sstferry
