// A standby and its next cut at one moment, the end of the cut's WALs: each in a
// private directory of links and copies (snapshot/private_dir.h), where RocksDB
// opens it. They must hold the same.
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
  std::string standby_dir;  // as it is followed
  std::string cut_dir;      // all of the next cut, which has this end
  WalLimit end;
  // Compactions with a compaction filter were no part of what is followed.
  bool exact_filters = false;
  OperatorRegistry registry;
  std::function<bool()> cancelled;  // polled
};

// Where a slice begins or ended: in the family of that id or the next one, at
// that key; null: at its first one.
struct AuditPlace {
  uint32_t family = 0;
  std::optional<std::string> key;
  friend bool operator==(const AuditPlace&, const AuditPlace&) = default;
};

struct AuditSlice {
  uint64_t entries = 0;  // compared
  bool is_end = false;   // nothing is left
  AuditPlace next;       // unless is_end
  // The differences, with family, keys and both counts; empty: nothing.
  std::string difference;
};

// Ownership: owns both private directories, which its destructor removes.
// Threads:   one at a time.
class AuditPair {
 public:
  // Links and copies. Both directories may be changed when it returns.
  //   kCorrupt      bytes of one of them are wrong
  //   kSourceError  the end is not there; both must be taken anew
  //   others        as Snapshot::Create()
  [[nodiscard]] static rocksdb::Status Take(const AuditPairOptions& options,
                                            std::unique_ptr<AuditPair>* pair);
  ~AuditPair();

  // Opens both. Errors of Snapshot::Create(); kRefused where no family can be
  // audited.
  [[nodiscard]] rocksdb::Status Open();
  // The families that are not audited. REQUIRES: Open() was called.
  const std::vector<UnauditedFamily>& unaudited() const { return unaudited_; }
  // Compares entries from `begin` on, at least one, until it has read so many
  // bytes or is_spent() returns true. *slice is what was compared, whatever it
  // returns.
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
  std::unique_ptr<Side> sides_[2];  // of the standby, of the cut
  std::vector<UnauditedFamily> unaudited_;
};

}  // namespace sstferry
