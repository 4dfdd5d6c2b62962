// The target's public face: pull a database, plan a pull, verify two sides.
// What the command-line tool uses, and nothing more.
#pragma once

#include <memory>

#include "pipeline/options.h"

namespace sstferry {

// One command against one or two sources. Make one, Run() it once.
//
// Ownership: options are copied; what the registry borrows must outlive Run().
// Threads:   Run() blocks its thread and starts lanes of its own, all joined
//   when it returns. Cancel() and progress() may be called from any thread.
// Results:   *summary is complete whatever Run() returns, and
//   summary->status equals the returned status.
class Operation {
 public:
  virtual ~Operation() = default;
  [[nodiscard]] virtual rocksdb::Status Run(Summary* summary) = 0;
  // Run() returns kCancelled within five seconds.
  virtual void Cancel() = 0;
  virtual Progress progress() const = 0;
};

// Pulls options.source into options.target_dir.
//   OK           target_dir holds the whole snapshot, synced and closed
//   kRefused     target_dir is not empty (without replace), is a mount point,
//                or the source holds what cannot be moved faithfully
//   kBusy        another process has the target
//   others       as their names say; target_dir is as it was before
std::unique_ptr<Operation> MakePull(const PullOptions& options);

// Reports what MakePull() would do and why; writes nothing but the source's
// private snapshot. With an address that has no name: what the server serves.
std::unique_ptr<Operation> MakePlan(const PullOptions& options);

// Compares two sides entry by entry. kDifferent when they differ.
std::unique_ptr<Operation> MakeVerify(const VerifyOptions& options);

}  // namespace sstferry
