// Interface to the source's side of a refresh in place. refresh/ implements it.
//
// A refresh plan has one RefreshAtSource, whose functions are called in this
// order:
//
//   while the plan is made:
//     for each family, after its files are listed:
//       Decide()          whether it can be refreshed, and what is compared
//       BytesToSend()     bytes that are rebuilt; part sizes depend on the sum
//     for each family:
//       Cut()             makes the family's parts
//   on the lanes, on any thread:
//     MakeDeltas()        one object for each lane that compares parts
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

// Compares parts with a target on one lane. Returns digests of groups of
// entries. After the target has sent its entries of the groups that differ,
// builds the delta. Threads: the lane's serving thread.
class LaneDeltas {
 public:
  virtual ~LaneDeltas() = default;

  // Reads the part and fills the reply with digests of its groups.
  //   kCorrupt  the request is not a valid request for groups
  [[nodiscard]] virtual rocksdb::Status Index(
      const Part& part, const GroupRequest& request,
      const std::function<bool()>& cancelled, GroupReply* reply) = 0;
  // Compares the marks (three bytes of digest per entry, see SiftRequest) of
  // the target's entries, in groups that Index() returned, with the source's
  // entries. Fills the reply with the indexes of the marks that no entry of the
  // source has, and a digest of the source's entries that have a mark.
  //   kCorrupt  Index() returned no such groups, or the marks are not valid
  [[nodiscard]] virtual rocksdb::Status Sift(
      const Part& part, const SiftRequest& request,
      const std::function<bool()>& cancelled, SiftReply* reply) = 0;
  // Adds one message of a request for the delta of a part.
  //   kCorrupt  the message does not continue the previous one
  //   kDenied   the request is too large
  [[nodiscard]] virtual rocksdb::Status Add(const Part& part,
                                            DeltaRequest request) = 0;
  // Returns the request that is being received, or is complete.
  virtual const DeltaRequest& asked() const = 0;
  // Sends the delta chunk of the complete request.
  //   kCorrupt  the request has groups that Index() did not return
  [[nodiscard]] virtual rocksdb::Status Build(
      const Part& part, const ChunkBuilderOptions& options,
      ChunkSink* sink) = 0;
};

// Plans a refresh and answers its lanes.
//
// Ownership: belongs to a plan; borrows the plan and its snapshot. Threads:
// one, until the plan is made; then any.
class RefreshAtSource {
 public:
  virtual ~RefreshAtSource() = default;

  // Decides whether a family is compared with the target's or sent whole.
  //   kRefused                 the application may use SingleDelete
  //   kCancelled               order.ended() returned true
  //   kSourceError, kCorrupt   a table could not be read
  [[nodiscard]] virtual rocksdb::Status Decide(
      const PlanOrder& order, const TransferFamily& family) = 0;
  // Returns the bytes of the files that will be rebuilt.
  virtual uint64_t BytesToSend(const TransferFamily& family) const = 0;
  // Adds parts and plan items to the plan. `target_bytes` is the size of a
  // rebuilt part. Errors are those of CutFamily().
  [[nodiscard]] virtual rocksdb::Status Cut(const PlanOrder& order,
                                            uint64_t target_bytes,
                                            TransferFamily* family) = 0;
  // Makes the object that answers one lane. `salt` is the transfer's id, which
  // is random, so that nobody can prepare two entries with the same digest.
  virtual std::unique_ptr<LaneDeltas> MakeDeltas(
      const TransferId& salt) const = 0;
};

// Makes the object of a plan; borrows both arguments.
using RefreshFactory = std::function<std::unique_ptr<RefreshAtSource>(
    const Snapshot& snapshot, TransferPlan* plan)>;

}  // namespace sstferry
