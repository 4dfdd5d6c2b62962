// Does the first steps of a pull. After them, a target and a journal exist, and
// lanes can fill the target. Both are new, or those of an unfinished pull.
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
#include "pipeline/pull/pull_compression.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/pull_target.h"
#include "pipeline/pull/pull_workspace.h"
#include "pipeline/pull/received_chunks.h"
#include "pipeline/pull/source_link.h"
#include "rocksdb/status.h"

namespace sstferry {

// The first steps of one pull.
//
// Ownership: borrows its arguments.
// Threads:   StopStore() from any thread; the other functions from the pull's.
// Crash:     see "crash table" in pipeline/README.md.
class PullOpener {
 public:
  // Sets *plan. The other objects of the pull only read it.
  PullOpener(const PullOptions* options, Plan* plan, LaneShared* lanes,
             SourceLink* link, FirstFailure* failure, PullReporter* report,
             PullTarget* target, PullWorkspace* work, Exchange* exchange,
             PullCompression* compression);

  // Makes the pull ask the source first whether its files can be cloned. Called
  // before all other functions.
  void AskWhetherClonable() { asks_clonable_ = true; }

  // --- once each, in this order ----------------------------------------------
  // Opens the workspace, completes an exchange that an earlier run left
  // unfinished, and finds out whether there is a pull to resume.
  [[nodiscard]] rocksdb::Status OpenWorkspace();
  // Gets the plan from the source, or from the journal if all data has arrived.
  [[nodiscard]] rocksdb::Status Connect();
  // Prepares the target. Keeps everything that was received earlier.
  [[nodiscard]] rocksdb::Status PrepareTarget();
  // Rejects reused parts that differ from the source's. The source then sends
  // them.
  [[nodiscard]] rocksdb::Status RejectReused(
      const std::vector<uint32_t>& different);
  // Starts a new journal. Does nothing if an unfinished pull is resumed.
  [[nodiscard]] rocksdb::Status WriteJournalHead();

  // Returns true if all data has arrived, and this run only has to do the
  // exchange that an earlier run began.
  bool resumes_exchange() const { return resumes_exchange_; }
  // Returns the facts that the source reported before the transfer. All members
  // are zero if the facts were not requested.
  const FactsReply& facts() const { return facts_; }
  // Returns true if TARGET_DIR is equal to the source and is not changed.
  bool is_current() const { return reused_.is_current; }
  // Returns the reused parts to compare with the source's before the transfer:
  // all of them if the pull verifies, otherwise those with a weak identity.
  const std::vector<uint32_t>& ReusedToCompare() const {
    return work_->verifies() ? reused_.linked : reused_.weak;
  }

  // Wakes threads that wait for the store.
  void StopStore();
  void CloseStore();

 private:
  void OpenStore();
  [[nodiscard]] rocksdb::Status OpenSession(SnapshotUse use);
  // Checks that the source still has the database of the unfinished pull.
  //   kRefused  the source has another database
  [[nodiscard]] rocksdb::Status CheckStillSource();
  [[nodiscard]] rocksdb::Status CheckNotOlder(uint64_t sequence) const;
  [[nodiscard]] rocksdb::Status OpenSessionInstead();
  // Returns the RocksDB release of the application that will open the replica;
  // empty: unknown.
  std::string ApplicationOf() const;
  // Requests facts() before the source takes a snapshot. Does so only if a plan
  // reports the facts, or if the source may refuse a clone.
  //   kRefused  the source's files cannot be cloned; the session has ended
  [[nodiscard]] rocksdb::Status AskSource();
  OpenRequest MakeRequest(SnapshotUse use) const;
  // Uses the plan in the journal: no source is needed.
  void UsePlanOfJournal();
  // Drops the unfinished pull. If `keeps` is true, keeps its received files, so
  // that the new pull can reuse those that the source still has.
  [[nodiscard]] rocksdb::Status StartAnew(const std::string& why, bool keeps);
  [[nodiscard]] rocksdb::Status StartOver(const rocksdb::Status& damage);
  [[nodiscard]] rocksdb::Status CheckPlan();
  // Counts the parts that need not be sent because the target already has their
  // data.
  void CountUnchanged();
  [[nodiscard]] rocksdb::Status FindReused();
  // Adopts the data that the unfinished pull received. In each part, these are
  // all chunks before the first missing or damaged one.
  [[nodiscard]] rocksdb::Status AdoptUnfinished();
  void CountReceived(const ReceivedChunks& received);
  // Records the reused parts, before the first part is received.
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
  bool asks_clonable_ = false;
  FactsReply facts_;
  OpenRequest asked_;  // the request that *plan_ answers
  bool resumes_exchange_ = false;
  ReusedParts reused_;
  // Set by PullTarget::Create() for a new journal.
  std::optional<JournalTargetFiles> held_;
  std::unique_ptr<SpaceGate> space_;
  std::mutex mu_;
  std::unique_ptr<ChunkStore> store_;  // changes under mu_
};

}  // namespace sstferry
