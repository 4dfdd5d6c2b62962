#include "pipeline/snapshot/file_snapshot.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/file_name.h"
#include "format/limits.h"
#include "format/rocksdb/file_identity.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/options/options_text.h"
#include "pipeline/options/unknown_options.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_copy.h"
#include "pipeline/snapshot/snapshot_files.h"

namespace sstferry {
namespace {

using rocksdb::Status;

Status CheckNotStopped(const SnapshotOptions& options) {
  return options.cancelled && options.cancelled()
             ? MakeStatus(EndState::kCancelled, "while taking the snapshot")
             : Status::OK();
}

// Adds the requirements of a family's files, as far as the MANIFEST shows them.
void AddFamilyNeeds(const ManifestFamily& family, Needs* needs) {
  for (const auto& [number, file] : family.files) {
    if (!file.has_timestamps) {
      needs->Add(kReadsStrippedTimestamps,
                 "tables without the timestamps of their keys");
    }
  }
  if (!family.blobs.empty()) {
    needs->Add(kReadsBlobFiles, "blob files");
  }
}

// Checks that no WAL is shorter than the size that the MANIFEST has recorded
// (track_and_verify_wals_in_manifest). RocksDB would not open such a clone. A
// copied WAL may be shorter because it is copied only up to its first damage.
Status CheckTrackedWals(const ManifestState& manifest,
                        const std::vector<CloneFile>& files) {
  for (const CloneFile& file : files) {
    const auto tracked = manifest.wals.find(file.number);
    if (file.kind == CloneFileKind::kWal && tracked != manifest.wals.end() &&
        tracked->second != kUnknownWalBytes && file.bytes < tracked->second) {
      return MakeStatus(EndState::kCorrupt,
                        CloneFileName(file) + ": the MANIFEST says that " +
                            std::to_string(tracked->second) +
                            " bytes were synced, but only the first " +
                            std::to_string(file.bytes) +
                            " are readable; --method ingest sends the entries "
                            "that RocksDB's recovery can read");
    }
  }
  return Status::OK();
}

// Checks that all copied WALs are still in the private directory, with the size
// that was copied. (Table and blob files are compared with the MANIFEST, but
// the MANIFEST does not always list WALs.)
Status CheckCopiedWals(const std::vector<CopiedWal>& copied,
                       const std::vector<CloneFile>& files) {
  for (const CopiedWal& wal : copied) {
    const auto found = std::find_if(
        files.begin(), files.end(), [&wal](const CloneFile& file) {
          return file.kind == CloneFileKind::kWal && file.number == wal.number;
        });
    if (found == files.end() || found->bytes != wal.bytes) {
      return MakeStatus(
          EndState::kSourceError,
          wal.name + " of the private snapshot: expected the " +
              std::to_string(wal.bytes) + " bytes that were copied, found " +
              (found == files.end() ? "no file"
                                    : std::to_string(found->bytes)) +
              "; try again");
    }
  }
  return Status::OK();
}

// Returns true if a program that keeps values in its own files wrote the tables
// of this family. The names are those of the objects with which the stacked
// BlobDB (utilities/blob_db/) and Titan open RocksDB.
bool IsStacked(const OptionsText& options, const std::string& family) {
  return options.FamilyObject(family, "compaction_filter_factory")
             .starts_with("BlobIndexCompactionFilterFactory") ||
         options.FamilyObject(family, "table_factory") == "TitanTable";
}

Status ValuesElsewhere(const std::string& family, const std::string& why) {
  return MakeStatus(EndState::kRefused,
                    "column family '" + family + "': " + why +
                        ": values are in other files than RocksDB's own, and "
                        "a clone has only RocksDB's own files");
}

}  // namespace

Status CheckClonable(const std::string& directory, const ManifestState& state,
                     const OptionsText& options) {
  for (const char* name : {"blob_dir", "titandb"}) {
    std::error_code error;
    if (std::filesystem::exists(directory + "/" + name, error)) {
      return MakeStatus(EndState::kRefused,
                        directory + "/" + name +
                            ": this directory holds values of BlobDB or "
                            "Titan, and a clone has RocksDB's own files only");
    }
  }
  uint64_t count = 0;
  for (const auto& [id, family] : state.families) {
    count += family.files.size() + family.blobs.size();
    if (IsStacked(options, family.name)) {
      return ValuesElsewhere(family.name,
                             "according to its OPTIONS, it belongs to a "
                             "stacked BlobDB or to Titan");
    }
    for (const auto& [number, file] : family.files) {
      if (file.oldest_blob_file != 0 &&
          family.blobs.count(file.oldest_blob_file) == 0) {
        return ValuesElsewhere(
            family.name,
            NumberedName(number, ".sst") + " refers to blob file " +
                std::to_string(file.oldest_blob_file) +
                ", which the MANIFEST does not name (as in a stacked BlobDB)");
      }
      if (file.path_id != 0) {
        return MakeStatus(EndState::kRefused,
                          "column family '" + family.name +
                              "' has files on other paths (db_paths, "
                              "cf_paths), which a clone cannot hold");
      }
    }
  }
  return count <= kMaxCloneDataFiles
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "clone: expected at most " +
                              std::to_string(kMaxCloneDataFiles) +
                              " tables and blob files, found " +
                              std::to_string(count) +
                              "; --method ingest pulls this database as "
                              "chunks");
}

Status ReadNeeds(const std::string& directory, const ManifestState& state,
                 Needs* needs) {
  for (const auto& [id, family] : state.families) {
    AddFamilyNeeds(family, needs);
    for (const auto& [number, known] : family.files) {
      const std::string name =
          CloneFileName({CloneFileKind::kTable, number, known.bytes});
      Descriptor descriptor;
      const Status opened = OpenForeign(directory + "/" + name, &descriptor);
      if (opened.IsNotFound() || (opened.ok() && !descriptor.is_open())) {
        continue;  // a compaction has removed the table meanwhile
      }
      RETURN_IF_ERROR(opened);
      FileId table;
      RETURN_IF_ERROR(FileIdOf(descriptor.get(), name, &table));
      SstReader reader;
      const DescriptorSource source(descriptor.get(), name, table.bytes);
      const Status status = reader.Open(&source);
      if (!status.ok() && !status.IsNotSupported()) {
        return WithContext(status, EndState::kCorrupt, name);
      }
      AddTableNeeds(reader, needs);
    }
  }
  return Status::OK();
}

Status CheckOpens(const Needs& needs, const RocksDbRelease& application) {
  std::string what;
  if (application < needs.release()) {
    what = needs.what() + ", which RocksDB reads since " +
           ReleaseName(needs.release());
  } else if (needs.has_old_formats() && application >= kDropsOldFormats) {
    what = "tables of format_version 0 or 1, which RocksDB no longer reads "
           "since " + ReleaseName(kDropsOldFormats);
  }
  return !application.is_known() || what.empty()
             ? Status::OK()
             : MakeStatus(
                   EndState::kIncompatible,
                   "the replica is for an application with RocksDB " +
                       ReleaseName(application) +
                       ", but the source's files contain " + what +
                       "; --method ingest writes tables that this application "
                       "reads");
}

const char kWalsOfAllFamilies[] =
    "all column families of a database share its WALs: the WALs of the clone "
    "may hold keys and values of families that were not chosen, until RocksDB "
    "has flushed and removed them";

Status KeepFamilies(const std::vector<std::string>& wanted,
                    ManifestState* state, std::vector<CloneFile>* files) {
  if (wanted.empty()) {
    return Status::OK();
  }
  std::set<std::string> missing(wanted.begin(), wanted.end());
  std::set<uint64_t> dropped;
  for (auto at = state->families.begin(); at != state->families.end();) {
    const ManifestFamily& family = at->second;
    if (missing.erase(family.name) == 1) {
      ++at;
      continue;
    }
    for (const auto& [number, file] : family.files) dropped.insert(number);
    for (const auto& [number, blob] : family.blobs) dropped.insert(number);
    at = state->families.erase(at);
  }
  std::erase_if(*files, [&dropped](const CloneFile& file) {
    return IsDataFile(file) && dropped.count(file.number) != 0;
  });
  return missing.empty()
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "column family '" + *missing.begin() +
                              "' is not in the source database");
}

Status FileSnapshot::Fill(const SnapshotOptions& options,
                          const SnapshotFiles* pinned) {
  const auto start = std::chrono::steady_clock::now();
  SnapshotFiles own(options, dir_->pinned(), dir_->db());
  const SnapshotFiles& files = pinned != nullptr ? *pinned : own;
  SnapshotFacts* const facts = mutable_facts();
  // At first checks only the directory. ReadManifest() repeats the check for
  // the files.
  Status status = CheckClonable(options.database_dir, ManifestState(),
                                OptionsText(""));
  if (status.ok() && pinned == nullptr) status = own.Take();
  if (status.ok()) status = own.ReleasePinned();
  facts->counters.rounds = files.rounds();
  facts->counters.files_linked = files.linked_files();
  facts->counters.copy_micros = MicrosSince(start);
  if (status.ok()) status = Describe(options);
  if (status.ok()) status = CheckCopiedWals(files.wals(), files_.files);
  if (status.ok() && facts->wal_holds_entries &&
      files.wal_directory() != options.database_dir) {
    facts->notes.push_back(
        "the source keeps its WALs in " + files.wal_directory() +
        " (wal_dir), but the clone has them beside its tables: an application "
        "that sets wal_dir itself must open the clone once without it, or it "
        "loses what only the WALs hold");
  }
  return WithContext(status, EndState::kSourceError, options.database_dir);
}

Status FileSnapshot::Reopen(const SnapshotOptions& options,
                            const RetainedState& /*state*/) {
  return Describe(options);
}

Status FileSnapshot::Describe(const SnapshotOptions& options) {
  SnapshotFacts* const facts = mutable_facts();
  ManifestTail manifest(db_);
  bool unused = false;
  WalContents wals;
  RETURN_IF_ERROR(ListFiles());
  RETURN_IF_ERROR(manifest.Follow(&unused));
  ManifestState kept = manifest.state();
  RETURN_IF_ERROR(KeepFamilies(options.families, &kept, &files_.files));
  facts->counters.live_files = files_.files.size();
  RETURN_IF_ERROR(ReadManifest(manifest, kept));
  RETURN_IF_ERROR(CheckNotStopped(options));
  RETURN_IF_ERROR(ReadTables(kept));
  RETURN_IF_ERROR(CheckNotStopped(options));
  RETURN_IF_ERROR(ReadWals(manifest.state(), &wals));
  RETURN_IF_ERROR(CheckTrackedWals(manifest.state(), files_.files));
  TellContent(kept, wals);
  if (kept.families.size() < manifest.state().families.size() &&
      facts->counters.wal_bytes_copied > 0) {
    facts->notes.push_back(kWalsOfAllFamilies);
  }
  NoteUnknownOptions(facts->options_text, &facts->notes);
  return Status::OK();
}

Status FileSnapshot::ListFiles() {
  std::vector<std::string> names;
  Status status = ListDirectory(db_, &names);
  for (const std::string& name : names) {
    CloneFile file;
    if (status.ok() && ParseCloneFileName(name, &file)) {
      const std::string path = db_ + "/" + name;
      FileId id;
      status = FileIdOf(path, &id);
      file.bytes = id.bytes;
      if (file.kind == CloneFileKind::kBlob) {
        file.modified_ns = id.modified_ns;
      }
      files_.files.push_back(file);
      bool found = false;
      if (status.ok() && file.kind == CloneFileKind::kOptions) {
        status = ReadForeign(path, kMaxOptionsFileBytes, &found,
                             &mutable_facts()->options_text);
      }
    }
  }
  std::sort(files_.files.begin(), files_.files.end(),
            [](const CloneFile& a, const CloneFile& b) {
              return a.kind != b.kind ? a.kind < b.kind : a.number < b.number;
            });
  return status;
}

Status FileSnapshot::ReadManifest(const ManifestTail& manifest,
                                  const ManifestState& kept) {
  RETURN_IF_ERROR(
      CheckClonable(db_, kept, OptionsText(mutable_facts()->options_text)));
  for (const auto& [id, family] : kept.families) {
    SnapshotFamily named;
    named.name = family.name;
    mutable_facts()->families.push_back(std::move(named));
  }
  for (CloneFile& file : files_.files) {
    if (file.kind == CloneFileKind::kManifest) {
      file.records_end = manifest.end();
    }
  }
  mutable_facts()->sequence = manifest.state().last_sequence;
  return ReadDatabaseId(db_, manifest.state(), &mutable_facts()->database_id);
}

Status FileSnapshot::ReadTables(const ManifestState& manifest) {
  std::map<uint64_t, CloneFile*> by_number;
  for (CloneFile& file : files_.files) {
    if (IsDataFile(file)) by_number[file.number] = &file;
  }
  for (const auto& [id, family] : manifest.families) {
    AddFamilyNeeds(family, &files_.needs);
    for (const auto& [number, known] : family.files) {
      const auto file = by_number.find(number);
      RETURN_IF_ERROR(file == by_number.end()
                          ? Status::OK()
                          : ReadTable(known, file->second,
                                      &files_.entries[family.name]));
    }
    for (const auto& [number, known] : family.blobs) {
      const auto file = by_number.find(number);
      if (file != by_number.end()) {
        file->second->identity =
            BlobIdentity(known, file->second->modified_ns,
                         &file->second->identity_is_weak);
      }
    }
  }
  return Status::OK();
}

Status FileSnapshot::ReadTable(const ManifestFile& known, CloneFile* file,
                               uint64_t* entries) {
  const std::string name = CloneFileName(*file);
  Descriptor descriptor;
  // A link in the private directory belongs to the owner of the source's file.
  // OpenForeign() would reject it if another account owns the private
  // directory.
  Status status = dir_ != nullptr
                      ? OpenPrivate(db_ + "/" + name, &descriptor)
                      : OpenForeign(db_ + "/" + name, &descriptor);
  SstReader reader;
  const DescriptorSource source(descriptor.get(), name, file->bytes);
  if (status.ok()) status = reader.Open(&source);
  if (status.IsNotSupported()) {
    // Not a block-based table, or a block-based table of a newer RocksDB. The
    // file is sent unchanged, and only the digests of the transfer show that
    // the target received it intact.
    AddTableNeeds(reader, &files_.needs);
    file->identity =
        TableIdentity(known, TableOrigin(), &file->identity_is_weak);
    return Status::OK();
  }
  if (!status.ok()) {
    return WithContext(status, EndState::kCorrupt, name);
  }
  const SstProperties& properties = reader.properties();
  *entries += properties.num_entries;
  file->identity = TableIdentity(
      known,
      TableOrigin{properties.db_id, properties.db_session_id,
                  properties.original_file_number, properties.digest},
      &file->identity_is_weak);
  AddTableNeeds(reader, &files_.needs);
  return Status::OK();
}

Status FileSnapshot::ReadWals(const ManifestState& state,
                              WalContents* contents) {
  SnapshotFacts* const facts = mutable_facts();
  std::vector<CopiedWal> wals;
  for (const CloneFile& file : files_.files) {
    if (file.kind == CloneFileKind::kWal) {
      wals.push_back({file.number, CloneFileName(file), file.bytes});
      facts->counters.wal_bytes_copied += file.bytes;
    }
  }
  facts->counters.wal_files = wals.size();
  const Status status = ReadWalContents(db_, wals, state, contents);
  for (CloneFile& file : files_.files) {
    if (file.kind == CloneFileKind::kWal) {
      file.records_end = contents->ends[file.number];
    }
  }
  files_.needs.Add(contents->needs.release(), contents->needs.what());
  facts->wal_holds_entries = contents->entries > 0;
  facts->sequence = std::max(facts->sequence, contents->newest_sequence);
  if (contents->prepared > 0) {
    facts->notes.push_back(std::to_string(contents->prepared) +
                           " prepared transactions are in the clone, neither "
                           "committed nor rolled back");
  }
  return status;
}

// Computes the digest of the snapshot's contents. Each time RocksDB opens a
// database, it changes the WAL numbers and the families' log numbers. So these
// numbers are not included if the WALs have no records.
void FileSnapshot::TellContent(const ManifestState& manifest,
                               const WalContents& wals) {
  std::map<uint64_t, Digest128> identities;
  for (const CloneFile& file : files_.files) {
    if (IsDataFile(file)) identities[file.number] = file.identity;
  }
  Digest128Stream content;
  const bool known = AddContent(manifest, identities, &content);
  std::string rest;
  PutFixed64(&rest, sequence());
  PutFixed64(&rest, wals.records);
  if (wals.records > 0) {
    PutFixed64(&rest, wals.digest.low);
    PutFixed64(&rest, wals.digest.high);
    for (const auto& [id, family] : manifest.families) {
      PutFixed64(&rest, family.log_number);
    }
  }
  content.Add(rest);
  files_.content = known ? content.Finish() : Digest128();
}

}  // namespace sstferry
