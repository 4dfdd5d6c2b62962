#include "pipeline/snapshot/snapshot_wal_place.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "format/end_state.h"
#include "pipeline/snapshot/retained_snapshots.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_wals.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Describes which WALs that recovery would read are in a directory.
struct NeededWals {
  bool any = false;      // includes empty ones, which the last owner leaves
  bool holding = false;  // at least one is not empty
};

Status FindNeeded(const std::string& directory, uint64_t oldest,
                  NeededWals* needed) {
  std::vector<std::string> names;
  const Status status = ListDirectory(directory, &names);
  const auto wals = WalsIn(names);
  for (auto wal = wals.lower_bound(oldest); wal != wals.end(); ++wal) {
    needed->any = true;
    needed->holding |= FileIdOf(directory + "/" + wal->second).bytes > 0;
  }
  return status;
}

Status Uncertain(const WalPlace& place, const std::string& why) {
  return MakeStatus(EndState::kRefused,
                    "wal_dir of " + place.database_dir + " is " + place.named +
                        why +
                        "; name the directory of its WALs with --wal-dir");
}

}  // namespace

WalPlace WalPlaceOf(const std::string& database_dir, const std::string& asked,
                    const OptionsText& options, const ManifestState& state) {
  WalPlace place;
  place.database_dir = database_dir;
  place.asked = asked;
  place.named = options.DatabaseOption("wal_dir", "");
  place.oldest_needed = OldestNeededWal(
      state, options.DatabaseOption("allow_2pc", "") == "true");
  return place;
}

Status FindWalDirectory(const WalPlace& place, std::string* directory) {
  *directory =
      place.asked.empty() ? place.database_dir : RealPath(place.asked);
  std::error_code error;
  if (!place.asked.empty() || place.named.empty() ||
      std::filesystem::equivalent(place.named, place.database_dir, error) ||
      !FileIdOf(place.database_dir + "/LOCK").exists()) {
    return Status::OK();
  }
  if (place.named.front() != '/') {
    return Uncertain(place, ": a relative path cannot be resolved here");
  }
  NeededWals here;
  RETURN_IF_ERROR(FindNeeded(place.database_dir, place.oldest_needed, &here));
  if (!FileIdOf(place.named).exists()) {
    return here.holding
               ? Status::OK()
               : Uncertain(place, ", which does not exist, so the WALs cannot "
                                   "be read");
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
  // Even an empty WAL in wal_dir counts: it may have been truncated, and the
  // WALs in the database's directory may be older.
  if (here.holding && there.any) {
    return Uncertain(place, ", and both directories have WALs that it needs");
  }
  if (here.holding) {
    return Status::OK();
  }
  if (FileIdOf(real + "/CURRENT").exists()) {
    return Uncertain(place, ", which is another database's directory, so "
                            "its WALs may belong to either");
  }
  *directory = real;
  return Status::OK();
}

}  // namespace sstferry
