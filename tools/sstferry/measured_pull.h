// Metrics of sstferry pull.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "sstferry/target.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/metric_set.h"

namespace sstferry {

// WriteMetricsFile(), or a function that writes the file as root.
using MetricsWriter = std::function<rocksdb::Status(const std::string& path,
                                                    const std::string& text)>;

// Returns the value of the label "target" for a directory: its absolute path,
// without a slash at the end.
std::string TargetLabel(const std::string& target_dir);

// Runs a pull, and updates the metrics in the file of --metrics-file.
//
// Ownership: owns the pull that it runs.
// Threads:   as for Operation.
class MeasuredPull : public Operation {
 public:
  // `before`: the text of the metrics file, or its series of this target. The
  // metrics start from these values.
  MeasuredPull(const PullArguments& arguments, std::unique_ptr<Operation> pull,
               MetricsWriter write, const std::string& before);

  // Runs the pull. Then writes the file of --metrics-file, also if the pull
  // failed. Writes it before the pull, too, if the file was missing or empty.
  // Only logs a failure to write it.
  [[nodiscard]] rocksdb::Status Run(Summary* summary) override;
  void Cancel() override { pull_->Cancel(); }
  void SetMaxRate(uint64_t bytes_per_sec) override {
    pull_->SetMaxRate(bytes_per_sec);
  }
  Progress progress() const override { return pull_->progress(); }

 private:
  void FillEmpty();
  // Reads the time of TARGET_DIR's snapshot from its record.
  void ReadReplica();
  // REQUIRES: mu_ is locked, or no other thread uses this object.
  void FillLastPull(const Summary& summary);
  void CountEnd(const Summary& summary);
  // Writes the metrics that are kept between two runs.
  void WriteFile();

  const PullOptions options_;
  const std::string file_;  // empty: no metrics were requested
  const bool is_first_;     // the file was missing or empty
  const std::string target_;  // the value of the label "target"
  const std::unique_ptr<Operation> pull_;
  const MetricsWriter write_;
  mutable std::mutex mu_;
  MetricSet metrics_;  // guarded by mu_
};

}  // namespace sstferry
