// The part of a refresh in place at the source. refresh/ implements it; serve/
// knows of a refresh no more than this.
//
// A plan has one, which is asked in this order:
//
//   while the plan is made:
//     a refresh, for each family, once its files are listed:
//       Decide()          what may have changed, and so what is sent
//       BytesToSend()     of what is rebuilt: the sizes of all parts follow
//     a refresh, for each family:
//       Cut()             its parts, as decided
//     every pull:
//       Record()          what its target keeps for a later refresh
//   on lanes of a refresh, any thread:
//     BuildLookups()      the delta of a part whose keys are looked up
//     MakeDeltas()        one for each lane that compares parts
#pragma once

#include <functional>
#include <memory>

#include "format/messages.h"
#include "pipeline/parts/chunk_builder.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"

namespace sstferry {

struct PlanOrder;
struct TransferFamily;
struct TransferPlan;

// Compares parts with a target on one lane: tells the digests of groups of
// entries, and builds the delta once the target has said what it has in groups
// that differ. Threads: the lane's serving thread.
class LaneDeltas {
 public:
  virtual ~LaneDeltas() = default;

  // Reads the part and fills the reply.
  //   kCorrupt  not a request for groups
  [[nodiscard]] virtual rocksdb::Status Index(
      const Part& part, const GroupRequest& request,
      const std::function<bool()>& cancelled, GroupReply* reply) = 0;
  // Fills the reply with what the source has of the target's entries in groups
  // that Index() told.
  //   kCorrupt  it told no such groups, or the marks are none
  [[nodiscard]] virtual rocksdb::Status Sift(
      const Part& part, const SiftRequest& request,
      const std::function<bool()>& cancelled, SiftReply* reply) = 0;
  // Adds one message of a request for the delta of a part.
  //   kCorrupt  it does not follow the one before it
  //   kDenied   the request is too large
  [[nodiscard]] virtual rocksdb::Status Add(const Part& part,
                                            DeltaRequest request) = 0;
  // Returns the request that is being received, or is complete.
  virtual const DeltaRequest& asked() const = 0;
  // Sends the delta chunk of the complete request. kCorrupt: its groups are
  // none that Index() told.
  [[nodiscard]] virtual rocksdb::Status Build(
      const Part& part, const ChunkBuilderOptions& options,
      ChunkSink* sink) = 0;
};

// Ownership: belongs to a plan, and borrows it and its snapshot. Threads: one,
// until the plan is made; then any.
class RefreshAtSource {
 public:
  virtual ~RefreshAtSource() = default;

  // Decides what becomes of each interval of a family.
  //   kRefused                 the application uses SingleDelete
  //   kCancelled               order.ended() returned true
  //   kSourceError, kCorrupt   a table could not be read
  [[nodiscard]] virtual rocksdb::Status Decide(
      const PlanOrder& order, const TransferFamily& family) = 0;
  // Returns the bytes of the files that are rebuilt.
  virtual uint64_t BytesToSend(const TransferFamily& family) const = 0;
  // Adds parts and plan items to the plan. `target_bytes`: of a part that is
  // rebuilt. Errors: those of CutFamily(), and kCancelled.
  [[nodiscard]] virtual rocksdb::Status Cut(const PlanOrder& order,
                                            uint64_t target_bytes,
                                            TransferFamily* family) = 0;
  // Adds interval records and the source's record to the plan. REQUIRES: all
  // families are cut, and their files are still listed. Errors: those of
  // reading the keys that WALs held.
  [[nodiscard]] virtual rocksdb::Status Record(const PlanOrder& order) = 0;

  // Sends the delta of a part whose keys are looked up.
  [[nodiscard]] virtual rocksdb::Status BuildLookups(
      const Part& part, const ChunkBuilderOptions& options,
      ChunkSink* sink) const = 0;
  // Makes what answers one lane. `salt`: the transfer's id, so that nobody can
  // prepare two entries with one digest.
  virtual std::unique_ptr<LaneDeltas> MakeDeltas(
      const TransferId& salt) const = 0;
};

// Makes the one of a plan; borrows both.
using RefreshFactory = std::function<std::unique_ptr<RefreshAtSource>(
    const Snapshot& snapshot, TransferPlan* plan)>;

}  // namespace sstferry
