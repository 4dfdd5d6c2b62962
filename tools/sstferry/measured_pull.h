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

// WriteMetricsFile(), or who may write the file.
using MetricsWriter = std::function<rocksdb::Status(const std::string& path,
                                                    const std::string& text)>;

// A pull that counts. Its metrics begin with what the file of --metrics-file
// says of earlier pulls of the same target.
//
// Ownership: owns the pull that it runs.
// Threads:   as those of Operation; Text() from any thread.
class MeasuredPull : public Operation {
 public:
  MeasuredPull(const PullArguments& arguments, std::unique_ptr<Operation> pull,
               MetricsWriter write);

  // Writes the file of --metrics-file at the end, also if the pull fails, and
  // at the start if there is none. Only logs a failure to write it.
  [[nodiscard]] rocksdb::Status Run(Summary* summary) override;
  void Cancel() override { pull_->Cancel(); }
  void SetMaxRate(uint64_t bytes_per_sec) override {
    pull_->SetMaxRate(bytes_per_sec);
  }
  Progress progress() const override { return pull_->progress(); }

  // The metrics now, as Prometheus reads them, with those of the run.
  std::string Text() const;

 private:
  void FillEmpty();
  // Takes the time of the snapshot that TARGET_DIR holds from its record.
  void ReadReplica();
  // REQUIRES: mu_ held, or nobody else has this object.
  void FillLastPull(const Summary& summary);
  void CountEnd(const Summary& summary);
  // Writes what is known between two runs.
  void WriteFile();

  const PullOptions options_;
  const bool is_shown_;  // false: nobody asked for metrics
  const std::string file_;
  const std::string target_;  // the label
  const std::unique_ptr<Operation> pull_;
  const MetricsWriter write_;
  mutable std::mutex mu_;
  MetricSet metrics_;    // under mu_
  bool running_ = false;  // under mu_
};

}  // namespace sstferry
