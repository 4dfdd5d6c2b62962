#include "pipeline/pull/pull_verifier.h"

#include <chrono>
#include <utility>

namespace sstferry {

using rocksdb::Status;
using std::chrono::steady_clock;

namespace {

// Computes digests of the data of a pull's target.
class TargetDigests : public DigestSide {
 public:
  TargetDigests(PullTarget* target, const Plan* plan, uint32_t lanes)
      : target_(target), plan_(plan), read_(lanes), replies_(lanes) {}

  // Reads the part at once, while the source reads its own data.
  void Ask(uint32_t lane, uint32_t part) override {
    read_[lane] = target_->DigestPart(plan_->parts[part], &replies_[lane]);
  }
  Status Receive(uint32_t lane, uint32_t /*part*/,
                 DigestReply* reply) override {
    *reply = replies_[lane];
    return read_[lane];
  }

 private:
  PullTarget* const target_;
  const Plan* const plan_;
  std::vector<Status> read_;  // by lane
  std::vector<DigestReply> replies_;
};

}  // namespace

Status PullVerifier::Run(Status* difference) {
  *difference = Status::OK();
  found_.resize(plan_->parts.size());
  std::vector<uint32_t> left;
  for (const Part& part : plan_->parts) {
    if (!IsProven(part.id)) {
      left.push_back(part.id);
    }
  }
  std::mutex mu;
  std::optional<ComparedPart> first;  // lowest part that differs
  Status status = CompareParts(left, [&](const ComparedPart& compared) {
    std::lock_guard<std::mutex> lock(mu);
    if (!first || compared.part < first->part) {
      first = compared;
    }
    return lanes_->clone != nullptr ? Different(compared)
                                             : Status::OK();
  });
  if (first && status.ok()) {
    status = Different(*first);
    failure_->Set(status, {FailedPart::kVerify});
  }
  if (first) {
    *difference = Different(*first);
  }
  report_->SetVerified(status.ok());
  return status;
}

Status PullVerifier::Compare(const std::vector<uint32_t>& parts,
                             std::vector<uint32_t>* different) {
  found_.assign(plan_->parts.size(), Found::kNothing);
  const Status status = CompareParts(
      parts, [](const ComparedPart&) { return Status::OK(); });
  for (const uint32_t id : parts) {
    if (found_[id] != Found::kEqual) {
      different->push_back(id);
    }
  }
  return status;
}

Status PullVerifier::CompareParts(const std::vector<uint32_t>& parts,
                                   const OnDifference& on_difference) {
  report_->SetPhase("verify");
  const steady_clock::time_point start = steady_clock::now();
  SourceDigests theirs(
      link_, failure_, [this](uint32_t id) { return PartOf(id); },
      /*label=*/"", lanes_);
  TargetDigests ours(target_, plan_, link_->lanes());
  const Status status = CompareDigests(
      link_, failure_, &theirs, &ours, parts,
      [&](const ComparedPart& compared) {
        const bool equal = compared.equal();
        found_[compared.part] = equal ? Found::kEqual : Found::kDifferent;
        report_->CountVerified(plan_->parts[compared.part].bytes);
        return equal ? Status::OK() : on_difference(compared);
      });
  report_->AddSeconds(TimedStep::kVerify, SecondsSince(start));
  return status;
}

DigestPart PullVerifier::PartOf(uint32_t part_id) const {
  const Part& part = plan_->parts[part_id];
  DigestPart asked;
  if (part.is_unit()) {
    asked.unit = part_id;
    return asked;
  }
  asked.family = part.family;
  asked.interval = part.interval;
  return asked;
}

Status PullVerifier::Different(const ComparedPart& compared) const {
  const DigestReply& theirs = compared.left;
  const DigestReply& ours = compared.right;
  const CloneLayout* const clone = lanes_->clone;
  if (clone != nullptr) {
    const Part& unit = clone->unit(compared.part);
    return MakeStatus(
        EndState::kCorrupt,
        "verify of " + CloneFileName(clone->file_of(compared.part)) +
            ": expected " + std::to_string(unit.bytes) + " bytes at " +
            std::to_string(unit.offset) + " with digest " +
            ToHex(theirs.content) + ", found " + ToHex(ours.content));
  }
  const Family& family =
      plan_->families[plan_->parts[compared.part].family];
  return MakeStatus(
      EndState::kCorrupt,
      "verify of part " + std::to_string(compared.part) +
          " of column family '" + family.description.name + "': expected " +
          std::to_string(theirs.entries) + " entries with digest " +
          ToHex(theirs.content) + ", found " + std::to_string(ours.entries) +
          " with " + ToHex(ours.content));
}

}  // namespace sstferry
