// The target's side of a comparison. Compares the target's entries of a part
// with the source's entries, so that the source sends only entries that differ.
// Compares groups of consecutive entries first.
//
// A part may have more entries at the target than an index can keep. The target
// then reads the part in several pieces, and sends all its entries of each
// piece. It compares groups only if one piece is the complete part.
//
// Errors in this comparison cannot harm: refresh/part_proof.h checks the
// result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/part_compare.h"
#include "pipeline/refresh/group_index.h"
#include "pipeline/refresh/part_proof.h"
#include "rocksdb/status.h"

namespace sstferry {

// Compares the parts of one refresh. Ownership: borrows the state that all
// lanes share. Threads: BeginPlan() is called before lanes run; all others:
// any.
class GroupComparer : public PartComparer {
 public:
  // Reads the target's entries of a piece into the index until one does not
  // fit. If an entry does not fit, sets *rest to the entry's key.
  using ReadIndex = std::function<rocksdb::Status(
      const Part& part, const KeyInterval& piece, EntryDigester* digester,
      EntrySums* sums, GroupIndex* index, std::optional<std::string>* rest)>;
  // Reads only the target's first and last key in a piece.
  using ReadOutermost = std::function<rocksdb::Status(
      const Part& part, const KeyInterval& piece,
      std::optional<std::string>* first, std::optional<std::string>* last)>;

  GroupComparer(const LaneShared* lanes, ReadIndex index,
                ReadOutermost outermost)
      : lanes_(lanes),
        index_(std::move(index)),
        outermost_(std::move(outermost)) {}

  // Begins a plan. `families` are the names of its families.
  // `most_point_deletions` is a member of every DeltaRequest.
  void BeginPlan(std::vector<std::string> families,
                 uint32_t most_point_deletions);
  // Returns the number of entries that a group should have. The digests of
  // groups then have 0.3 % of the bytes of the entries. Estimates the size of
  // an entry from earlier comparisons.
  uint32_t ChooseGroupEntries(const Part& part) const override;
  std::unique_ptr<PartComparison> Begin(const Part& part,
                                        uint32_t group_entries,
                                        HowToTell how) override;
  [[nodiscard]] rocksdb::Status FindOutermost(
      const Part& part, const KeyInterval& interval,
      std::optional<std::string>* first,
      std::optional<std::string>* last) override {
    return outermost_(part, interval, first, last);
  }

  // --- for comparisons -------------------------------------------------------
  [[nodiscard]] rocksdb::Status Index(const Part& part,
                                      const KeyInterval& piece,
                                      EntryDigester* digester, EntrySums* sums,
                                      GroupIndex* index,
                                      std::optional<std::string>* rest) const {
    return index_(part, piece, digester, sums, index, rest);
  }
  // Remembers the number of entries of a part that was read completely.
  // ChooseGroupEntries() uses this number and `part.bytes`, which is an
  // estimate.
  void Count(const Part& part, uint64_t entries);
  const LaneShared& lanes() const { return *lanes_; }
  uint32_t most_point_deletions() const { return most_point_deletions_; }
  const std::string& name_of(uint32_t family) const { return names_[family]; }

 private:
  const LaneShared* const lanes_;
  const ReadIndex index_;
  const ReadOutermost outermost_;
  uint32_t most_point_deletions_ = 0;
  std::vector<std::string> names_;  // by index of the family
  mutable std::mutex mu_;
  std::vector<Totals> compared_;  // by index of the family; under mu_
};

// Compares one part.
//
// Ownership: borrows the comparer and the part.
// Threads:   only the thread of the lane.
// Memory:    the index of one piece, until the piece's chunk is received. A
//            lane compares at most two parts at a time.
class GroupCompare : public PartComparison {
 public:
  GroupCompare(GroupComparer* comparer, const Part* part,
               uint32_t group_entries, HowToTell how)
      : comparer_(comparer),
        part_(part),
        group_entries_(group_entries),
        how_(how),
        digester_(comparer->lanes().transfer_id),
        piece_(part->interval) {}

  [[nodiscard]] rocksdb::Status Read() override;
  [[nodiscard]] rocksdb::Status Compare(
      const GroupReply* reply, std::optional<SiftRequest>* sift,
      std::vector<DeltaRequest>* delta) override;
  void TakeSifted(const SiftReply& reply,
                  std::vector<DeltaRequest>* delta) override;
  [[nodiscard]] rocksdb::Status TakeChunk(const StagedChunk& chunk) override;
  const std::optional<std::string>& rest() const override { return rest_; }
  [[nodiscard]] rocksdb::Status Prove() const override;

 private:
  [[nodiscard]] rocksdb::Status TellOutermost(
      std::vector<DeltaRequest>* delta);
  // Returns the indexes of all entries in these groups.
  std::vector<size_t> EntriesOf(const std::vector<size_t>& groups) const;
  void TellEntries(const std::vector<size_t>& told,
                   std::vector<DeltaRequest>* delta) const;
  void TellGroups(std::vector<DeltaRequest>* delta) const;
  void TellAllEntries(std::vector<DeltaRequest>* delta) const;
  std::vector<DeltaRequest> FirstMessage(DeltaBasis basis) const;

  GroupComparer* const comparer_;
  const Part* const part_;
  const uint32_t group_entries_;
  const HowToTell how_;
  EntryDigester digester_;
  PartProof proof_;
  // Members of the current piece, up to rest_.
  KeyInterval piece_;
  EntrySums read_;
  std::optional<GroupIndex> index_;  // set by Read()
  bool clears_ = false;  // the source has no entries in it
  // here_: the entries of the target's groups that the source does not have.
  // there_: the source's groups that the target does not have. Both are
  // indexes.
  std::vector<size_t> here_;
  std::vector<uint32_t> there_;
  std::optional<std::string> rest_;  // first key of the next piece
};

}  // namespace sstferry
