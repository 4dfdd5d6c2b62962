// Compares two sides that both send digests of the same parts: a pull and its
// source, or two sources.
#pragma once

#include <chrono>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/lane_retry.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/source_link.h"
#include "rocksdb/status.h"

namespace sstferry {

// Selects what to digest. If `unit` is set, it is a unit of a file; otherwise
// it is an interval of keys in a column family.
struct DigestPart {
  std::optional<uint32_t> unit;
  uint32_t family = 0;
  KeyInterval interval;
};

// One side of a comparison. Both sides use the same part numbers. Threads: any;
// the calls for one lane from one thread.
class DigestSide {
 public:
  virtual ~DigestSide() = default;
  // Requests the digest of a part from a source and does not wait for it, or
  // computes the digest of this side's data.
  virtual void Ask(uint32_t lane, uint32_t part) = 0;
  // Returns the digest that the latest Ask() on this lane requested.
  [[nodiscard]] virtual rocksdb::Status Receive(uint32_t lane, uint32_t part,
                                                DigestReply* reply) = 0;
};

// Requests digests from a source. Opens each lane when the lane is first used.
// REQUIRES: SourceLink::SetLanes() was called.
class SourceDigests : public DigestSide {
 public:
  // Borrows `link`, `failure` and `state`. `state` is the state of a pull's
  // lanes. A failed request is repeated on a new connection until
  // state->retry_for passes without progress. If `state` is null, no request is
  // repeated. `label` is a prefix of failure messages, such as "left"; it may
  // be empty.
  SourceDigests(SourceLink* link, const FirstFailure* failure,
                std::function<DigestPart(uint32_t part)> part_of,
                std::string label, LaneShared* state = nullptr);

  void Ask(uint32_t lane, uint32_t part) override;
  [[nodiscard]] rocksdb::Status Receive(uint32_t lane, uint32_t part,
                                        DigestReply* reply) override;
  // Returns true if the source reported that the bytes of a part are wrong.
  bool is_corrupt() const { return is_corrupt_; }

 private:
  struct Lane {
    Channel* channel = nullptr;
    rocksdb::Status asked;
    std::unique_ptr<LaneRetry> retry;  // null: no retries
  };

  [[nodiscard]] rocksdb::Status Send(uint32_t lane, uint32_t part);

  SourceLink* const link_;
  const FirstFailure* const failure_;
  const std::function<DigestPart(uint32_t)> part_of_;
  const std::string label_;
  LaneShared* const state_;
  std::atomic<bool> is_corrupt_{false};
  std::vector<Lane> lanes_;
};

// The answers of both sides for one part.
struct ComparedPart {
  uint32_t lane = 0;
  uint32_t part = 0;
  DigestReply left;
  DigestReply right;
  bool equal() const {
    return left.entries == right.entries && left.content == right.content;
  }
};

// Compares `parts` over the lanes of `lanes`, with one thread per lane. For
// every part, calls `take` on one of these threads when both digests are known.
// If `take` returns an error, the comparison fails. Sets *failure to the first
// failure of the operation, and returns it.
[[nodiscard]] rocksdb::Status CompareDigests(
    SourceLink* lanes, FirstFailure* failure, DigestSide* left,
    DigestSide* right, const std::vector<uint32_t>& parts,
    const std::function<rocksdb::Status(const ComparedPart&)>& take);

}  // namespace sstferry
