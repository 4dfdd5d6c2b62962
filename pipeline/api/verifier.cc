#include "pipeline/api/verifier.h"

#include <algorithm>
#include <set>
#include <thread>

#include "pipeline/api/entry_stream.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/options/operators.h"
#include "pipeline/pull/plan_check.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// If a lane was closed, it waits this long for the control connection to report
// the reason. It waits once per side.
constexpr std::chrono::milliseconds kVerifierLastWordsLimit{1000};

ComparedSide SideSummary(const JudgedSide& side, const JudgedSide& other) {
  ComparedSide summary;
  summary.address = side.address.ToString();
  summary.database_id = side.database_id;
  summary.snapshot_sequence = side.sequence;
  if (IsPulledFrom(side, other)) {
    summary.pulled_transfer_id = side.record->transfer_id;
    summary.pulled_sequence = *side.record->snapshot_sequence;
  }
  return summary;
}

}  // namespace

Verifier::Verifier(const VerifyOptions& options, ComparedAs compared,
                   Dialer* left,
                   const std::string& left_name, Dialer* right,
                   const std::string& right_name)
    : options_(options),
      compared_(compared),
      started_(std::chrono::steady_clock::now()),
      failure_([this] {
        left_.link->Close();
        right_.link->Close();
      }) {
  left_.label = "left";
  left_.database = left_name;
  right_.label = "right";
  right_.database = right_name;
  left_.judged.address = options.left;
  right_.judged.address = options.right;
  left_.judged.access = AccessWords(options, options.left);
  SourceAccess other = options;
  other.wal_dir.clear();  // belongs to the left side
  right_.judged.access = AccessWords(other, options.right);
  for (VerifySide* side : {&left_, &right_}) {
    SourceLinkOptions link;
    link.timeouts = TriedOnce(options.timeouts);
    link.last_words = kVerifierLastWordsLimit;
    link.side = side->label;
    side->link = std::make_unique<SourceLink>(side == &left_ ? left : right,
                                              link, &failure_);
  }
}

Verifier::~Verifier() = default;

Status Verifier::GetPlan(VerifySide* side) {
  RETURN_IF_ERROR(side->link->Connect());
  PullOptions as_pulled;  // makes the same parts as a pull
  as_pulled.selection = options_.selection;
  as_pulled.lanes = options_.lanes;
  OpenRequest request =
      MakeOpenRequest(as_pulled, side->database, Purpose::kVerify);
  if (as_files()) {
    request.mode = TransferMode::kClone;
  }
  if (side == &left_ && options_.left_snapshot.has_value()) {
    request.snapshot_use = SnapshotUse::kShare;
    request.named_transfer = *options_.left_snapshot;
  }
  RETURN_IF_ERROR(side->link->session()->Open(request, &side->plan));
  RETURN_IF_ERROR(
      WithContext(CheckFamilies(side->plan, options_.selection.families),
                  EndState::kCorrupt, side->label));
  const uint32_t lanes = side->plan.opened.lanes;
  return lanes > 0 && lanes <= options_.lanes
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          side->label +
                              ": plan of its source: expected 1 to " +
                              std::to_string(options_.lanes) +
                              " lanes, found " + std::to_string(lanes));
}

Status Verifier::OpenSide(VerifySide* side) {
  const Status status = GetPlan(side);
  side->is_corrupt = EndStateOf(status) == EndState::kCorrupt;
  // A session that failed sets failure_ itself, with another FailedPart.
  SourceSession* const session = side->link->session();
  const bool has_reported =
      session != nullptr &&
      !session->AwaitFailure(std::chrono::milliseconds(0)).ok();
  if (!status.ok() && !has_reported) {
    failure_.Set(status, {FailedPart::kVerify});
  }
  return status;
}

Status Verifier::OpenSides() {
  Status right_status;
  std::thread right_opener;
  RETURN_IF_ERROR(StartThread(
      [&] { right_status = OpenSide(&right_); }, &right_opener));
  const Status left_status = OpenSide(&left_);
  right_opener.join();
  if (left_status.ok() && right_status.ok()) {
    return Status::OK();
  }
  // Returns the first failure. The other side may have failed only because the
  // first failure cancelled it.
  return failure_.failed()  ? failure_.status()
         : left_status.ok() ? right_status
                            : left_status;
}

Status Verifier::MatchFiles() {
  if (!left_.plan.clone.has_value() || !right_.plan.clone.has_value()) {
    return MakeStatus(EndState::kRefused,
                      std::string(left_.plan.clone.has_value() ? "the right"
                                                               : "the left") +
                          " side does not report its files");
  }
  return PairFiles(*left_.plan.clone, *right_.plan.clone, &pairs_);
}

// Finds, for each column family of the left side, the same family at the right
// side. Reports a family that only one side has as one difference.
Status Verifier::MatchFamilies() {
  right_family_.assign(left_.plan.families.size(), UINT32_MAX);
  for (const Family& family : left_.plan.families) {
    const rocksdb::Comparator* order = nullptr;
    RETURN_IF_ERROR(FindComparator(family.description.name,
                                   family.description.comparator,
                                   options_.registry, &order));
    orders_.push_back(order);
    for (const Family& other : right_.plan.families) {
      if (other.description.name != family.description.name) {
        continue;
      }
      if (other.description.comparator != family.description.comparator) {
        return MakeStatus(EndState::kIncompatible,
                          "column family '" + other.description.name +
                              "': left is ordered by " +
                              family.description.comparator + ", right by " +
                              other.description.comparator);
      }
      right_family_[family.index] = other.index;
    }
    if (right_family_[family.index] == UINT32_MAX) {
      left_.judged.families_only_here.push_back(family.description.name);
    }
  }
  for (const Family& other : right_.plan.families) {
    if (std::find(right_family_.begin(), right_family_.end(), other.index) ==
        right_family_.end()) {
      right_.judged.families_only_here.push_back(other.description.name);
    }
  }
  uint64_t place = 0;
  for (const std::string& name : left_.judged.families_only_here) {
    AddDifference({0, place++}, name, "", "column family only left");
  }
  for (const std::string& name : right_.judged.families_only_here) {
    AddDifference({0, place++}, name, "", "column family only right");
  }
  // Checks that the left side's parts have no gaps, because the keys in a gap
  // would not be compared.
  return CheckTiling(left_.plan, options_.selection.interval, orders_);
}

DigestPart Verifier::PartOf(const VerifySide& side, uint32_t at) const {
  const bool is_left = &side == &left_;
  DigestPart asked;
  if (as_files()) {
    asked.unit = is_left ? pairs_[at].left : pairs_[at].right;
    return asked;
  }
  const Part& part = left_.plan.parts[at];
  asked.family = is_left ? part.family : right_family_[part.family];
  asked.interval = part.interval;
  return asked;
}

// Compares all parts. A part is a pair of units if files are compared,
// otherwise a key interval of the left side.
Status Verifier::CompareParts() {
  std::vector<uint32_t> parts;
  const size_t count = as_files() ? pairs_.size() : left_.plan.parts.size();
  for (uint32_t at = 0; at < count; ++at) {
    if (as_files() ||
        right_family_[left_.plan.parts[at].family] != UINT32_MAX) {
      parts.push_back(at);
    }
  }
  const auto digests_of = [this](const VerifySide& side) {
    return SourceDigests(
        side.link.get(), &failure_,
        [this, &side](uint32_t at) { return PartOf(side, at); }, side.label);
  };
  SourceDigests left = digests_of(left_);
  SourceDigests right = digests_of(right_);
  const Status status =
      CompareDigests(left_.link.get(), &failure_, &left, &right, parts,
                     [this](const ComparedPart& compared) {
                       return TakeCompared(compared);
                     });
  left_.is_corrupt = left_.is_corrupt || left.is_corrupt();
  right_.is_corrupt = right_.is_corrupt || right.is_corrupt();
  return status;
}

Status Verifier::TakeCompared(const ComparedPart& compared) {
  const uint32_t at = compared.part;
  if (as_files()) {
    done_bytes_ += pairs_[at].bytes;
    if (!compared.equal()) {
      AddDifferentFile(at);
    }
    return Status::OK();
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    entries_left_ += compared.left.entries;
    entries_right_ += compared.right.entries;
    key_value_bytes_ += compared.left.key_value_bytes;
  }
  entries_ += compared.left.entries;
  done_bytes_ += left_.plan.parts[at].bytes;
  return compared.equal() ? Status::OK() : ListDifferences(compared.lane, at);
}

// Counts a difference between two files. Reads nothing, because each side has
// already checked the file when its last unit was requested.
void Verifier::AddDifferentFile(size_t at) {
  std::lock_guard<std::mutex> lock(mu_);
  DifferenceSummary* const difference = AddDifference({at + 1, 0});
  if (difference != nullptr) {
    difference->file = CloneFileName(pairs_[at].file);
    difference->what = "file differs";
  }
}

// Reports each key in a part that differs.
Status Verifier::ListDifferences(uint32_t lane, size_t at) {
  const Part& part = left_.plan.parts[at];
  const std::string& family =
      left_.plan.families[part.family].description.name;
  const rocksdb::Comparator* order = orders_[part.family];
  EntryStream left_stream(left_.link->lane(lane), &left_.link->guard(),
                          part.family, part.interval, order);
  EntryStream right_stream(right_.link->lane(lane), &right_.link->guard(),
                           right_family_[part.family], part.interval, order);
  uint64_t found = 0;
  const EntryDigest* left = nullptr;
  const EntryDigest* right = nullptr;
  const auto next = [](VerifySide* side, EntryStream* stream,
                       const EntryDigest** entry) {
    const Status read = stream->Next(entry);
    side->is_corrupt =
        side->is_corrupt || EndStateOf(read) == EndState::kCorrupt;
    return read;
  };
  Status status = next(&left_, &left_stream, &left);
  if (status.ok()) {
    status = next(&right_, &right_stream, &right);
  }
  while (status.ok() && !failure_.failed() &&
         (left != nullptr || right != nullptr)) {
    const int compared = left == nullptr    ? 1
                         : right == nullptr ? -1
                                            : order->Compare(left->key,
                                                             right->key);
    // Two keys may be equal in the family's order although their bytes differ.
    // Then each key is missing on the other side.
    const bool same_key = compared == 0 && left->key == right->key;
    if (compared <= 0 && !same_key) {
      AddDifference({at + 1, ++found}, family, left->key, "only left");
    }
    if (compared >= 0 && !same_key) {
      AddDifference({at + 1, ++found}, family, right->key, "only right");
    }
    if (same_key && (left->value_bytes != right->value_bytes ||
                     left->value != right->value)) {
      AddDifference({at + 1, ++found}, family, left->key, "value differs");
    }
    if (compared <= 0) {
      status = next(&left_, &left_stream, &left);
    }
    if (status.ok() && compared >= 0) {
      status = next(&right_, &right_stream, &right);
    }
  }
  if (status.ok() && !failure_.failed() && found == 0) {
    // The digests of all single values are equal, but the digest of the part
    // differs. Only a part's digest distinguishes plain values from wide-column
    // entities.
    AddDifference({at + 1, 0}, family, part.interval.begin.value_or(""),
                  "keys from here on differ in kind (plain value or "
                  "wide-column entity)");
  }
  return status;
}

void Verifier::AddDifference(const Place& place, const std::string& family,
                             const Slice& key, const char* what) {
  std::lock_guard<std::mutex> lock(mu_);
  DifferenceSummary* const difference = AddDifference(place);
  if (difference != nullptr) {
    difference->column_family = family;
    difference->key =
        Slice(key.data(), std::min(key.size(), kMaxShownKeyBytes)).ToString();
    difference->key_bytes = key.size();
    difference->what = what;
  }
}

// REQUIRES: the caller has locked mu_.
DifferenceSummary* Verifier::AddDifference(const Place& place) {
  differences_++;
  const size_t most = options_.max_differences_shown;
  if (most == 0 || (first_.size() >= most && first_.rbegin()->first < place)) {
    return nullptr;
  }
  if (first_.size() == most) {
    first_.erase(std::prev(first_.end()));
  }
  return &first_[place];
}

// Reads the recorded faults of both sides. If a fault cannot be read, this
// verify does not remove it, as if the fault were newer than the snapshot.
void Verifier::ReadFaults() {
  for (VerifySide* side : {&left_, &right_}) {
    const SourceAddress& address = side->judged.address;
    if (address.is_directory()) {
      ReadKnownFault(address.directory, &side->known).PermitUncheckedError();
    }
  }
}

// Reads the pull records of both sides, once before and once after the
// snapshots are taken. A pull may exchange a directory at any time. So uses a
// record only if it was the same both times.
void Verifier::ReadRecords(bool pinned) {
  for (VerifySide* side : {&left_, &right_}) {
    const SourceAddress& address = side->judged.address;
    LastTransfer record;
    const bool found =
        address.is_directory() && ReadLastTransfer(address.directory, &record);
    std::optional<LastTransfer>& known = side->judged.record;
    if (found && (!pinned || known == record)) {
      known = record;
    } else {
      known.reset();
    }
    side->judged.database_id = side->plan.opened.source_database_id;
    side->judged.sequence = side->plan.opened.snapshot_sequence;
  }
}

void Verifier::SayWhatIsCompared() const {
  std::string text = as_files() ? "comparing the files of" : "comparing";
  for (const VerifySide* side : {&left_, &right_}) {
    text += (side == &left_ ? " " : " with ") + side->label + " " +
            side->judged.address.ToString() + " at sequence " +
            std::to_string(side->judged.sequence);
  }
  if (options_.log) {
    options_.log(LogLevel::kInfo, text);
  }
}

Status Verifier::Run(Summary* summary) {
  summary->started_at = NowRfc3339();
  ReadFaults();
  ReadRecords(/*pinned=*/false);
  Status status = OpenSides();
  bool ends_well = false;
  if (status.ok() && as_files()) {
    status = MatchFiles();
    // The sides have different files, but neither has failed.
    ends_well = !status.ok();
  }
  has_compared_ = status.ok() || !as_files();
  const uint32_t lanes =
      std::min(left_.plan.opened.lanes, right_.plan.opened.lanes);
  for (VerifySide* side : {&left_, &right_}) {
    if (status.ok()) {
      side->link->SetLanes(lanes);
    }
  }
  planned_bytes_ = left_.plan.bytes();
  ReadRecords(/*pinned=*/true);
  if (status.ok()) {
    SayWhatIsCompared();
    status = as_files() ? status : MatchFamilies();
  }
  if (status.ok()) {
    status = CompareParts();
  }
  if (!status.ok()) {
    failure_.Set(status, {FailedPart::kVerify});
  }
  // If one connection reports damage, the other connections of this side end
  // without a reason. So asks each session for its failure.
  for (VerifySide* side : {&left_, &right_}) {
    SourceSession* const session = side->link->session();
    side->is_corrupt =
        side->is_corrupt ||
        (session != nullptr &&
         EndStateOf(session->AwaitFailure(std::chrono::milliseconds(0))) ==
             EndState::kCorrupt);
  }
  HangUp(ends_well ? Status::OK() : failure_.status(), summary);
  FillSummary(lanes, summary);
  finished_ = !failure_.failed();
  status = Judge(summary);
  finding_ = Find(status);
  return status;
}

// Returns what the comparison found out about the copy: its fault, or that it
// has none. A family that only the copy has is no fault, because a refresh
// keeps it. But different bytes in two files with the same identity are always
// a fault, even if one side is newer.
ReplicaFinding Verifier::Find(const Status& status) const {
  for (const VerifySide* side : {&right_, &left_}) {
    const JudgedSide& judged = side->judged;
    const JudgedSide& other = (side == &left_ ? right_ : left_).judged;
    if (!judged.address.is_directory() || !judged.record.has_value()) {
      continue;
    }
    ReplicaFinding found{judged.address.directory, ReplicaFault::kNone,
                         as_files(), *judged.record, side->known};
    if (EndStateOf(status) == EndState::kCorrupt && side->is_corrupt) {
      found.fault = ReplicaFault::kDamaged;
      return found;
    }
    if (!IsPulledFrom(judged, other)) {
      continue;
    }
    const bool differs =
        EndStateOf(status) == EndState::kDifferent &&
        differences_ > judged.families_only_here.size() &&
        (as_files() ||
         JudgeDifference(left_.judged, right_.judged, options_.selection)
             .is_fault);
    if (status.ok() || differs) {
      found.fault = status.ok()  ? ReplicaFault::kNone
                    : as_files() ? ReplicaFault::kDamaged
                                 : ReplicaFault::kDifferent;
      return found;
    }
  }
  return {};
}

Status Verifier::Judge(Summary* summary) const {
  if (failure_.failed()) {
    return failure_.status();
  }
  std::lock_guard<std::mutex> lock(mu_);
  if (differences_ == 0) {
    return Status::OK();
  }
  const Verdict verdict =
      JudgeDifference(left_.judged, right_.judged, options_.selection);
  if (!verdict.beyond_repair.empty()) {
    summary->notes.push_back(verdict.beyond_repair);
  }
  return MakeStatus(
      verdict.state,
      std::to_string(differences_) +
          (differences_ == 1 ? " difference in " : " differences in ") +
          (as_files() ? std::to_string(pairs_.size()) +
                            " parts of files with the same identity"
                      : std::to_string(entries_left_) + " left and " +
                            std::to_string(entries_right_) +
                            " right entries") +
          "; " + verdict.reason,
      verdict.next);
}

void Verifier::HangUp(const Status& status, Summary* summary) {
  for (VerifySide* side : {&left_, &right_}) {
    summary->wire_bytes += side->link->wire_bytes();
    if (side->link->session() != nullptr) {
      const HelloAck& source = side->link->session()->source();
      SideVersions* versions = side == &left_ ? &summary->source_versions
                                              : &summary->target_versions;
      versions->software = source.software;
      versions->rocksdb = source.rocksdb_version;
      side->link->End(status, {FailedPart::kVerify});
    }
  }
}

void Verifier::FillSummary(uint32_t lanes, Summary* summary) const {
  std::lock_guard<std::mutex> lock(mu_);
  summary->source = options_.left.ToString();
  summary->target = options_.right.ToString();
  summary->selection = options_.selection;
  summary->source_database_id = left_.judged.database_id;
  summary->snapshot_sequence = left_.judged.sequence;
  summary->left = SideSummary(left_.judged, right_.judged);
  if (options_.left_snapshot.has_value()) {
    summary->left.snapshot_transfer_id = ToHex(*options_.left_snapshot);
  }
  summary->right = SideSummary(right_.judged, left_.judged);
  for (const Family& family : left_.plan.families) {
    summary->column_families.push_back(family.description.name);
  }
  summary->parts = left_.plan.parts.size();
  summary->lanes = lanes;
  summary->entries = entries_left_;
  summary->key_value_bytes = key_value_bytes_;
  if (has_compared_) {
    summary->compared = as_files() ? "files" : "entries";
  }
  std::set<std::string> files;
  for (const FilePair& pair : pairs_) {
    files.insert(CloneFileName(pair.file));
    summary->bytes_compared += pair.bytes;
  }
  summary->files_compared = files.size();
  summary->entries_left = entries_left_;
  summary->entries_right = entries_right_;
  summary->differences = differences_;
  for (const auto& difference : first_) {
    summary->first_differences.push_back(difference.second);
  }
  summary->notes = left_.plan.opened.notes;
  summary->finished_at = NowRfc3339();
  summary->peak_rss_bytes = PeakRssBytes();
  summary->seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_)
          .count();
}

void Verifier::Cancel() {
  failure_.Set(MakeStatus(EndState::kCancelled, "stopped on request"),
               {FailedPart::kVerify});
}

Progress Verifier::progress() const {
  Progress progress;
  progress.phase = "verify";
  progress.planned_bytes = planned_bytes_;
  progress.done_bytes = done_bytes_;
  progress.entries = entries_;
  progress.lanes = options_.lanes;
  progress.finished = finished_;
  progress.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_)
          .count();
  return progress;
}

}  // namespace sstferry
