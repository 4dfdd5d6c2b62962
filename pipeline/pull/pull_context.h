// Holds what the parts of one pull share.
#pragma once

#include <memory>

#include "format/health_file.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/plan_receiver.h"
#include "pipeline/pull/pull_state.h"
#include "pipeline/pull/source_link.h"
#include "rocksdb/file_system.h"
#include "sstferry/options.h"

namespace sstferry {

class Exchange;
class PullReporter;
class PullTarget;
class PullWorkspace;

// The Puller owns all of it, and sets it before the call that needs it.
struct PullContext {
  const PullOptions* options = nullptr;
  // The pull is only planned: it stops before it makes its first name, and
  // changes nothing.
  bool plans = false;
  FirstFailure* failure = nullptr;
  SourceLink* link = nullptr;
  PullState* state = nullptr;
  const Plan* plan = nullptr;
  PullReporter* report = nullptr;
  PullTarget* target = nullptr;
  Exchange* exchange = nullptr;
  PullWorkspace* work = nullptr;
  Workspace* workspace = nullptr;  // the work's, once it is open
  // Known of what lies in TARGET_DIR when the workspace was opened.
  HealthFile fault;
  WorkspaceUse workspace_use() const {
    return plans ? WorkspaceUse::kLook : WorkspaceUse::kPull;
  }
  // The caller's, on which files have the access that disk/access.h tells.
  std::shared_ptr<rocksdb::FileSystem> disk;
  std::shared_ptr<rocksdb::FileSystem> file_system;  // as durability asks
};

}  // namespace sstferry
