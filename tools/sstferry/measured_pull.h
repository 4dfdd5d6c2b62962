// Makes the metrics of sstferry pull, refresh and swap.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "sstferry/target.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/metric_set.h"

namespace sstferry {

// A function that writes a metrics file: WriteMetricsFile(), or a function that
// asks root's process to write it (run_as.h).
using MetricsWriter = std::function<rocksdb::Status(const std::string& path,
                                                    const std::string& text)>;

// Returns the value that the label "target" has for a directory: its absolute
// path without a slash at the end.
std::string TargetLabel(const std::string& target_dir);

// Runs a pull, and updates the metrics in the file of --metrics-file.
//
// Ownership: owns the pull that it runs.
// Threads:   as for Operation.
class MeasuredPull : public Operation {
 public:
  // `before` is the old text of the metrics file, or the part of the text with
  // the label of this target. Counters continue from the values in `before`.
  MeasuredPull(const PullArguments& arguments, std::unique_ptr<Operation> pull,
               MetricsWriter write, const std::string& before);

  // Runs the pull and returns its status. With --metrics-file, then writes the
  // metrics file, even if the pull failed. If the file was missing or empty,
  // also writes it before the pull. If writing fails, only logs the error.
  [[nodiscard]] rocksdb::Status Run(Summary* summary) override;
  void Cancel() override { pull_->Cancel(); }
  void SetMaxRate(uint64_t bytes_per_sec) override {
    pull_->SetMaxRate(bytes_per_sec);
  }
  Progress progress() const override { return pull_->progress(); }

 private:
  void FillEmpty();
  // Sets the metrics that describe the replica and its disk.
  void ReadReplica();
  // REQUIRES: mu_ is locked, or no other thread uses this object.
  void FillLastPull(const Summary& summary);
  void CountEnd(const Summary& summary);
  // Writes all metrics to the metrics file.
  void WriteFile();

  const PullOptions options_;
  const std::string file_;  // empty if no metrics were requested
  const bool is_first_;     // the metrics file was missing or empty
  const std::string target_;  // the value of the label "target"
  const std::unique_ptr<Operation> pull_;
  const MetricsWriter write_;
  mutable std::mutex mu_;
  MetricSet metrics_;  // guarded by mu_
};

}  // namespace sstferry
