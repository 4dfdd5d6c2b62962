// The first steps of a pull: up to a target and a journal that lanes can fill,
// new ones or those of an unfinished pull.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/disk/free_space.h"
#include "pipeline/disk/space_gate.h"
#include "pipeline/pull/received_chunks.h"
#include "pipeline/pull/pull_compression.h"
#include "pipeline/pull/pull_context.h"
#include "rocksdb/status.h"

namespace sstferry {

// True if PullMethod::kAuto clones a database that is compacted: into a new
// directory, and with a snapshot of its own.
bool MayCloneCompacted(const PullOptions& options);

// Ownership: borrows all it gets.
// Threads:   the pull's own.
// Crash:     see "crash table" in pipeline/README.md.
class PullOpener {
 public:
  // Sets *plan, which is the context's.
  PullOpener(const PullContext* context, PullCompression* compression,
             Plan* plan);

  // Once each, in this order.
  [[nodiscard]] rocksdb::Status OpenWorkspace();
  [[nodiscard]] rocksdb::Status Connect();
  [[nodiscard]] rocksdb::Status PrepareTarget();
  // Parts that were to be reused are others at the source: they have to come.
  [[nodiscard]] rocksdb::Status RejectReused(
      const std::vector<uint32_t>& different);
  [[nodiscard]] rocksdb::Status WriteJournalHead();

  // All has come, and only the exchange of an earlier run is left to do.
  bool resumes_exchange() const { return resumes_exchange_; }

 private:
  [[nodiscard]] rocksdb::Status OpenSession(SnapshotUse use);
  // kRefused: the source has another database than the unfinished pull was of.
  [[nodiscard]] rocksdb::Status CheckStillSource();
  [[nodiscard]] rocksdb::Status OpenSessionInstead();
  // kRefused, marked as one of chunks: a clone holds more, and is asked for
  // first.
  [[nodiscard]] rocksdb::Status CheckNothingLeftOut() const;
  // The same if MayCloneCompacted() and the source is compacted. Asks before a
  // snapshot is taken; ends the link with the refusal.
  [[nodiscard]] rocksdb::Status CheckNotCompacted();
  OpenRequest MakeRequest(SnapshotUse use) const;
  // Announces what is in the journal: no source is needed.
  void UsePlanOfJournal();
  // `keeps`: files that came are used, as far as the source has them.
  [[nodiscard]] rocksdb::Status StartAnew(const std::string& why, bool keeps);
  [[nodiscard]] rocksdb::Status StartOver(const rocksdb::Status& damage);
  [[nodiscard]] rocksdb::Status CheckPlan();
  // Parts of which the target has what the source has.
  void CountUnchanged(const std::vector<uint32_t>& reused);
  [[nodiscard]] rocksdb::Status AdoptUnfinished();
  void CountReceived(const ReceivedChunks& received);
  [[nodiscard]] rocksdb::Status CheckSpace();
  [[nodiscard]] rocksdb::Status PlanSpace(SpaceNeed need, bool is_needed);
  void KeepFree(uint64_t reserve_bytes);
  const PullOptions& options() const { return *context_->options; }

  const PullContext* const context_;
  PullCompression* const compression_;
  Plan* const plan_;
  OpenRequest asked_;  // what *plan_ answers
  bool resumes_exchange_ = false;
  std::unique_ptr<SpaceGate> space_;
};

}  // namespace sstferry
