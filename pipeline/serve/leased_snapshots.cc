#include "pipeline/serve/leased_snapshots.h"

#include <algorithm>
#include <memory>

#include "pipeline/snapshot/retained_snapshots.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr size_t kShownIdBytes = 4;

bool IsOwnerOf(const Lease& lease, const PeerIdentity* peer) {
  const PeerIdentity owner = {lease.owner_subject, lease.owner_names};
  return owner == (peer != nullptr ? *peer : PeerIdentity());
}

}  // namespace

void CutId(TransferId* id) {
  std::fill(id->begin() + kShownIdBytes, id->end(), 0);
}

LeaseRules LeasedSnapshots::rules() const {
  LeaseRules rules;
  rules.wall_seconds = options_->leases.wall_seconds;
  rules.max_ttl = [this](const Lease& lease) {
    return IsOurs(lease)
               ? static_cast<uint64_t>(options_->snapshot_ttl.count())
               : lease.ttl_seconds;
  };
  return rules;
}

bool LeasedSnapshots::IsOurs(const Lease& lease) const {
  const std::shared_ptr<const ServedSet> set = databases_->Now(kMaxAge);
  const auto found = set->directories.find(lease.database);
  return found != set->directories.end() && found->second == lease.directory;
}

bool LeasedSnapshots::Find(const std::string& database, const TransferId& id,
                           std::string* path, Lease* lease) const {
  for (const std::string& parent : parents()) {
    std::vector<std::string> paths;
    // Ignores a directory that cannot be read. It contains no usable snapshot.
    ListPrivateDirs(parent, &paths).PermitUncheckedError();
    for (const std::string& one : paths) {
      Lease read;
      if (ReadLease(one, &read) == LeaseState::kGood &&
          read.transfer_id == id && read.database == database &&
          IsOurs(read) && rules().Left(read) != 0) {
        *path = one;
        *lease = read;
        return true;
      }
    }
  }
  return false;
}

void LeasedSnapshots::List(const std::set<std::string>& names,
                           const std::set<TransferId>& listed,
                           const PeerIdentity* peer,
                           std::vector<RetainedSnapshot>* all) const {
  for (const std::string& parent : parents()) {
    LeasedDirs found;
    // Ignores a directory that cannot be read. It contains no usable snapshot.
    ListLeasedDirs(
        parent,
        [&](const Lease& lease) {
          return IsOurs(lease) && names.count(lease.database) > 0 &&
                 listed.count(lease.transfer_id) == 0;
        },
        &found)
        .PermitUncheckedError();
    for (const LeasedDir& dir : found.dirs) {
      RetainedSnapshot retained = DescribeLeased(dir, rules());
      if (peer == nullptr || !IsOwnerOf(dir.lease, peer)) {
        CutId(&retained.transfer_id);
      }
      all->push_back(std::move(retained));
    }
  }
}

bool LeasedSnapshots::Drop(const std::string& database, const TransferId& id,
                           const PeerIdentity* peer, std::string* note,
                           std::string* removed) const {
  for (const std::string& parent : parents()) {
    LeasedDirs found;
    ListLeasedDirs(
        parent,
        [&](const Lease& lease) {
          return lease.transfer_id == id && lease.database == database &&
                 IsOurs(lease);
        },
        &found)
        .PermitUncheckedError();
    for (const LeasedDir& dir : found.dirs) {
      *note = " was not released: ";
      if (!IsOwnerOf(dir.lease, peer)) {
        *note += "it belongs to another target";
        return true;
      }
      std::unique_ptr<PrivateDir> adopted;
      const Status status = PrivateDir::Adopt(dir.path, &adopted);
      if (!status.ok() || adopted == nullptr) {
        *note += "another process uses it";
        return true;
      }
      adopted->Keep(false);
      *note = " was released";
      *removed = dir.path;
      return true;
    }
  }
  return false;
}

std::vector<std::string> LeasedSnapshots::RemoveAbove(size_t most) const {
  LeasedDirs found;
  for (const std::string& parent : parents()) {
    // Ignores a directory that cannot be read. It contains no usable snapshot.
    ListLeasedDirs(
        parent, [this](const Lease& lease) { return IsOurs(lease); }, &found)
        .PermitUncheckedError();
  }
  std::erase_if(found.dirs, [](const LeasedDir& dir) { return dir.open; });
  std::sort(found.dirs.begin(), found.dirs.end(),
            [](const LeasedDir& a, const LeasedDir& b) {
              return a.lease.renewed_seconds < b.lease.renewed_seconds;
            });
  std::vector<std::string> removed;
  for (size_t i = 0; i + most < found.dirs.size(); ++i) {
    std::unique_ptr<PrivateDir> dir;
    const Status status = PrivateDir::Adopt(found.dirs[i].path, &dir);
    if (status.ok() && dir != nullptr) {
      dir->Keep(false);
      removed.push_back(dir->path());
    }
  }
  return removed;
}

}  // namespace sstferry
