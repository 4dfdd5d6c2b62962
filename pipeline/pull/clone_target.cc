#include "pipeline/pull/clone_target.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/earlier_files.h"
#include "pipeline/pull/file_check.h"
#include "pipeline/pull/health.h"
#include "pipeline/pull/method_rule.h"
#include "pipeline/pull/plan_options.h"
#include "pipeline/pull/unit_store.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "rocksdb/comparator.h"
#include "rocksdb/env.h"

namespace sstferry {

using rocksdb::Status;

CloneTarget::CloneTarget(const TargetInputs& inputs, const char* mode)
    : NewDirectoryTarget(inputs, mode) {
  SetReuse(this);
}

Status CloneTarget::ReadExisting(
    WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
    FoundTarget* found) {
  const std::string why = WhyNoClone(options().selection);
  if (!why.empty()) {
    return MakeStatus(EndState::kRefused, why);
  }
  return NewDirectoryTarget::ReadExisting(use, disk, found);
}

// Returns true if the journal records no origin, because then no files were
// linked.
bool CloneTarget::IsAsLeft(const JournalState& journal) const {
  return !journal.target_files.has_value() ||
         IsFromOrigin(*journal.target_files);
}

// Accepts any comparator, because a clone's keys are not read.
Status CloneTarget::BuildFamilies() {
  if (!plan().clone.has_value()) {
    return MakeStatus(EndState::kCorrupt,
                      "plan: expected the files of a clone, found none");
  }
  for (size_t i = 0; i < plan().families.size(); ++i) {
    PullFamily family;
    family.comparator = rocksdb::BytewiseComparator();
    lanes()->families.push_back(family);
  }
  // The entries of a clone keep the source's sequence numbers.
  SetLastSequence(plan().opened.snapshot_sequence);
  return Status::OK();
}

void CloneTarget::MakeLayout() {
  layout_ = std::make_unique<CloneLayout>(
      *plan().clone, plan().parts, workspace()->db_dir(),
      workspace()->staging_dir());
  lanes()->clone = layout_.get();
}

std::string CloneTarget::PresentDirectory() const {
  if (!options().reuse_dir.empty()) {
    return options().reuse_dir;
  }
  std::error_code error;
  const std::string& target = options().target_dir;
  return !target.empty() &&
                 (std::filesystem::exists(target + "/CURRENT", error) ||
                  IsStandby(target))
             ? target
             : "";
}

Status CloneTarget::FindReused(const JournalState* earlier, bool* verify,
                               ReusedParts* reused) {
  is_current_ = false;
  origin_.reset();
  MakeLayout();
  Status status = ChooseNewId();
  if (!status.ok()) {
    if (earlier == nullptr) {
      workspace()->Discard().PermitUncheckedError();  // nothing has started
    }
    return status;
  }
  const std::string directory = PresentDirectory();
  if (!directory.empty()) {
    status = LinkPresent(directory, verify);
  }
  if (status.ok() && earlier != nullptr) {
    status = TakeEarlier(*earlier);
  }
  *reused = ListReused();
  return status;
}

ReusedParts CloneTarget::ListReused() const {
  ReusedParts reused;
  reused.is_current = is_current_;
  for (const Part& part : plan().parts) {
    if (layout_->IsReused(part.id)) {
      reused.linked.push_back(part.id);
      // A weak identity does not prove that the bytes are equal. In an adopted
      // directory, no identity proves it, because a failing disk may have
      // caused the failover.
      if (options().adopts_old || layout_->file_of(part.id).identity_is_weak) {
        reused.weak.push_back(part.id);
      }
    }
  }
  return reused;
}

// Reports which files are not linked, and why; the source sends them instead.
// If no file can be linked, an adoption fails.
Status CloneTarget::LinkPresent(const std::string& directory, bool* verify) {
  const FirstFailure* const stop = failure();
  const std::string origin = OriginOfLinks();
  RETURN_IF_ERROR(ReadFaultAgain());
  if (fault().fault != ReplicaFault::kNone && !*verify) {
    *verify = true;
    report()->Note(directory + ": " + FaultSentence(fault()) +
                           "; its files are compared with the source's before "
                           "they are reused (--verify)");
  }
  PresentFiles present;
  const Status found = LinkPresentFiles(
      {directory, lanes()->file_access, [stop] { return stop->failed(); },
       /*looks=*/is_only_planned(), /*is_closed=*/options().adopts_old},
      *layout_, lanes()->file_system, &present);
  if (stop->failed()) {
    return stop->status();
  }
  Status status;
  if (present.links_none) {
    workspace()->Discard().PermitUncheckedError();  // nothing has started
    return WithContext(found, EndStateOf(found),
                       "--adopt changed nothing, because it needs a file "
                       "system with hard links; follow into a new directory");
  }
  if (!found.ok()) {
    report()->Say("no file of " + directory +
                          " is reused: " + MessageOf(found));
    if (!is_only_planned()) {
      status = workspace()->ClearStagingBut({kEarlierName});
    }
  }
  if (present.other_access > 0) {
    report()->Say(
        std::to_string(present.other_access) + " files of " + directory +
        " are not reused: their owner or permissions differ from those of "
        "the new database");
  }
  layout_->SetReused(present.numbers);
  if (!present.numbers.empty()) origin_ = origin;
  FaultPoint("CloneTarget:FilesLinked");
  is_current_ = HoldsTheSame(present);
  return status;
}

Status CloneTarget::TakeEarlier(const JournalState& earlier) {
  const FirstFailure* const stop = failure();
  std::set<uint64_t> numbers;
  const Status status = TakeEarlierFiles(
      workspace()->earlier_dir(), earlier, *layout_, lanes()->file_system,
      [stop] { return stop->failed(); }, &numbers);
  if (!numbers.empty()) {
    report()->Say("keeps " + std::to_string(numbers.size()) +
                          " files that the unfinished pull had received");
  }
  for (const CloneFile& file : layout_->files()) {
    if (layout_->IsReused(file)) numbers.insert(file.number);
  }
  layout_->SetReused(std::move(numbers));
  return status;
}

// Also returns true while it is not known yet which files are shared.
bool CloneTarget::uses_old_files() const {
  return layout_ == nullptr || layout_->reused_files() > 0;
}

// Compares the current contents of both databases, because the record of the
// last pull may be outdated. Ignores OPTIONS: an application that opens the
// replica writes its own OPTIONS, so they always differ from the source's.
bool CloneTarget::HoldsTheSame(const PresentFiles& present) const {
  const Digest128& content = plan().clone->content;
  const std::string& source_id = plan().opened.source_database_id;
  LastTransfer last;
  const bool known =
      ReadLastTransfer(options().target_dir, &last) && last.is_copy() &&
      last.source_database_id == source_id;
  const bool keeps_id = present.database_id == source_id;
  const bool all_here = std::all_of(
      layout_->files().begin(), layout_->files().end(),
      [this](const CloneFile& file) {
        return layout_->IsReused(file) || !IsDataFile(file);
      });
  return is_exchanged() && !options().always_swap &&
         fault().fault == ReplicaFault::kNone &&
         options().reuse_dir.empty() && known &&
         (options().mode == PullMode::kRefresh ||
          keeps_id == options().keep_identity) &&
         all_here &&
         !(content == Digest128()) && content == present.content;
}

// Rejects whole files, because a file is either linked or received. For
// example, if unit 7 of a table with the units 5 to 9 differs, all five are
// received. Otherwise the pull would write unit 7 through the link into the
// other database.
Status CloneTarget::RejectReused(const std::vector<uint32_t>& different,
                                 ReusedParts* reused) {
  std::set<uint64_t> rejected;
  for (const uint32_t id : different) {
    rejected.insert(layout_->file_of(id).number);
  }
  std::set<uint64_t> kept;
  Status status;
  for (const CloneFile& file : layout_->files()) {
    if (!layout_->IsReused(file)) {
      continue;
    }
    if (rejected.count(file.number) == 0) {
      kept.insert(file.number);
    } else if (status.ok()) {
      status = RemoveTree(lanes()->file_system,
                          layout_->LinkPathOf(file));
    }
  }
  is_current_ = false;
  layout_->SetReused(std::move(kept));
  *reused = ListReused();
  if (status.ok()) {
    status = SyncDirectory(lanes()->file_system,
                           layout_->staging_dir());
  }
  return status.ok() ? layout_->MakeFiles(lanes()->file_system)
                     : status;
}

Status CloneTarget::Create(
    const std::shared_ptr<rocksdb::FileSystem>& file_system,
    std::optional<JournalTargetFiles>* held) {
  held->reset();
  if (origin_.has_value()) {
    held->emplace().database_id = *origin_;
  }
  const Status status = layout_->MakeFiles(file_system.get());
  FaultPoint("CloneTarget:FilesMade");
  return status;
}

Status CloneTarget::Reopen(
    const std::shared_ptr<rocksdb::FileSystem>& file_system,
    const JournalState& unfinished, ReceivedChunks* received) {
  RETURN_IF_ERROR(ChooseNewId());
  MakeLayout();
  RETURN_IF_ERROR(layout_->MakeFiles(file_system.get()));
  FindReceived(unfinished, received);
  received->reused = ListReused();
  received->waited_for = WaitingInStaging();
  return Status::OK();
}

// Returns the numbers of linked data files. The journal records each unit of
// such a file as done without a chunk. If one unit of a file was received, the
// file was not linked.
std::set<uint64_t> CloneTarget::FindLinked(const JournalState& journal) const {
  std::set<uint64_t> linked;
  std::set<uint64_t> others;
  for (const Part& part : journal.plan.parts) {
    const CloneFile& file = layout_->file_of(part.id);
    const bool recorded =
        journal.whole[part.id] && journal.chunks[part.id].empty();
    std::string path;
    if (!IsDataFile(file)) {
      continue;
    }
    if (!recorded) {
      others.insert(file.number);
    } else if (linked.count(file.number) == 0 &&
               layout_->FindLink(file, &path)) {
      linked.insert(file.number);
    }
  }
  for (const uint64_t number : others) {
    linked.erase(number);
  }
  return linked;
}

// Compares the digest of the unit's bytes on the disk with the recorded digest.
// Bytes that were not synced, or whose sync failed, may be lost.
bool CloneTarget::IsReceived(const Part& part,
                             const JournalChunk& chunk) const {
  const Part& unit = layout_->unit(part.id);
  Digest128 content;
  return chunk.kind == PartKind::kUnit &&
         chunk.chunk.file_bytes == unit.bytes &&
         DigestFromDisk(lanes()->file_system,
                        layout_->PathOf(layout_->file_of(part.id)),
                        unit.offset, unit.bytes, &content)
             .ok() &&
         content == chunk.content;
}

void CloneTarget::FindReceived(const JournalState& journal,
                               ReceivedChunks* received) {
  *received = ReceivedChunks();
  received->starts.resize(journal.plan.parts.size());
  layout_->SetReused(FindLinked(journal));
  for (const Part& part : journal.plan.parts) {
    const std::vector<JournalChunk>& chunks = journal.chunks[part.id];
    if (chunks.empty()) {
      received->starts[part.id].whole = layout_->IsReused(part.id);
      received->chunks_lost +=
          journal.whole[part.id] && !received->starts[part.id].whole ? 1 : 0;
      continue;
    }
    if (chunks.size() > 1 || !IsReceived(part, chunks.front())) {
      received->chunks_lost += chunks.size();
      continue;
    }
    PartStart& start = received->starts[part.id];
    start.received = TotalsOf(chunks);
    start.whole = true;
    if (!journal.whole[part.id]) {
      received->ended.push_back({part.id, start.received});
    }
    received->totals += start.received;
    received->chunks_cloned++;
    received->staged.push_back({part.family,
                            layout_->PathOf(layout_->file_of(part.id)),
                            chunks.front()});
    received->chunks_unchecked += chunks.front().unchecked ? 1 : 0;
    if (chunks.front().unchecked) layout_->SetUnchecked(part.id);
    // A complete file was checked before its last unit was recorded. For an
    // incomplete file, the journal does not say which spans were checked, so
    // the whole file is checked when it is complete.
    std::vector<ByteSpan> checked;
    layout_->CompleteUnit(part.id, ByteSpan(), &checked);
  }
}

std::set<std::string> CloneTarget::WaitingInStaging() const {
  std::set<std::string> names;
  for (const CloneFile& file : layout_->files()) {
    const bool is_link = layout_->IsReused(file);
    if (is_link || layout_->PathOf(file) == layout_->LinkPathOf(file)) {
      names.insert(CloneFileName(file));
    }
  }
  return names;
}

std::unique_ptr<ChunkStore> CloneTarget::MakeStore(JournalFile* journal) {
  return std::make_unique<UnitStore>(layout_.get(), lanes()->file_system,
                                     journal, lanes()->sync_chunks);
}

Status CloneTarget::Finish() {
  Status status = FinishClone(*layout_, new_id_, ApplicationOf(plan()),
                              options().selection.families, last_files(),
                              &finished_);
  if (status.ok()) {
    status = CheckFamilyNames();
  }
  {
    std::lock_guard<std::mutex> lock(lanes()->mu);
    lanes()->chunks_unchecked -= finished_.checked_whole;
  }
  return status;
}

// Gives a clone a new database id. Otherwise two databases with the same id
// could become different, and be mistaken for each other. A refreshed replica
// keeps its id, because other replicas that were pulled from it refuse a source
// with another id.
Status CloneTarget::ChooseNewId() {
  new_id_.reset();
  if (options().keep_identity) {
    return Status::OK();
  }
  const std::string& target = options().target_dir;
  if (options().mode != PullMode::kRefresh || !HoldsDatabase(target)) {
    new_id_ = rocksdb::Env::Default()->GenerateUniqueId();
    return Status::OK();
  }
  std::string id;
  const Status read = ReadDatabaseId(target, &id);
  if (!read.ok()) {
    return MakeStatus(EndState::kRefused,
                      "target " + target +
                          ": a refresh keeps the database id of the target, "
                          "but cannot read it: " + SentenceOf(read) +
                          "; a swap gives the database a new id, which "
                          "replicas of it do not know",
                      SwapCommand(options()));
  }
  new_id_ = id;
  return Status::OK();
}

Status CloneTarget::CheckFamilyNames() const {
  std::set<std::string> announced;
  for (const Family& family : plan().families) {
    announced.insert(family.description.name);
  }
  return announced == std::set<std::string>(finished_.families.begin(),
                                            finished_.families.end())
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          "files of the clone: the MANIFEST has other column "
                          "families than the plan");
}

Status CloneTarget::CheckWritten() const {
  for (const WrittenFile& file : finished_.written) {
    const std::string path = workspace()->db_dir() + "/" + file.name;
    Digest128 found;
    RETURN_IF_ERROR(DigestFromDisk(lanes()->file_system, path, 0, file.bytes,
                                   &found));
    if (!(found == file.content)) {
      return MakeStatus(EndState::kCorrupt,
                        path + ": expected the " + std::to_string(file.bytes) +
                            " bytes with digest " + ToHex(file.content) +
                            " that were written, found digest " +
                            ToHex(found) + " on the disk; check the disk here");
    }
  }
  return Status::OK();
}

Status CloneTarget::Record(const Summary& summary) {
  Status status = NewDirectoryTarget::Record(summary);
  if (status.ok() && lanes()->sync_chunks) {
    status = CheckWritten();
  }
  const std::string dir = workspace()->db_dir();
  Access access;
  if (status.ok()) {
    status = ChooseAccess(options(), &access);
  }
  if (status.ok()) {
    status = NameManifest(dir, access);
  }
  FaultPoint("CloneTarget:CurrentWritten");
  return status.ok() ? last_files()->Run() : status;
}

Status CloneTarget::NameManifest(const std::string& dir,
                                 const Access& access) {
  const std::string path = dir + "/CURRENT";
  RETURN_IF_ERROR(
      WriteDurably(last_files(), path, finished_.manifest + "\n"));
  return SetAccess(path, access.OfFiles());
}

void CloneTarget::FillSummary(Summary* summary) const {
  summary->method = "clone";
  summary->levels = finished_.levels;
  if (!finished_.manifest.empty()) {
    summary->files_cloned = layout_->files().size() - layout_->reused_files();
  }
  const bool planned = is_only_planned() && layout_ != nullptr;
  if (!finished_.manifest.empty() || is_current_ || planned) {
    summary->files_reused = layout_->reused_files();
    summary->bytes_reused = layout_->reused_bytes();
  }
}

Status CloneTarget::DigestPart(const Part& part, DigestReply* reply) {
  const Part& unit = layout_->unit(part.id);
  const CloneFile& file = layout_->file_of(part.id);
  std::string path = layout_->PathOf(file);
  *reply = DigestReply();
  if (layout_->IsReused(file) && !layout_->FindLink(file, &path)) {
    return MakeStatus(EndState::kCorrupt,
                      "the link " + path + " is missing");
  }
  // Bytes that were not synced may not be on the disk, so read them through the
  // page cache.
  const auto digest_of = lanes()->sync_chunks ? DigestFromDisk : DigestOfPart;
  return digest_of(lanes()->file_system, path, unit.offset, unit.bytes,
                   &reply->content);
}

}  // namespace sstferry
