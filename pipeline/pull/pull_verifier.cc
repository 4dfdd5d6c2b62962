#include "pipeline/pull/pull_verifier.h"

#include <chrono>
#include <utility>

#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/pull_target.h"
#include "pipeline/pull/pull_workspace.h"

namespace sstferry {

using rocksdb::Status;
using std::chrono::steady_clock;

namespace {

// Digests what the target of a pull holds.
class TargetDigests : public DigestSide {
 public:
  TargetDigests(const PullContext* context, uint32_t lanes)
      : context_(context), read_(lanes), replies_(lanes) {}

  // Reads at once, while the source reads its side.
  void Ask(uint32_t lane, uint32_t part) override {
    read_[lane] = context_->target->DigestPart(context_->plan->parts[part],
                                                &replies_[lane]);
  }
  Status Receive(uint32_t lane, uint32_t /*part*/,
                 DigestReply* reply) override {
    *reply = replies_[lane];
    return read_[lane];
  }

 private:
  const PullContext* const context_;
  std::vector<Status> read_;  // by lane
  std::vector<DigestReply> replies_;
};

}  // namespace

Status PullVerifier::Run() {
  PullReporter* const report = context_->report;
  found_.resize(context_->plan->parts.size());
  std::vector<uint32_t> left;
  for (const Part& part : context_->plan->parts) {
    if (found_[part.id] != Found::kEqual) {
      left.push_back(part.id);
    }
  }
  std::mutex mu;
  std::optional<ComparedPart> first;  // the lowest part that differs
  Status status = CompareParts(left, [&](const ComparedPart& compared) {
    std::lock_guard<std::mutex> lock(mu);
    if (!first || compared.part < first->part) {
      first = compared;
    }
    return context_->state->clone != nullptr ? Different(compared)
                                             : Status::OK();
  });
  if (first && status.ok()) {
    status = Different(*first);
    context_->failure->Set(status, {FailedPart::kVerify});
  }
  if (EndStateOf(status) == EndState::kCorrupt) {
    const Status distrusted =
        Distrust(first ? Different(*first) : Status::OK());
    if (!distrusted.ok()) {
      report->Say(MessageOf(distrusted));
    }
  }
  report->result()->verified = status.ok();
  return status;
}

Status PullVerifier::Compare(const std::vector<uint32_t>& parts,
                             std::vector<uint32_t>* different) {
  found_.assign(context_->plan->parts.size(), Found::kNothing);
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
  context_->report->SetPhase("verify");
  const steady_clock::time_point start = steady_clock::now();
  SourceLink* const link = context_->link;
  SourceDigests theirs(
      link, context_->failure, [this](uint32_t id) { return PartOf(id); },
      /*label=*/"", context_->state);
  TargetDigests ours(context_, link->lanes());
  const Status status = CompareDigests(
      link, context_->failure, &theirs, &ours, parts,
      [&](const ComparedPart& compared) {
        const bool equal = compared.equal();
        found_[compared.part] = equal ? Found::kEqual : Found::kDifferent;
        context_->report->CountVerified(
            context_->plan->parts[compared.part].bytes);
        return equal ? Status::OK() : on_difference(compared);
      });
  context_->report->result()->verify_seconds += SecondsSince(start);
  return status;
}

DigestPart PullVerifier::PartOf(uint32_t part_id) const {
  const Part& part = context_->plan->parts[part_id];
  DigestPart asked;
  if (part.is_unit()) {
    asked.unit = part_id;
    return asked;
  }
  asked.family = part.family;
  asked.interval = part.interval;
  return asked;
}

// The next run neither believes what differs nor resumes as if all had come. A
// `difference` of OK: bytes could not be read, which who read them records.
Status PullVerifier::Distrust(const Status& difference) {
  context_->work->SetResumable(false);
  const Status status = difference.ok()
                            ? difference
                            : context_->target->Distrust(difference);
  const Status removed = context_->work->RemoveJournal();
  return status.ok() ? removed : status;
}

Status PullVerifier::Different(const ComparedPart& compared) const {
  const DigestReply& theirs = compared.left;
  const DigestReply& ours = compared.right;
  const CloneLayout* const clone = context_->state->clone;
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
      context_->plan->families[context_->plan->parts[compared.part].family];
  return MakeStatus(
      EndState::kCorrupt,
      "verify of part " + std::to_string(compared.part) +
          " of column family '" + family.description.name + "': expected " +
          std::to_string(theirs.entries) + " entries with digest " +
          ToHex(theirs.content) + ", found " + std::to_string(ours.entries) +
          " with " + ToHex(ours.content));
}

}  // namespace sstferry
