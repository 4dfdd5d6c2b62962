#include "pipeline/pull/seed_target.h"

#include <algorithm>

#include "pipeline/disk/durable.h"
#include "pipeline/options/family_options.h"
#include "pipeline/options/options_file.h"
#include "pipeline/parts/interval_reader.h"
#include "pipeline/pull/background_errors.h"
#include "pipeline/pull/first_sequence.h"
#include "pipeline/pull/ingestor.h"
#include "pipeline/pull/plan_options.h"

namespace sstferry {

using rocksdb::Status;

Status SeedTarget::BuildFamilies() {
  names_.clear();
  built_.clear();
  std::vector<std::string> notes;
  std::vector<std::string> advice;
  Status status = SetDatabaseOptions();
  for (const Family& family : plan().families) {
    RETURN_IF_ERROR(status);
    BuildLimits limits;
    limits.format_version = family.format_version;
    limits.max_format_version = MaxFormatVersionOf(plan());
    BuiltFamily one;
    status = BuildFamily(family.description, options().registry, limits, &one);
    notes.insert(notes.end(), one.notes.begin(), one.notes.end());
    advice.insert(advice.end(), one.advice.begin(), one.advice.end());
    PullFamily shared;
    shared.comparator = one.pull_options.comparator;
    shared.format_version = one.format_version;
    lanes()->families.push_back(shared);
    names_.push_back(family.description.name);
    built_.push_back(std::move(one));
  }
  for (const std::string& note : notes) {
    report()->NoteDetail(note);
  }
  for (const std::string& note : advice) {
    report()->Note(note);
  }
  return status;
}

Status SeedTarget::SetDatabaseOptions() {
  database_options_ = TargetDbOptions();
  database_options_.listeners.push_back(MakeBackgroundErrorListener(
      workspace()->db_dir(), [this](const Status& error) {
        failure()->Set(error, {FailedPart::kTargetDatabase});
      }));
  for (const NamedValue& option : plan().opened.database_options) {
    if (option.name == "write_dbid_to_manifest") {
      database_options_.write_dbid_to_manifest = option.value == "true";
    } else if (option.name == "file_checksum_gen_factory" &&
               !IsNullObject(option.value)) {
      report()->Note("tables have checksums of their blocks, but none of the "
                     "whole file (file_checksum_gen_factory) until they are "
                     "compacted; a clone keeps those of the source");
    }
  }
  return OptionsTextOf(plan(), &database_options_.options_text);
}

Status SeedTarget::Create(
    const std::shared_ptr<rocksdb::FileSystem>& file_system,
    std::optional<JournalTargetFiles>* held) {
  held->reset();
  const Status status =
      TargetDb::Create(workspace()->db_dir(), database_options_, names_,
                       built_, file_system, &db_);
  FaultPoint("Puller:DatabaseCreated");
  return status;
}

Status SeedTarget::Reopen(
    const std::shared_ptr<rocksdb::FileSystem>& file_system,
    const JournalState& unfinished, ReceivedChunks* received) {
  const Status status =
      TargetDb::Reopen(workspace()->db_dir(), database_options_, names_,
                       built_, file_system, &db_);
  return status.ok()
             ? FindReceivedChunks(unfinished, *db_, lanes()->families,
                                  file_system.get(), lanes()->staging_dir,
                                  received)
             : status;
}

std::unique_ptr<ChunkStore> SeedTarget::MakeStore(JournalFile* journal) {
  std::vector<IngestFamily> families;
  for (size_t i = 0; i < names_.size(); ++i) {
    families.push_back({db_->handle(i), db_->family(i).keeps_level0});
  }
  return std::make_unique<Ingestor>(db_->db(), std::move(families), journal,
                                    lanes()->sync_chunks,
                                    2 * plan().opened.lanes);
}

Status SeedTarget::Finish() {
  RETURN_IF_ERROR(db_->CountLevels(&levels_));
  return CheckFileCount();
}

// Checks that the database has as many live files as chunks were received. The
// totals count received chunks, not ingested ones. No compaction changes the
// number of files.
Status SeedTarget::CheckFileCount() const {
  uint64_t files = 0;
  for (const auto& level : levels_) {
    files += level.second;
  }
  std::lock_guard<std::mutex> lock(lanes()->mu);
  const uint64_t chunks = lanes()->chunks_built;
  if (files != chunks) {
    return MakeStatus(EndState::kInternal,
                      "files of the new database: expected one for each of " +
                          std::to_string(chunks) + " chunks, found " +
                          std::to_string(files));
  }
  return Status::OK();
}

// Closes the database, and raises its last sequence number. The number is still
// 0, which a finished database must not have (first_sequence.h).
Status SeedTarget::CloseFiles() {
  const uint64_t snapshot = plan().opened.snapshot_sequence;
  SetLastSequence(std::max<uint64_t>(
      {db_->db()->GetLatestSequenceNumber(), snapshot, 1}));
  const Status status = db_->Close();
  FaultPoint("SeedTarget:DatabaseClosed");
  return status.ok() ? RaiseLastSequence(lanes()->file_system,
                                         workspace()->db_dir(), snapshot)
                     : status;
}

Status SeedTarget::DigestPart(const Part& part, DigestReply* reply) {
  return DigestInterval(db_->db(), db_->handle(part.family), part.interval,
                        kDigestReadaheadBytes,
                        [this] { return failure()->failed(); }, reply);
}

void SeedTarget::FillSummary(Summary* summary) const {
  summary->levels = levels_;
}

}  // namespace sstferry
