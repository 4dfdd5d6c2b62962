// Runs a verify: opens the sources of both sides, and runs a Verifier.
#include "pipeline/api/endpoint.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/api/verifier.h"
#include "pipeline/archive/choose_set.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/standby_files.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/pull/health.h"
#include "pipeline/pull/target_state.h"
#include "sstferry/target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

class VerifyOperation : public Operation {
 public:
  explicit VerifyOperation(const VerifyOptions& options) : options_(options) {}

  Status Run(Summary* summary) override {
    Outcome outcome;
    if (HasAllKeys()) {
      outcome = Compare(ComparedAs::kFiles, summary);
    }
    if (!outcome.compared && !Ends(outcome.status)) {
      outcome = CompareEntries(outcome.status, summary);
    }
    for (const SourceAddress* const side : {&options_.left, &options_.right}) {
      const std::string note =
          side->is_directory() ? NoteOfZero(side->directory) : "";
      if (!note.empty()) {
        summary->notes.push_back(note);
      }
    }
    RecordFinding(&outcome.status, summary);
    FinishSummary(outcome.status, outcome.place, summary);
    return outcome.status;
  }
  void Cancel() override { slot_.Cancel(); }
  void SetMaxRate(uint64_t /*bytes_per_sec*/) override {}
  Progress progress() const override { return slot_.progress(); }

 private:
  struct Outcome {
    Status status;
    FailurePlace place{FailedPart::kVerify};
    bool compared = false;  // false: another way to compare may succeed
  };

  bool HasAllKeys() const {
    return options_.selection.interval == KeyInterval();
  }

  // Returns true if this result of comparing files is final, so that the
  // entries are not compared.
  static bool Ends(const Status& status) {
    switch (EndStateOf(status)) {
      case EndState::kOk:
      case EndState::kRefused:
      case EndState::kIncompatible:
      case EndState::kCorrupt:
      case EndState::kSourceError:
        return false;
      default:
        return true;
    }
  }

  Status OpenEndpoints(std::unique_ptr<Endpoint>* left,
                       std::unique_ptr<Endpoint>* right) const {
    RETURN_IF_ERROR(Endpoint::Open(
        EndpointFor(options_.left, options_.lanes, options_), left));
    EndpointOptions other =
        EndpointFor(options_.right, options_.lanes, options_);
    other.wal_dir.clear();
    return Endpoint::Open(other, right);
  }

  Outcome Compare(ComparedAs compared, Summary* summary) {
    *summary = Summary();
    std::unique_ptr<Endpoint> left;
    std::unique_ptr<Endpoint> right;
    Outcome outcome;
    outcome.status = OpenEndpoints(&left, &right);
    if (!outcome.status.ok()) {
      outcome.compared = true;  // comparing entries would fail, too
      return outcome;
    }
    Verifier verifier(options_, compared, left->dialer(), left->name(),
                      right->dialer(), right->name());
    outcome.status = slot_.Set(&verifier) ? verifier.Run(summary)
                                          : CancelledBeforeStart();
    if (verifier.place().part != FailedPart::kNone) {
      outcome.place = verifier.place();
    }
    outcome.compared = verifier.has_compared();
    finding_ = verifier.finding();
    slot_.Clear(verifier.progress());
    return outcome;
  }

  // Compares entries. `no_files` says why files could not be compared. It is OK
  // if only a part of the data was selected.
  Outcome CompareEntries(const Status& no_files, Summary* summary) {
    Outcome outcome = Compare(ComparedAs::kEntries, summary);
    const EndState state = EndStateOf(outcome.status);
    if (!no_files.ok() && (state == EndState::kRefused ||
                           state == EndState::kIncompatible)) {
      outcome.status = MakeStatus(
          state, MessageOf(outcome.status) +
                     "; nor can the files be compared: " + MessageOf(no_files));
    }
    return outcome;
  }

  // Returns true if the finding is still true for the directory. During the
  // comparison, a refresh or an exchange may have ended there. After that, only
  // a fault can still be true: a refresh may link damaged files without reading
  // them, and a refresh of a selection does not change other data.
  bool StillHolds() const {
    const LastTransfer& then = finding_.record;
    LastTransfer now;
    if (!ReadLastTransfer(finding_.directory, &now)) {
      return false;
    }
    if (now.transfer_id == then.transfer_id) {
      return true;
    }
    const bool may_stay =
        finding_.fault == ReplicaFault::kDamaged ||
        (finding_.fault == ReplicaFault::kDifferent && !now.asked.is_all());
    return may_stay && now.source_database_id == then.source_database_id;
  }

  // If a local replica has a fault, records it, so that a refresh repairs the
  // replica. If the replica is equal to its recorded source, removes the record
  // of its fault, unless the fault was recorded after the snapshot was taken.
  // Removes recorded damage only if all bytes of the replica's files were read.
  void RecordFinding(Status* status, Summary* summary) const {
    const std::string& dir = finding_.directory;
    if (dir.empty()) {
      return;
    }
    const std::shared_ptr<rocksdb::FileSystem> files = MakeAccessFileSystem(
        rocksdb::FileSystem::Default(), Workspace::DirOf(dir));
    const bool is_right =
        options_.right.is_directory() && options_.right.directory == dir;
    const SourceAddress& other = is_right ? options_.left : options_.right;
    const bool is_wrong = finding_.fault != ReplicaFault::kNone;
    const HealthFile& known = finding_.known;
    HealthFile now;
    Status recorded = ReadKnownFault(dir, &now);
    const bool has_fault = now.fault != ReplicaFault::kNone;
    const bool is_newer =
        has_fault &&
        (known.fault == ReplicaFault::kNone || now.id != known.id);
    bool holds = StillHolds();
    const bool is_equal = !is_wrong && has_fault && !is_newer && holds &&
                          Includes(options_.selection, known);
    const bool is_proven = NamesSource(finding_.record, other);
    const bool is_mended =
        is_equal && is_proven &&
        (known.fault != ReplicaFault::kDamaged || finding_.read_files);
    if (recorded.ok() && ((is_wrong && holds) || is_mended)) {
      recorded = CheckOnlyRoot(dir, /*in_place=*/true);
    }
    HealthFile fault =
        MakeFault(finding_.fault, SentenceOf(*status), options_.selection);
    if (recorded.ok() && is_wrong && holds) {
      recorded = RecordFault(files.get(), dir, &fault,
                             [this, &holds] { return holds = StillHolds(); });
    }
    if (!recorded.ok()) {
      // Only reports the finding, because this directory must not or cannot be
      // changed.
    } else if (!holds) {
      summary->notes.push_back(
          dir + " was refreshed or replaced while its earlier contents were "
                "compared; nothing was recorded about its new contents, which "
                "another verify compares");
    } else if (is_newer && !is_wrong) {
      summary->notes.push_back(
          dir + " stays recorded as " + ReplicaFaultName(now.fault) + " (" +
          now.what + "): this was found after the compared snapshot was taken");
    } else if (is_wrong) {
      summary->notes.push_back(
          std::string("recorded in ") + dir + " that it is " +
          ReplicaFaultName(fault.fault) + "; a refresh ends with OK only if it "
                                          "repairs this fault");
    } else if (is_mended) {
      recorded = ClearFault(files.get(), dir, known);
      if (recorded.ok()) {
        summary->notes.push_back(
            dir + " is equal again; removed its record of an earlier fault (" +
            known.what + ")");
      }
    } else if (is_equal && !is_proven) {
      summary->notes.push_back(
          dir + " stays recorded as " + ReplicaFaultName(known.fault) + " (" +
          known.what + "): it is equal to " + other.ToString() +
          ", but only " + finding_.record.source +
          ", from which it was pulled, shows whether it is right");
    } else if (is_equal) {
      summary->notes.push_back(
          dir + " stays recorded as damaged (" + known.what +
          "): its entries are equal, but they do not show that all bytes of "
          "its files are right");
    }
    if (!recorded.ok()) {
      summary->notes.push_back("this finding was not recorded in " + dir +
                               ", so status and refresh do not know of it: " +
                               MessageOf(recorded));
    }
    if (finding_.fault == ReplicaFault::kDamaged && NextOf(*status).empty() &&
        finding_.record.promoted_at.empty()) {
      PullOptions replace;
      static_cast<SourceAccess&>(replace) = options_;
      replace.source = other;
      if (!is_right) replace.wal_dir.clear();  // belongs to the left side
      replace.target_dir = dir;
      *status = MakeStatus(
          EndStateOf(*status), SentenceOf(*status),
          IsStandby(dir) ? MendStandbyCommand(replace.source.ToString(), dir) +
                               AccessWords(replace, replace.source)
                         : ReplaceCommand(replace));
    }
  }

  const VerifyOptions options_;
  ReplicaFinding finding_;  // findings of the last comparison
  WorkerSlot<Verifier> slot_;
};

}  // namespace

std::unique_ptr<Operation> MakeVerify(const VerifyOptions& options) {
  VerifyOptions found = options;
  FindArchive(&found.left);
  FindArchive(&found.right);
  return std::make_unique<VerifyOperation>(found);
}

}  // namespace sstferry
