#include "pipeline/target/fill/clone_target.h"

#include <set>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/target/clone/file_check.h"
#include "pipeline/target/clone/unit_store.h"
#include "pipeline/target/disk/access.h"
#include "pipeline/target/disk/durable.h"
#include "pipeline/target/pull/pull_reporter.h"
#include "rocksdb/comparator.h"

namespace sstferry {

using rocksdb::Status;

Status CloneTarget::OpenWorkspace(std::unique_ptr<Workspace>* workspace) {
  const PullOptions& asked = options();
  const bool all = asked.selection.families.empty() &&
                   asked.selection.interval == KeyInterval();
  if (!all || asked.verify || asked.format_version != 0) {
    return MakeStatus(EndState::kRefused,
                      "a clone has all column families and all keys in the "
                      "source's own files: expected no selection, no "
                      "format_version and no verify");
  }
  return NewDirectoryTarget::OpenWorkspace(workspace);
}

Status CloneTarget::BuildFamilies() {
  if (!plan().clone.has_value()) {
    return MakeStatus(EndState::kCorrupt,
                      "plan: expected the files of a clone, found none");
  }
  const CloneSet& set = plan().clone->set;
  if (set.format_version > MaxReadableFormatVersion()) {
    return MakeStatus(EndState::kIncompatible,
                      "the source's tables have format_version " +
                          std::to_string(set.format_version) + ", RocksDB " +
                          RocksDbVersion() + " reads at most " +
                          std::to_string(MaxReadableFormatVersion()));
  }
  for (const uint8_t type : set.wal_record_types) {
    const Status status = CheckWalRecordType(type);
    if (!status.ok()) {
      return status;
    }
  }
  for (size_t i = 0; i < plan().families.size(); ++i) {
    PullFamily family;
    family.comparator = rocksdb::BytewiseComparator();  // of no key at all
    state()->families.push_back(family);
  }
  return MakeLayout();
}

Status CloneTarget::MakeLayout() {
  state()->clone = nullptr;
  const Status status = CloneLayout::Make(
      *plan().clone, plan().ranges.size(), context().workspace->db_dir(),
      context().workspace->staging_dir(), &layout_);
  state()->clone = layout_.get();
  return status;
}

Status CloneTarget::MakeFiles() {
  const Status status = MakeLayout();
  return status.ok() ? layout_->MakeFiles(context().file_system.get())
                     : status;
}

Status CloneTarget::Create() {
  const Status status = MakeFiles();
  FaultPoint("CloneTarget:FilesMade");
  return status;
}

// That all bytes are those which were recorded.
bool CloneTarget::IsHeld(const Range& range, const JournalChunk& chunk) const {
  const CloneUnit& unit = layout_->unit(range.id);
  Digest128 content;
  return chunk.kind == ChunkKind::kCloned &&
         chunk.chunk.file_bytes == unit.bytes &&
         DigestOfPart(context().file_system.get(),
                      layout_->PathOf(layout_->file_of(range.id)), unit.offset,
                      unit.bytes, &content)
             .ok() &&
         content == chunk.content;
}

Status CloneTarget::FindHeld(const JournalState& journal, HeldChunks* held) {
  *held = HeldChunks();
  held->starts.resize(journal.ranges.size());
  for (const Range& range : journal.ranges) {
    const std::vector<JournalChunk>& chunks = journal.chunks[range.id];
    if (chunks.empty()) {
      continue;
    }
    if (chunks.size() > 1 || !IsHeld(range, chunks.front())) {
      held->chunks_lost += chunks.size();
      continue;
    }
    RangeStart& start = held->starts[range.id];
    start.held = TotalsOf(chunks);
    start.end = EndOf(chunks.front().chunk);
    start.whole = true;
    if (!journal.whole[range.id]) {
      held->ended.push_back({range.id, start.held});
    }
    held->totals += start.held;
    held->chunks_cloned++;
    held->chunks_unchecked += chunks.front().unchecked ? 1 : 0;
    // A file that is whole was checked before its last unit was recorded. What
    // was checked of another is not: all of it is read.
    std::vector<ByteSpan> checked;
    layout_->CompleteUnit(range.id, ByteSpan(), &checked);
  }
  return Status::OK();
}

Status CloneTarget::ClearStaging(const HeldChunks&) {
  std::set<std::string> names;
  for (const CloneFile& file : layout_->files()) {
    names.insert(CloneFileName(file));
  }
  return context().workspace->ClearStagingBut(names);
}

std::unique_ptr<ChunkStore> CloneTarget::MakeStore(JournalFile* journal) {
  return std::make_unique<UnitStore>(layout_.get(),
                                     context().file_system.get(), journal,
                                     state()->sync_chunks);
}

Status CloneTarget::Finish() {
  Status status = FinishClone(*layout_, options().keep_identity,
                              context().file_system.get(), &finished_);
  if (status.ok()) {
    status = CheckFamilyNames();
  }
  FillCovers();
  return status;
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
                          "files of the clone: expected the column families "
                          "of the plan in the MANIFEST, found others");
}

// Where it came from. What it holds is not known interval by interval, so that
// a refresh in place compares.
void CloneTarget::FillCovers() {
  CoverFile* const record = covers();
  *record = CoverFile();
  record->transfer_id = plan().opened.transfer_id;
  record->source_database_id = plan().opened.source_database_id;
  record->sequence_new = plan().opened.snapshot_sequence;
  record->target_database_id = finished_.database_id;
  for (const std::string& name : finished_.families) {
    record->families.push_back({name, {}});
  }
}

Status CloneTarget::Record(const Summary& summary) {
  Status status = NewDirectoryTarget::Record(summary);
  const std::string dir = context().workspace->db_dir();
  Access access;
  if (status.ok()) {
    status = ChooseAccess(options(), &access);
  }
  if (status.ok()) {
    status = WriteDurably(context().disk.get(), dir + "/CURRENT",
                          finished_.manifest + "\n");
  }
  if (status.ok()) {
    status = SetAccess(dir + "/CURRENT", access.OfFiles());
  }
  FaultPoint("CloneTarget:CurrentWritten");
  return status.ok() ? SyncFile(context().disk.get(), dir + "/CURRENT")
                     : status;
}

void CloneTarget::FillSummary(Summary* summary) const {
  NewDirectoryTarget::FillSummary(summary);
  summary->method = "clone";
  summary->levels = finished_.levels;
  summary->files_cloned =
      finished_.manifest.empty() ? 0 : layout_->files().size();
}

Status CloneTarget::DigestRange(const Range&, DigestReply*) {
  return MakeStatus(EndState::kInternal, "a clone has no digests of ranges");
}

}  // namespace sstferry
