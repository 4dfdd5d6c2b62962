// The first steps of a pull: up to a target and a journal that lanes can fill,
// new ones or those of an unfinished pull.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "format/messages.h"
#include "format/plan.h"
#include "pipeline/disk/free_space.h"
#include "pipeline/disk/space_gate.h"
#include "pipeline/pull/exchange.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/method_rule.h"
#include "pipeline/pull/pull_compression.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/pull_target.h"
#include "pipeline/pull/pull_workspace.h"
#include "pipeline/pull/received_chunks.h"
#include "pipeline/pull/source_link.h"
#include "rocksdb/status.h"

namespace sstferry {

// Tells why a pull by PullMethod::kAuto refused the method that it began with.
enum class OtherMethod {
  kNone,
  kLeftOut,  // chunks would leave something out
  kRule,     // chunks hold it, too, but the rule says to clone
  kDelta,    // a clone lacks so much that the rule says to send what changed
};

// Ownership: borrows all it gets.
// Threads:   StopStore() from any; all else from the pull's own.
// Crash:     see "crash table" in pipeline/README.md.
class PullOpener {
 public:
  // Sets *plan, which the others read.
  PullOpener(const PullOptions* options, Plan* plan, LaneShared* lanes,
             SourceLink* link, FirstFailure* failure, PullReporter* report,
             PullTarget* target, PullWorkspace* work, Exchange* exchange,
             PullCompression* compression);

  // Sets what is known for the choice of the method. Before all others.
  void SetMethodInput(const MethodInput& input) { method_ = input; }
  // Returns the same, with what the source said.
  const MethodInput& method_input() const { return method_; }

  // --- once each, in this order ----------------------------------------------
  // Opens the workspace, completes what an earlier run left half done, and
  // finds out whether there is something to resume.
  [[nodiscard]] rocksdb::Status OpenWorkspace();
  // Gets the plan: from the source, or from the journal if all has come.
  [[nodiscard]] rocksdb::Status Connect();
  // Makes the target ready, with what has come before.
  [[nodiscard]] rocksdb::Status PrepareTarget();
  // Takes back parts that were to be reused, but are others at the source: they
  // have to come.
  [[nodiscard]] rocksdb::Status RejectReused(
      const std::vector<uint32_t>& different);
  // Begins a new journal. Does nothing if an unfinished pull is resumed.
  [[nodiscard]] rocksdb::Status WriteJournalHead();

  // Returns true if all has come, and only the exchange of an earlier run is
  // left to do.
  bool resumes_exchange() const { return resumes_exchange_; }
  // Returns why a refusal was made that another method has to follow.
  OtherMethod other_method() const { return other_method_; }
  // Returns true if TARGET_DIR holds what the source holds, and stays as it is.
  bool is_current() const { return reused_.is_current; }
  // Returns the reused parts that are to be compared with the source's before
  // they are believed: all with --verify, else those that nothing else tells
  // from others.
  const std::vector<uint32_t>& ReusedToCompare() const {
    return work_->verifies() ? reused_.linked : reused_.weak;
  }

  // Ends what waits for the store.
  void StopStore();
  void CloseStore();

 private:
  void OpenStore();
  [[nodiscard]] rocksdb::Status OpenSession(SnapshotUse use);
  // Checks that the source has the database that the unfinished pull was of;
  // else kRefused.
  [[nodiscard]] rocksdb::Status CheckStillSource();
  [[nodiscard]] rocksdb::Status OpenSessionInstead();
  // Refuses, with the mark of chunks, what a clone holds more of: it is asked
  // for first.
  [[nodiscard]] rocksdb::Status CheckNothingLeftOut();
  // Refuses in the same way if the rule says to clone (method_rule.h). Asks
  // before a snapshot is taken; ends the link with the refusal.
  [[nodiscard]] rocksdb::Status CheckRule();
  [[nodiscard]] rocksdb::Status AskSizes();
  // Refuses a clone if the rule says to send what changed since the replica.
  [[nodiscard]] rocksdb::Status CheckDelta();
  OpenRequest MakeRequest(SnapshotUse use) const;
  // Announces what is in the journal: no source is needed.
  void UsePlanOfJournal();
  // Drops the unfinished pull. `keeps`: files that came are used, as far as the
  // source has them.
  [[nodiscard]] rocksdb::Status StartAnew(const std::string& why, bool keeps);
  [[nodiscard]] rocksdb::Status StartOver(const rocksdb::Status& damage);
  [[nodiscard]] rocksdb::Status CheckPlan();
  // Counts the parts that need not come, of which the target has what the
  // source has.
  void CountUnchanged();
  [[nodiscard]] rocksdb::Status FindReused();
  // Takes over what the unfinished pull had got, down to the last chunk that is
  // recorded and whole.
  [[nodiscard]] rocksdb::Status AdoptUnfinished();
  void CountReceived(const ReceivedChunks& received);
  // Writes down which parts do not come, before the first one does.
  [[nodiscard]] rocksdb::Status RecordReused();
  [[nodiscard]] rocksdb::Status CheckSpace();
  [[nodiscard]] rocksdb::Status PlanSpace(SpaceNeed need, bool is_needed);
  void KeepFree(uint64_t reserve_bytes);
  const PullOptions& options() const { return *options_; }

  const PullOptions* const options_;
  Plan* const plan_;
  LaneShared* const lanes_;
  SourceLink* const link_;
  FirstFailure* const failure_;
  PullReporter* const report_;
  PullTarget* const target_;
  PullWorkspace* const work_;
  Exchange* const exchange_;
  PullCompression* const compression_;
  MethodInput method_;
  OpenRequest asked_;  // what *plan_ answers
  bool resumes_exchange_ = false;
  OtherMethod other_method_ = OtherMethod::kNone;
  ReusedParts reused_;
  // The target as it was before, for a new journal.
  std::optional<JournalTargetFiles> held_;
  std::unique_ptr<SpaceGate> space_;
  std::mutex mu_;
  std::unique_ptr<ChunkStore> store_;  // changes under mu_
};

}  // namespace sstferry
