#include "pipeline/snapshot/snapshot_replay.h"

#include <algorithm>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/file_name.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/wal_facts.h"
#include "format/sealed_file.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr char kMagic[] = "SFREPLY1";
constexpr uint64_t kMaxReplayBytes = 192;
constexpr uint32_t kMaxNameBytes = 64;

Status OpenCopy(const std::string& path, Descriptor* file) {
  const Status status = OpenForeign(path, file);
  return status.ok() && !file->is_open()
             ? MakeStatus(EndState::kSourceError, path + " no longer exists")
             : status;
}

Status CheckReadable(const std::string& name, const LogFollower& follower) {
  for (const uint8_t type : follower.meta_record_types()) {
    Needs needs;
    needs.AddWalRecord(type);
    if (needs.release() > kLinkedRelease) {
      return OnlyAsFiles(EndState::kIncompatible,
                            name + ": expected record types that RocksDB " +
                                RocksDbVersion() + " reads, found type " +
                                std::to_string(type) +
                                ": let the application flush it");
    }
  }
  return Status::OK();
}

// Fails if the WALs have entries that this process's RocksDB does not replay.
// RocksDB itself would report such entries as damage.
Status CheckReplayed(const WalFacts& facts) {
  Needs needs;
  facts.AddNeeds(&needs);
  return needs.release() <= kLinkedRelease
             ? Status::OK()
             : OnlyAsFiles(EndState::kIncompatible,
                           "its WALs: expected entries that RocksDB " +
                               RocksDbVersion() + " replays, found " +
                               needs.what() + ", which RocksDB reads since " +
                               ReleaseName(needs.release()) +
                               ": let the application flush all its column "
                               "families");
}

// Fails if an entry of the WALs refers to a blob file that is not in the
// MANIFEST. Also fails if an entry cannot be read, because it may have such a
// reference. With enable_blob_direct_write (RocksDB 11), RocksDB writes values
// into blob files before a flush adds these files to the MANIFEST. A snapshot
// does not contain such files.
Status CheckBlobFiles(const WalFacts& facts, const ManifestState& state) {
  for (const uint64_t number : facts.blob_files()) {
    if (number == 0) {
      return MakeStatus(
          EndState::kRefused,
          "its WALs have references to blob files, or wide-column entities, "
          "that this sstferry cannot read, so it cannot know if it has all "
          "values; let the application flush all its column families, then try "
          "again, or use a newer sstferry");
    }
    bool is_named = false;
    for (const auto& [id, family] : state.families) {
      is_named |= family.blobs.count(number) > 0;
    }
    if (!is_named) {
      return MakeStatus(
          EndState::kRefused,
          "its WALs refer to " + NumberedName(number, ".blob") +
              ", which the MANIFEST does not name yet "
              "(enable_blob_direct_write writes such files before a flush); "
              "let the application flush all its column families, then try "
              "again");
    }
  }
  return Status::OK();
}

Status ReadWal(const std::string& directory, const CopiedWal& wal,
               bool is_newest, bool is_replayed, WalFacts* facts,
               Replay* replay) {
  Descriptor file;
  RETURN_IF_ERROR(OpenCopy(directory + "/" + wal.name, &file));
  FileId opened;
  RETURN_IF_ERROR(FileIdOf(file.get(), wal.name, &opened));
  const DescriptorSource source(file.get(), wal.name, opened.bytes);
  LogFollower follower(LogKind::kWal, wal.number);
  Status status = follower.Follow(source, [&](const Slice& record, uint64_t) {
    RETURN_IF_ERROR(facts->Add(wal.number, record));
    if (is_replayed && replay->torn.empty()) {
      replay->records.Add(wal.number, DecodeFixed64(record.data()));
      replay->newest_sequence = facts->newest_sequence();
    }
    return Status::OK();
  });
  if (status.ok()) status = CheckReadable(wal.name, follower);
  if (status.ok() && follower.stopped_inside()) {
    replay->torn = replay->torn.empty() ? wal.name : replay->torn;
    replay->is_torn_inside |= !is_newest;
  }
  return WithContext(status, EndState::kCorrupt, wal.name);
}

Status ReadFrom(const std::string& directory,
                const std::vector<CopiedWal>& wals, uint64_t oldest,
                uint64_t oldest_replayed, WalFacts* facts, Replay* replay) {
  *replay = Replay();
  for (const CopiedWal& wal : wals) {
    if (wal.number < oldest) {
      continue;
    }
    RETURN_IF_ERROR(ReadWal(directory, wal, &wal == &wals.back(),
                            wal.number >= oldest_replayed, facts, replay));
  }
  replay->entries = facts->entries();
  replay->has_prepare_sections = facts->has_prepare_sections();
  replay->has_single_deletes = facts->has_single_deletes();
  replay->prepared = facts->prepared().size();
  return Status::OK();
}

Status CheckFaithful(const WalFacts& facts, const rocksdb::DBOptions& options,
                     const Replay& replay) {
  if (facts.counts_batches()) {
    return OnlyAsFiles(
        EndState::kRefused,
        "its WALs were written by a TransactionDB with WRITE_PREPARED or "
        "WRITE_UNPREPARED, which plain RocksDB replays with wrong sequence "
        "numbers, so later writes would be lost; let the application flush all "
        "its column families while no transaction is open, or close it after a "
        "flush, then try again");
  }
  if (facts.prepares_twice()) {
    return OnlyAsFiles(
        EndState::kCorrupt,
        "its WALs prepare a transaction twice without an end in between: a WAL "
        "or a part of one is missing; put it back, or let the application open "
        "and flush the database, then try again");
  }
  if (facts.prepares_entities() && !kReplaysPreparedEntities) {
    return OnlyAsFiles(
        EndState::kRefused,
        "its WALs prepare transactions with wide-column entities, which "
        "RocksDB " + RocksDbVersion() +
            " replays as plain values (9.4 or later replays them as they are); "
            "let the application flush all its column families while no such "
            "transaction is open, then try again");
  }
  if (!options.paranoid_checks && replay.is_torn_inside &&
      options.wal_recovery_mode !=
          rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords) {
    return OnlyAsFiles(
        EndState::kRefused,
        replay.torn +
            " ends inside a record, and with paranoid_checks=false recovery "
            "continues after it; open and flush the database, then try again");
  }
  return Status::OK();
}

}  // namespace

Status ReadReplay(const std::string& directory,
                  const std::vector<CopiedWal>& wals,
                  const ManifestState& state,
                  const rocksdb::DBOptions& options,
                  const std::set<std::string>& opened, Replay* replay) {
  WalFacts all;
  Status status = ReadFrom(directory, wals, 0, 0, &all, replay);
  const WalFacts* facts = &all;
  const bool is_2pc = options.allow_2pc || all.has_prepare_sections();
  const uint64_t oldest = OldestNeededWal(state, is_2pc);
  const uint64_t replayed = OldestNeededWal(state, is_2pc, &opened);
  WalFacts needed;
  if (status.ok() && !wals.empty() && wals.front().number < replayed) {
    status = ReadFrom(directory, wals, oldest, replayed, &needed, replay);
    facts = &needed;
  }
  for (const auto& [id, written] : facts->families()) {
    const auto family = state.families.find(id);
    if (written.has_merges && family != state.families.end()) {
      replay->merging.insert(family->second.name);
    }
  }
  if (status.ok()) status = CheckBlobFiles(*facts, state);
  if (status.ok()) status = CheckFaithful(*facts, options, *replay);
  if (status.ok()) status = CheckReplayed(*facts);
  return status;
}

Status ReadWalContents(const std::string& directory,
                       const std::vector<CopiedWal>& wals,
                       const ManifestState& state, WalContents* contents) {
  WalFacts facts;
  Digest128Stream digest;
  for (const CopiedWal& wal : wals) {
    Descriptor file;
    RETURN_IF_ERROR(OpenCopy(directory + "/" + wal.name, &file));
    FileId opened;
    RETURN_IF_ERROR(FileIdOf(file.get(), wal.name, &opened));
    LogFollower follower(LogKind::kWal, wal.number);
    Status status = follower.Follow(
        DescriptorSource(file.get(), wal.name, opened.bytes),
        [&](const Slice& record, uint64_t end_offset) {
          std::string place;
          PutFixed64(&place, wal.number);
          PutFixed64(&place, end_offset);
          digest.Add(place);
          digest.Add(record);
          contents->records++;
          return facts.Add(wal.number, record);
        });
    if (!status.ok()) {
      return WithContext(status, status.IsNotSupported()
                                     ? EndState::kIncompatible
                                     : EndState::kCorrupt,
                         wal.name);
    }
    for (const uint8_t type : follower.meta_record_types()) {
      contents->needs.AddWalRecord(type);
    }
    contents->ends[wal.number] = follower.end();
  }
  contents->entries = facts.entries();
  contents->prepared = facts.prepared().size();
  facts.AddNeeds(&contents->needs);
  contents->newest_sequence = facts.newest_sequence();
  contents->digest = digest.Finish();
  return CheckBlobFiles(facts, state);
}

Status WriteReplay(const std::string& path, const Replay& replay) {
  std::string payload;
  PutFixed64(&payload, replay.entries);
  PutFixed64(&payload, replay.prepared);
  PutFixed8(&payload, replay.has_prepare_sections ? 1 : 0);
  PutFixed8(&payload, replay.is_torn_inside ? 1 : 0);
  PutFixed8(&payload, replay.has_single_deletes ? 1 : 0);
  PutFixed64(&payload, replay.records.count);
  PutFixed64(&payload, replay.records.digest.high);
  PutFixed64(&payload, replay.records.digest.low);
  PutBytes(&payload, replay.torn);
  std::string file;
  SealFile(kMagic, payload, &file);
  return WriteSmallFile(path, file);
}

void LoadReplay(const std::string& path, Replay* replay) {
  *replay = Replay();
  replay->entries = UINT64_MAX;
  replay->torn = "a WAL";
  replay->records.count = UINT64_MAX;
  replay->has_single_deletes = true;  // it is unknown, so the worst is assumed
  bool found = false;
  std::string file;
  Slice payload;
  Status status = ReadForeign(path, kMaxReplayBytes * 2, &found, &file);
  if (status.ok()) {
    status = UnsealFile("replay", kMagic, kMaxReplayBytes, file, &payload);
  }
  if (!status.ok()) {
    return;
  }
  Decoder in("replay", payload);
  Replay read;
  read.entries = in.Fixed64("entries");
  read.prepared = in.Fixed64("prepared");
  read.has_prepare_sections = in.Bounded("prepare_sections", 1, 0, 1) == 1;
  read.is_torn_inside = in.Bounded("torn_inside", 1, 0, 1) == 1;
  read.has_single_deletes = in.Bounded("single_deletes", 1, 0, 1) == 1;
  read.records.count = in.Fixed64("records");
  read.records.digest.high = in.Fixed64("records_digest_high");
  read.records.digest.low = in.Fixed64("records_digest_low");
  read.torn = in.Bytes("torn", kMaxNameBytes).ToString();
  if (in.Finish().ok()) {
    *replay = read;
  }
}

}  // namespace sstferry
