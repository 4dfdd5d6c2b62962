// Compares two sides in one of two ways.
//
// As files: possible if both sides have the same files (by identity). Each side
// reads and checks its files, and the verifier compares the digests of the
// files' bytes. This needs no comparator.
//
// Entry by entry: first compares one digest per key interval. If two digests
// differ, compares the keys in that interval.
//
// A pull with --verify uses the same loop over digests (digest_comparison.h).
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
  // The fault that was recorded for the directory before the snapshot was
  // taken.
  HealthFile known;
  std::string database;
  Plan plan;
  std::unique_ptr<SourceLink> link;
  // true: this side reported damage of its files.
  std::atomic<bool> is_corrupt{false};
};

enum class ComparedAs { kFiles, kEntries };

// Findings of a verify about a local replica.
struct ReplicaFinding {
  std::string directory;  // empty: no local replica, or no finding
  ReplicaFault fault = ReplicaFault::kNone;
  // All bytes of its files were compared. A comparison of entries does not read
  // every block of a file, for example no filter.
  bool read_files = false;
  // The directory's record and its recorded fault, both read before the
  // snapshot was taken. Another process may have changed them during the
  // comparison.
  LastTransfer record;
  HealthFile known;
};

// Compares two sides.
//
// Threads: one thread calls Run(), once; any thread may call Cancel() and
// progress().
class Verifier {
 public:
  // Borrows `left` and `right`.
  Verifier(const VerifyOptions& options, ComparedAs compared, Dialer* left,
           const std::string& left_name, Dialer* right,
           const std::string& right_name);
  ~Verifier();

  // Compares the sides. Returns kDifferent if they differ. But if one side has
  // the record of a pull from the other side, and the other side's later writes
  // can explain the difference, returns kChangedSince. The summary lists the
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
  // Connects to a side and gets its plan. A failure also ends the waits for the
  // other side, for example for a free transfer slot.
  [[nodiscard]] rocksdb::Status OpenSide(VerifySide* side);
  [[nodiscard]] rocksdb::Status GetPlan(VerifySide* side);
  [[nodiscard]] rocksdb::Status OpenSides();
  [[nodiscard]] rocksdb::Status MatchFamilies();
  [[nodiscard]] rocksdb::Status MatchFiles();
  [[nodiscard]] rocksdb::Status CompareParts();
  DigestPart PartOf(const VerifySide& side, uint32_t at) const;
  [[nodiscard]] rocksdb::Status TakeCompared(const ComparedPart& compared);
  void AddDifferentFile(size_t at);
  [[nodiscard]] rocksdb::Status ListDifferences(uint32_t lane, size_t at);
  // Returns what the comparison found out about a local replica.
  ReplicaFinding Find(const rocksdb::Status& status) const;
  // Sends both sides the result of the comparison, and disconnects.
  void HangUp(const rocksdb::Status& status, Summary* summary);
  void FillSummary(uint32_t lanes, Summary* summary) const;
  // Sort key of a difference in the report. {0, i}: a column family that only
  // one side has. {n + 1, i}: a key of part n.
  using Place = std::pair<uint64_t, uint64_t>;
  void AddDifference(const Place& place, const std::string& family,
                     const rocksdb::Slice& key, const char* what);
  // Counts a difference. Returns the entry of the summary to fill in, or null
  // if the report does not list this difference.
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
  // Maps the index of a column family at the left side to its index at the
  // right side.
  std::vector<uint32_t> right_family_;
  std::vector<const rocksdb::Comparator*> orders_;
  std::vector<FilePair> pairs_;  // used only if the sides are compared as files
  ReplicaFinding finding_;
  std::atomic<bool> has_compared_{false};
  std::atomic<uint64_t> planned_bytes_{0};
  std::atomic<uint64_t> done_bytes_{0};
  std::atomic<uint64_t> entries_{0};
  std::atomic<bool> finished_{false};

  mutable std::mutex mu_;
  uint64_t entries_left_ = 0;  // guarded by mu_, like all members below
  uint64_t entries_right_ = 0;
  uint64_t key_value_bytes_ = 0;
  uint64_t differences_ = 0;
  // The listed differences: the first ones in the order of the report.
  std::map<Place, DifferenceSummary> first_;
};

}  // namespace sstferry
