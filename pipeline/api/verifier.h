// Compares two sides in one of two ways.
//
// As files: if both sides have the same files (by identity), compares digests
// of the bytes of each file, which the sides read and check. Needs no
// comparator. Entry by entry: first compares digests per interval, then the
// keys of intervals with different digests.
//
// The loop over digests is that of a pull's --verify (digest_comparison.h).
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
  std::string database;
  Plan plan;
  std::unique_ptr<SourceLink> link;
  std::atomic<bool> is_corrupt{false};  // it reported damage of its own files
};

enum class ComparedAs { kFiles, kEntries };

// Result for a replica in a directory of this machine.
struct ReplicaFinding {
  std::string directory;  // empty: no such side, or nothing is known
  ReplicaFault fault = ReplicaFault::kNone;
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
  // recorded pull can explain it. The summary lists the differences.
  [[nodiscard]] rocksdb::Status Run(Summary* summary);
  void Cancel();
  Progress progress() const;
  // Returns where the first failure was seen; kNone after success.
  FailurePlace place() const { return failure_.place(); }
  // Returns true if Run() could compare both sides in this way.
  bool has_compared() const { return has_compared_; }
  // Returns what Run() found about a replica here.
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
  // Returns what is now known about the replica here.
  ReplicaFinding Find(const rocksdb::Status& status) const;
  // Tells both sides how the comparison ended.
  void HangUp(const rocksdb::Status& status, Summary* summary);
  void FillSummary(uint32_t lanes, Summary* summary) const;
  // Order of a difference among all: 0 for families of one side only, then n +
  // 1 for the keys of part n.
  using Place = std::pair<uint64_t, uint64_t>;
  void AddDifference(const Place& place, const std::string& family,
                     const rocksdb::Slice& key, const char* what);
  // Counts a difference, and returns where to describe it; null: it is not
  // shown.
  DifferenceSummary* AddDifference(const Place& place);
  void ReadRecords(bool pinned);
  void SayWhatIsCompared() const;
  [[nodiscard]] rocksdb::Status Judge(Summary* summary) const;

  const VerifyOptions options_;
  const ComparedAs compared_;
  const std::chrono::steady_clock::time_point started_;
  FirstFailure failure_;
  VerifySide left_;
  VerifySide right_;
  // Index of the right side's family for each left one.
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
  // The differences to show: the first ones in order.
  std::map<Place, DifferenceSummary> first_;
};

}  // namespace sstferry
