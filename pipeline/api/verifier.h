// Compares two sides in one of two ways.
//
// As files: if both sides have the same files (by identity), each side reads
// and checks its files, and the digests of the files' bytes are compared. Needs
// no comparator. Entry by entry: first compares one digest per interval, then
// the keys of intervals whose digests differ.
//
// The loop over digests is shared with a pull's --verify (digest_comparison.h).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "format/health_file.h"
#include "pipeline/api/file_pairs.h"
#include "pipeline/api/verdict.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/pull/digest_comparison.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/source_link.h"
#include "rocksdb/comparator.h"
#include "sstferry/options.h"

namespace sstferry {

// One side of a comparison.
struct VerifySide {
  std::string label;  // "left", "right"
  JudgedSide judged;  // facts for the verdict if the sides differ
  // Known fault of a directory before its snapshot was taken.
  HealthFile known;
  std::string database;
  Plan plan;
  std::unique_ptr<SourceLink> link;
  std::atomic<bool> is_corrupt{false};  // it reported damage of its files
};

enum class ComparedAs { kFiles, kEntries };

// Findings of a verify about a local replica.
struct ReplicaFinding {
  std::string directory;  // empty: no local replica, or nothing was found out
  ReplicaFault fault = ReplicaFault::kNone;
  // All bytes of its files were compared. A comparison of entries does not read
  // every block of a file, for example no filter.
  bool read_files = false;
  // The directory's record and known fault before its snapshot was taken. Both
  // may have changed while it was compared.
  LastTransfer record;
  HealthFile known;
};

// Compares two sides.
//
// Threads: Run() from one thread, once; Cancel() and progress() from any.
class Verifier {
 public:
  // Borrows the dialers.
  Verifier(const VerifyOptions& options, ComparedAs compared, Dialer* left,
           const std::string& left_name, Dialer* right,
           const std::string& right_name);
  ~Verifier();

  // Returns kDifferent if the sides differ, or kChangedSince if writes since a
  // recorded pull can explain the difference. The summary lists the
  // differences.
  [[nodiscard]] rocksdb::Status Run(Summary* summary);
  void Cancel();
  Progress progress() const;
  // Returns where the first failure occurred; kNone after success.
  FailurePlace place() const { return failure_.place(); }
  // Returns true if Run() could read both sides and compare them.
  bool has_compared() const { return has_compared_; }
  // Returns what Run() found out about a local replica.
  const ReplicaFinding& finding() const { return finding_; }

 private:
  bool as_files() const { return compared_ == ComparedAs::kFiles; }
  [[nodiscard]] rocksdb::Status OpenSide(VerifySide* side);
  [[nodiscard]] rocksdb::Status OpenSides();
  [[nodiscard]] rocksdb::Status MatchFamilies();
  [[nodiscard]] rocksdb::Status MatchFiles();
  [[nodiscard]] rocksdb::Status CompareParts();
  DigestPart PartOf(const VerifySide& side, uint32_t at) const;
  [[nodiscard]] rocksdb::Status TakeCompared(const ComparedPart& compared);
  void AddDifferentFile(size_t at);
  [[nodiscard]] rocksdb::Status ListDifferences(uint32_t lane, size_t at);
  // Returns what is now known about a local replica.
  ReplicaFinding Find(const rocksdb::Status& status) const;
  // Tells both sides how the comparison ended, and disconnects.
  void HangUp(const rocksdb::Status& status, Summary* summary);
  void FillSummary(uint32_t lanes, Summary* summary) const;
  // Position of a difference in the report: {0, ...} for families that only one
  // side has, then {n + 1, ...} for keys of part n.
  using Place = std::pair<uint64_t, uint64_t>;
  void AddDifference(const Place& place, const std::string& family,
                     const rocksdb::Slice& key, const char* what);
  // Counts a difference. Returns the summary to fill in; null: the difference
  // is not shown.
  DifferenceSummary* AddDifference(const Place& place);
  void ReadFaults();
  void ReadRecords(bool pinned);
  void SayWhatIsCompared() const;
  [[nodiscard]] rocksdb::Status Judge(Summary* summary) const;

  const VerifyOptions options_;
  const ComparedAs compared_;
  const std::chrono::steady_clock::time_point started_;
  FirstFailure failure_;
  VerifySide left_;
  VerifySide right_;
  // Left family index -> index of the same family at the right side.
  std::vector<uint32_t> right_family_;
  std::vector<const rocksdb::Comparator*> orders_;
  std::vector<FilePair> pairs_;  // when compared as files
  ReplicaFinding finding_;
  std::atomic<bool> has_compared_{false};
  std::atomic<uint64_t> planned_bytes_{0};
  std::atomic<uint64_t> done_bytes_{0};
  std::atomic<uint64_t> entries_{0};
  std::atomic<bool> finished_{false};

  mutable std::mutex mu_;
  uint64_t entries_left_ = 0;  // guarded by mu_, like all below
  uint64_t entries_right_ = 0;
  uint64_t key_value_bytes_ = 0;
  uint64_t differences_ = 0;
  // The differences to show: the first ones in report order.
  std::map<Place, DifferenceSummary> first_;
};

}  // namespace sstferry
