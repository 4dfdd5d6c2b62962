#include "pipeline/snapshot/snapshot_wal_place.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "format/end_state.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_state.h"
#include "format/rocksdb/write_batch_reader.h"
#include "pipeline/base/database_open.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/retained_snapshots.h"
#include "pipeline/snapshot/snapshot_wals.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr char kAsk[] = "; name the directory of its WALs with --wal-dir";

// Facts about a database that decide in which directory its WALs are.
struct WalPlace {
  std::string database_dir;
  std::string named;           // wal_dir in OPTIONS
  bool is_unknown = false;     // there are OPTIONS files, but no complete one
  uint64_t oldest_needed = 0;  // number of the oldest WAL that recovery needs
  // Number of the oldest WAL that RocksDB has not removed, as recorded in the
  // MANIFEST. There may be no WAL with this number. 0: the MANIFEST has no such
  // number.
  uint64_t oldest_kept = 0;
  // When the database was opened last, RocksDB made a WAL. Its number is not
  // higher than this.
  uint64_t newest_of_open = 0;
  uint64_t last_sequence = 0;  // in the MANIFEST
};

// Facts about the WALs in a directory that recovery would read.
struct NeededWals {
  // There is at least one WAL. It may be empty, because a process that opens a
  // database makes an empty WAL.
  bool any = false;
  bool holding = false;  // at least one of them is not empty
};

// Facts about the oldest WALs in a directory.
struct FirstWals {
  // Lowest WAL number that is not below `oldest_kept`.
  uint64_t oldest = 0;
  // Number of the oldest WAL that recovery needs and that has a record.
  uint64_t with_record = 0;
  // Sequence number of the first record in this WAL.
  uint64_t sequence = 0;
};

Status ListWals(const std::string& directory,
                std::map<uint64_t, std::string>* wals) {
  std::vector<std::string> names;
  const Status status = ListDirectory(directory, &names);
  *wals = WalsIn(names);
  return status;
}

Status FindNeeded(const std::string& directory, uint64_t oldest,
                  NeededWals* needed) {
  std::map<uint64_t, std::string> wals;
  RETURN_IF_ERROR(ListWals(directory, &wals));
  for (auto wal = wals.lower_bound(oldest); wal != wals.end(); ++wal) {
    FileId found;
    RETURN_IF_ERROR(FileIdOf(directory + "/" + wal->second, &found));
    needed->any = true;
    needed->holding |= found.bytes > 0;
  }
  return Status::OK();
}

// Reads the sequence number of the first record in a WAL. If the WAL has no
// record or was removed, sets *found to false. If it was truncated meanwhile,
// returns TryAgain.
Status ReadFirstRecord(const std::string& path, uint64_t number, bool* found,
                       uint64_t* sequence) {
  *found = false;
  Descriptor file;
  RETURN_IF_ERROR(OpenForeign(path, &file));
  if (!file.is_open()) {
    return Status::OK();
  }
  FileId opened;
  RETURN_IF_ERROR(FileIdOf(file.get(), path, &opened));
  LogFollower follower(LogKind::kWal, number);
  const Status status = follower.Follow(
      DescriptorSource(file.get(), path, opened.bytes),
      [&](const rocksdb::Slice& record, uint64_t) -> Status {
        BatchHeader header;
        RETURN_IF_ERROR(ReadWriteBatch(record, &header, nullptr));
        *found = true;
        *sequence = header.sequence;
        return Status::Aborted("one record is enough");
      });
  if (*found || status.ok()) {
    return Status::OK();
  }
  return status.IsTryAgain()
             ? status
             : WithContext(status, EndState::kSourceError, path);
}

Status FindFirst(const WalPlace& place, const std::string& directory,
                 FirstWals* first) {
  std::map<uint64_t, std::string> wals;
  RETURN_IF_ERROR(ListWals(directory, &wals));
  const auto oldest = wals.lower_bound(place.oldest_kept);
  first->oldest = oldest == wals.end() ? 0 : oldest->first;
  for (auto wal = wals.lower_bound(place.oldest_needed); wal != wals.end();
       ++wal) {
    bool found = false;
    RETURN_IF_ERROR(ReadFirstRecord(directory + "/" + wal->second, wal->first,
                                    &found, &first->sequence));
    if (found) {
      first->with_record = wal->first;
      break;
    }
  }
  return Status::OK();
}

Status Uncertain(const WalPlace& place, const std::string& why) {
  return MakeStatus(EndState::kRefused,
                    "wal_dir of " + place.database_dir + " is " + place.named +
                        why + kAsk);
}

// Checks that the WALs in `directory` continue the MANIFEST and so belong to
// the database.
Status CheckOwn(const WalPlace& place, const std::string& directory) {
  if (IsDatabaseOpen(place.database_dir)) {
    return Status::OK();
  }
  FirstWals first;
  RETURN_IF_ERROR(FindFirst(place, directory, &first));
  const bool is_kept =
      place.oldest_kept != 0 && first.oldest == place.oldest_kept;
  const bool is_of_open =
      place.oldest_kept == 0 || first.oldest <= place.newest_of_open;
  if (first.with_record == 0 || is_kept ||
      (is_of_open && first.sequence <= place.last_sequence + 1)) {
    return Status::OK();
  }
  return Uncertain(
      place,
      ", but no process is known to have the database open, and the WALs there "
      "do not continue it; they may belong to the original of which this is a "
      "copy: expected " +
          (is_of_open
               ? "a first sequence number of at most " +
                     std::to_string(place.last_sequence + 1) + ", found " +
                     std::to_string(first.sequence) + " in WAL " +
                     std::to_string(first.with_record)
               : "WAL " + std::to_string(place.oldest_kept) + ", found WAL " +
                     std::to_string(first.oldest) + " as the oldest"));
}

Status ChooseDirectory(const WalPlace& place, std::string* directory) {
  *directory = place.database_dir;
  std::error_code error;
  const bool is_here =
      !place.is_unknown &&
      (place.named.empty() ||
       std::filesystem::equivalent(place.named, place.database_dir, error));
  // A standby has its WALs in its own directory. A LOCK there does not prove
  // that RocksDB has opened the standby: RocksDB also makes a LOCK if it then
  // refuses to open it.
  if (is_here || IsStandby(place.database_dir)) {
    return Status::OK();
  }
  FileId lock;
  RETURN_IF_ERROR(FileIdOf(place.database_dir + "/LOCK", &lock));
  if (!lock.exists()) {
    return Status::OK();
  }
  NeededWals here;
  RETURN_IF_ERROR(FindNeeded(place.database_dir, place.oldest_needed, &here));
  if (place.is_unknown) {
    return here.any ? Status::OK()
                    : MakeStatus(EndState::kRefused,
                                 "no OPTIONS file of " + place.database_dir +
                                     " is complete, and it has none of the "
                                     "WALs that it needs" + kAsk);
  }
  if (place.named.front() != '/') {
    return Uncertain(place, ": a relative path cannot be resolved here");
  }
  FileId named;
  const Status looked = FileIdOf(place.named, &named);
  if (!looked.ok()) {
    return Uncertain(place, ": " + MessageOf(looked));
  }
  if (!named.exists()) {
    return here.holding
               ? Status::OK()
               : Uncertain(place, ", which does not exist, so the WALs cannot "
                                   "be read: mount its volume");
  }
  const std::string real = RealPath(place.named);
  uint32_t owner = 0;
  uint32_t wal_owner = 0;
  RETURN_IF_ERROR(OwnerOf(place.database_dir, &owner));
  RETURN_IF_ERROR(OwnerOf(real, &wal_owner));
  if (owner != wal_owner) {
    return Uncertain(place, ", a directory of uid " +
                                std::to_string(wal_owner) +
                                ", expected one of uid " +
                                std::to_string(owner) +
                                ", which owns the database");
  }
  NeededWals there;
  RETURN_IF_ERROR(FindNeeded(real, place.oldest_needed, &there));
  // An empty WAL in wal_dir also counts. It may have been truncated, and then
  // the WALs in the database's directory may be older.
  if (here.holding && there.any) {
    return Uncertain(place, ", and both directories have WALs that it needs");
  }
  if (here.holding) {
    return Status::OK();
  }
  FileId current;
  RETURN_IF_ERROR(FileIdOf(real + "/CURRENT", &current));
  if (current.exists()) {
    return Uncertain(place, ", which is another database's directory, so "
                            "its WALs may belong to either");
  }
  *directory = real;
  return CheckOwn(place, real);
}

// Checks that `directory` has a WAL, in two cases: if a process has the
// database open, and if `directory` is not the database's own directory. In the
// second case, the volume of `directory` may not be mounted.
//
// RocksDB makes a WAL before it accepts a write, and never removes the newest
// WAL. The MANIFEST cannot show that the newest WAL is not needed, because
// RocksDB does not record there what it writes to the WAL.
Status CheckHasWal(const std::string& database_dir,
                   const std::string& directory) {
  std::map<uint64_t, std::string> wals;
  RETURN_IF_ERROR(ListWals(directory, &wals));
  if (!wals.empty()) {
    return Status::OK();
  }
  if (IsDatabaseOpen(database_dir)) {
    return Status::Incomplete(EndStateName(EndState::kSourceError),
                              "a process has " + database_dir +
                                  " open, but there is no WAL in " + directory +
                                  kAsk);
  }
  FileId wal_place;
  FileId database;
  FileId lock;
  RETURN_IF_ERROR(FileIdOf(directory, &wal_place));
  RETURN_IF_ERROR(FileIdOf(database_dir, &database));
  RETURN_IF_ERROR(FileIdOf(database_dir + "/LOCK", &lock));
  const bool is_elsewhere = !wal_place.IsSameFile(database);
  return is_elsewhere && lock.exists()
             ? MakeStatus(EndState::kRefused,
                          "there is no WAL in " + directory + ", where RocksDB "
                          "always keeps the newest WAL of " + database_dir +
                          ": mount the volume of this directory; if the WALs "
                          "are lost, --wal-dir " + database_dir +
                          " reads the database without them")
             : Status::OK();
}

WalPlace WalPlaceOf(const std::string& database_dir, const SeenOptions& options,
                    const ManifestTail& manifest) {
  const OptionsText& text = options.database();
  const ManifestState& state = manifest.state();
  WalPlace place;
  place.database_dir = database_dir;
  place.named = text.DatabaseOption("wal_dir", "");
  place.is_unknown = !options.name().empty() && !text.HasDatabase();
  place.oldest_needed = OldestNeededWal(
      state, text.DatabaseOption("allow_2pc", "") == "true");
  place.oldest_kept = state.min_log_number_to_keep;
  // When RocksDB opens a database, it makes a WAL just before or after a new
  // MANIFEST. With the options below, it may continue an older MANIFEST.
  const bool makes_manifest =
      text.DatabaseOption("reuse_manifest_on_open", "") != "true" &&
      text.DatabaseOption("optimize_manifest_for_recovery", "") != "true";
  place.newest_of_open = makes_manifest ? manifest.number() + 1 : UINT64_MAX;
  place.last_sequence = state.last_sequence;
  return place;
}

}  // namespace

Status FindWalDirectory(const std::string& database_dir,
                        const std::string& asked, const SeenOptions& options,
                        ManifestTail* manifest, std::string* directory) {
  *directory = RealPath(asked);
  Status found =
      asked.empty()
          ? ChooseDirectory(WalPlaceOf(database_dir, options, *manifest),
                            directory)
          : Status::OK();
  if (found.ok()) found = CheckHasWal(database_dir, *directory);
  if (found.ok()) {
    return found;
  }
  bool changed = false;
  RETURN_IF_ERROR(manifest->Follow(&changed));
  return changed ? Status::TryAgain("the MANIFEST grew") : found;
}

}  // namespace sstferry
