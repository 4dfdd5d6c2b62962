// The plan of a transfer: the data to move, and how. The source makes the plan
// and sends it; the target stores it in its journal and executes it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/frame.h"
#include "format/limits.h"
#include "format/messages.h"
#include "format/part.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

struct Plan {
  Opened opened;                   // the transfer, its snapshot, and notes
  std::vector<Family> families;    // by index
  std::optional<FileSet> clone;  // files of a clone, which are split into units
  std::vector<Part> parts;         // by id
  std::vector<PlanItem> items;     // only for purpose plan, which moves no data

  uint64_t bytes() const;  // sum over all parts
  // Returns the digest of the plan without `opened`, items and estimates. Two
  // plans of one snapshot are equal if their digests are equal.
  Digest128 Digest() const;
};

// Calls each(type, payload) for each message of a plan, in order. Stops at the
// first call that fails, and returns its status. Uses `opened` instead of
// plan.opened.
using PlanSink = std::function<rocksdb::Status(FrameType type,
                                               const std::string& payload)>;
[[nodiscard]] rocksdb::Status EncodePlan(const Opened& opened, const Plan& plan,
                                         const PlanSink& each);

// Maximum memory for the keys, names and reasons of a plan. It is enough for
// kMaxParts parts with their files or with keys of 100 bytes, and for
// kMaxFamilies families with 150 options each.
inline constexpr uint64_t kMaxPlanBytes =
    uint64_t{kMaxParts} * 512 + uint64_t{kMaxFamilies} * (24u << 10);

// Returns the value of PlanDecoder::bytes() for this plan with any `opened`, or
// a slightly larger value.
uint64_t PlanBytes(const Plan& plan);
// Checks that a plan is not too large for the target's PlanDecoder. The source
// calls it before it sends the plan.
//   kRefused  the plan is too large; the message says what to pull instead
[[nodiscard]] rocksdb::Status CheckPlanSize(const Plan& plan,
                                            uint64_t max_bytes = kMaxPlanBytes);

// Assembles a plan from its messages, which come from a peer or a file. Limits
// the plan's size and checks its structure: families and parts must be numbered
// 0, 1, ...; the units must be those into which CutIntoUnits() splits the
// files. (Other code, which knows the comparators, checks that the parts' keys
// cover their families.)
class PlanDecoder {
 public:
  // Adds the next message.
  //   NotFound    the message does not belong to a plan
  //   Corruption  it is malformed, out of order, or one too many
  [[nodiscard]] rocksdb::Status Add(FrameType type,
                                    const rocksdb::Slice& payload);
  bool is_opened() const { return is_opened_; }
  bool is_complete() const { return is_complete_; }
  const Plan& plan() const { return plan_; }
  // Returns the plan and leaves this object's plan empty. REQUIRES:
  // is_complete().
  Plan TakePlan() { return std::move(plan_); }
  // Returns the size of the received messages, plus the additional memory that
  // the plan needs for them.
  uint64_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] rocksdb::Status TakeOpened(const rocksdb::Slice& payload);
  [[nodiscard]] rocksdb::Status TakeFamily(const rocksdb::Slice& payload);
  [[nodiscard]] rocksdb::Status TakeCloneSet(const rocksdb::Slice& payload);
  [[nodiscard]] rocksdb::Status TakeEnd(const rocksdb::Slice& payload);
  [[nodiscard]] rocksdb::Status AddFiles(const CloneFiles& batch);
  [[nodiscard]] rocksdb::Status AddParts(Parts batch);
  [[nodiscard]] rocksdb::Status AddItems(PlanItems batch);
  [[nodiscard]] rocksdb::Status CheckUnits() const;

  Plan plan_;
  bool is_opened_ = false;
  bool is_complete_ = false;
  uint64_t file_count_ = 0;  // announced number of files of a clone
  uint64_t bytes_ = 0;
};

}  // namespace sstferry
