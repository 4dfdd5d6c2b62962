#include "pipeline/target/pull/seed_target.h"

#include "pipeline/base/last_transfer.h"
#include "pipeline/options/family_options.h"
#include "pipeline/target/database/background_errors.h"
#include "pipeline/target/disk/durable.h"
#include "pipeline/target/memory/cover_record.h"

namespace sstferry {

using rocksdb::Status;

Status SeedTarget::OpenWorkspace(std::unique_ptr<Workspace>* workspace) {
  // Never the file system that defers syncs: the record of an exchange must
  // be on disk before the exchange.
  const Existing existing = IsSwap(options())    ? Existing::kRefresh
                            : options().replace ? Existing::kReplace
                                                : Existing::kRefuse;
  Access access;
  const Status status = ChooseAccess(options(), &access);
  state()->file_access = access.OfFiles();
  return status.ok()
             ? Workspace::Open(options().target_dir, existing, context().disk,
                               options().log, workspace)
             : status;
}

Status SeedTarget::Inspect() { return Status::OK(); }

Status SeedTarget::BuildFamilies() {
  names_.clear();
  built_.clear();
  std::vector<std::string> notes;
  Status status = BuildDatabaseOptions(plan().opened.database_options,
                                       &database_options_, &notes);
  database_options_.listeners.push_back(MakeBackgroundErrorListener(
      context().workspace->db_dir(), [this](const Status& error) {
        context().fail(error, "target database");
      }));
  for (const Family& family : plan().families) {
    if (!status.ok()) {
      return status;
    }
    BuildLimits limits;
    limits.format_version = family.format_version;
    BuiltFamily one;
    status = BuildFamily(family.description, options().registry, limits, &one);
    notes.insert(notes.end(), one.notes.begin(), one.notes.end());
    PullFamily shared;
    shared.comparator = one.pull_options.comparator;
    shared.format_version = one.format_version;
    state()->families.push_back(shared);
    names_.push_back(family.description.name);
    built_.push_back(std::move(one));
  }
  for (const std::string& note : notes) {
    context().note(note);
  }
  return status;
}

Status SeedTarget::Create() {
  const Status status =
      TargetDb::Create(context().workspace->db_dir(), database_options_,
                       names_, built_, context().file_system, &db_);
  FaultPoint("Puller:DatabaseCreated");
  return status;
}

Status SeedTarget::Reopen() {
  return TargetDb::Reopen(context().workspace->db_dir(), database_options_,
                          names_, built_, context().file_system, &db_);
}

Status SeedTarget::FindHeld(const JournalState& journal, HeldChunks* held) {
  return FindHeldChunks(journal, *db_, state()->families,
                        context().file_system.get(), state()->staging_dir,
                        held);
}

std::unique_ptr<Ingestor> SeedTarget::MakeIngestor(JournalFile* journal) {
  std::vector<IngestFamily> families;
  for (size_t i = 0; i < names_.size(); ++i) {
    families.push_back({db_->handle(i), db_->family(i).keeps_level0});
  }
  return std::make_unique<Ingestor>(db_->db(), std::move(families), journal,
                                    state()->sync_chunks,
                                    2 * plan().opened.lanes);
}

Status SeedTarget::Begin() { return Status::OK(); }

Status SeedTarget::Finish(Ingestor* /*ingestor*/) {
  Status status = db_->CountLevels(&levels_);
  if (status.ok()) {
    status = CheckFileCount();
  }
  if (status.ok()) {
    status = db_->Finalize();
    FaultPoint("Puller:DatabaseReopened");
  }
  if (!status.ok()) {
    return status;
  }
  std::vector<FamilyHandle> families;
  for (size_t i = 0; i < names_.size(); ++i) {
    families.push_back({names_[i], db_->handle(i)});
  }
  return RecordCovers(options(), plan(), db_->db(), families, JudgedTarget(),
                      /*journal=*/nullptr, &covers_);
}

// The totals count what was received. That it is all in the database shows in
// its live files: one for each chunk, since nothing compacts.
Status SeedTarget::CheckFileCount() const {
  uint64_t files = 0;
  for (const auto& level : levels_) {
    files += level.second;
  }
  std::lock_guard<std::mutex> lock(state()->mu);
  const uint64_t chunks = state()->chunks_built + state()->chunks_carried;
  if (files != chunks) {
    return MakeStatus(EndState::kInternal,
                      "files of the new database: expected one for each of " +
                          std::to_string(chunks) + " chunks, found " +
                          std::to_string(files));
  }
  return Status::OK();
}

Status SeedTarget::Close(JournalFile* journal) {
  Status status = db_->Close();
  if (status.ok()) {
    // Once TARGET_DIR is complete, it says whose workspace this was.
    status = journal->Sync();
  }
  if (status.ok()) {
    status = journal->Close();
  }
  FaultPoint("Puller:DatabaseClosed");
  if (status.ok()) {
    rocksdb::FileSystem* const disk = context().disk.get();
    const std::string dir = context().workspace->db_dir();
    status = state()->sync_chunks ? SyncDirectory(disk, dir)
                                  : SyncTree(disk, dir);
  }
  FaultPoint("Puller:DatabaseSynced");
  return status;
}

Status SeedTarget::Record(const Summary& summary) {
  const std::string dir = context().workspace->db_dir();
  Status status =
      WriteCovers(context().file_system.get(), dir, covers_);
  if (status.ok()) {
    status = WriteDurably(context().file_system.get(),
                          dir + "/" + kLastTransferName,
                          SummaryToJson(summary, "pull") + "\n");
  }
  FaultPoint("Puller:SummaryWritten");
  Access access;  // the place that it takes may have been changed since
  if (status.ok()) {
    status = ChooseAccess(options(), &access);
  }
  if (status.ok()) {
    status = SetTreeAccess(context().disk.get(), dir, access);
  }
  FaultPoint("Puller:AccessSet");
  if (status.ok() && !state()->sync_chunks) {
    status = SyncTree(context().disk.get(), dir);
  }
  return status;
}

Status SeedTarget::Publish() {
  std::string note;
  const Status status = context().workspace->Publish(
      ToHex(plan().opened.transfer_id), &replaced_, &note);
  if (!note.empty()) {
    context().say(note);
  }
  return status;
}

Status SeedTarget::Settle() { return Status::OK(); }

void SeedTarget::FillSummary(Summary* summary) const {
  summary->replaced = replaced_;
  summary->levels = levels_;
}

}  // namespace sstferry
