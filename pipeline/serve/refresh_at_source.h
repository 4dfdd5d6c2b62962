// The source's side of a refresh in place. This is the interface that refresh/
// implements.
//
// The plan of a refresh has one RefreshAtSource. Its functions are called in
// this order:
//
//   while the plan is made:
//     for each family, after its files are listed:
//       Decide()          decides whether the family is compared or sent whole
//       BytesToSend()     returns the bytes to rebuild; their sum for all
//                         families determines the size of parts
//     for each family:
//       Cut()             makes the family's parts
//   on the lanes, on any thread:
//     MakeDeltas()        makes one object for each lane that compares parts
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

// Compares parts with a target on one lane. First returns digests of groups of
// entries. The target then sends its entries of the groups that differ, and
// LaneDeltas builds the entries that the target needs (a delta).
//
// Threads: the lane's serving thread.
class LaneDeltas {
 public:
  virtual ~LaneDeltas() = default;

  // Reads the part and fills the reply with the digests of its groups.
  //   kCorrupt  the request is not valid
  [[nodiscard]] virtual rocksdb::Status Index(
      const Part& part, const GroupRequest& request,
      const std::function<bool()>& cancelled, GroupReply* reply) = 0;
  // Compares the target's entries with the source's entries in groups that
  // Index() returned. The request has a mark for each entry of the target:
  // three bytes of the entry's digest (see SiftRequest). Fills the reply with
  // the indexes of the marks that no entry of the source has. Adds one digest
  // of all entries of the source whose mark is in the request.
  //   kCorrupt  Index() returned no such groups, or the marks are not valid
  [[nodiscard]] virtual rocksdb::Status Sift(
      const Part& part, const SiftRequest& request,
      const std::function<bool()>& cancelled, SiftReply* reply) = 0;
  // Adds a message of a request for a delta. The request may consist of several
  // messages.
  //   kCorrupt  the message does not continue the previous message
  //   kDenied   the request is too large
  [[nodiscard]] virtual rocksdb::Status Add(const Part& part,
                                            DeltaRequest request) = 0;
  // Returns the request to which Add() has added messages.
  virtual const DeltaRequest& asked() const = 0;
  // Builds the delta of the request, and sends it to `sink`. All messages of
  // the request must have arrived.
  //   kCorrupt  the request has groups that Index() did not return
  [[nodiscard]] virtual rocksdb::Status Build(
      const Part& part, const ChunkBuilderOptions& options,
      ChunkSink* sink) = 0;
};

// Plans a refresh, and makes the objects that answer its lanes.
//
// Ownership: belongs to a plan; borrows the plan and its snapshot. Threads: one
//   until the plan is made, then any.
class RefreshAtSource {
 public:
  virtual ~RefreshAtSource() = default;

  // Decides whether a column family is compared with the target's family, or
  // sent whole.
  //   kRefused                 the application may use SingleDelete
  //   kCancelled               order.ended() returned true
  //   kSourceError, kCorrupt   a table could not be read
  [[nodiscard]] virtual rocksdb::Status Decide(
      const PlanOrder& order, const TransferFamily& family) = 0;
  // Returns the size of the family's files that will be rebuilt.
  virtual uint64_t BytesToSend(const TransferFamily& family) const = 0;
  // Adds the family's parts and plan items to the plan. `target_bytes` is the
  // wanted size of a rebuilt part. Returns the errors of CutFamily().
  [[nodiscard]] virtual rocksdb::Status Cut(const PlanOrder& order,
                                            uint64_t target_bytes,
                                            TransferFamily* family) = 0;
  // Makes the object that compares parts on one lane. `salt` is the id of the
  // transfer, which is random. All digests depend on `salt`, so that nobody can
  // prepare two entries with the same digest.
  virtual std::unique_ptr<LaneDeltas> MakeDeltas(
      const TransferId& salt) const = 0;
};

// Makes the RefreshAtSource of a plan. The object borrows the snapshot and the
// plan.
using RefreshFactory = std::function<std::unique_ptr<RefreshAtSource>(
    const Snapshot& snapshot, TransferPlan* plan)>;

}  // namespace sstferry
