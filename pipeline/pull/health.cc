#include "pipeline/pull/health.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <thread>

#include "format/end_state.h"
#include "pipeline/base/file_lock.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/random_id.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/exchange_record.h"
#include "pipeline/disk/workspace.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::steady_clock;

// Time to wait, after a fault was recorded without the lock, before looking for
// an exchange. It is longer than the time between an exchange's last check of
// the record and its rename.
constexpr std::chrono::milliseconds kExchange{100};

// Widens the selection of *fault so that it includes the selection of `other`.
void Join(const HealthFile& other, HealthFile* fault) {
  if (other.families != fault->families) {
    fault->families.clear();
  }
  if (!(other.interval == fault->interval)) {
    fault->interval = KeyInterval();
  }
}

// Locks the record in `dir` against changes by other processes until the
// descriptor is closed. Waits up to ten seconds, then returns without the lock:
// a change without the lock is better than a fault that is not recorded.
Descriptor LockRecord(const std::string& dir) {
  Descriptor lock = OpenLinked(dir, O_RDONLY | O_DIRECTORY);
  const auto until = steady_clock::now() + std::chrono::seconds(10);
  while (lock.is_open() &&
         EndStateOf(LockFile(lock.get(), dir)) == EndState::kBusy &&
         steady_clock::now() < until) {
  }
  return lock;
}

bool IsBound(const std::optional<std::string>& asked,
             const std::optional<std::string>& looked_at) {
  return !asked.has_value() || asked == looked_at;
}

// Returns the workspace of the pulls whose TARGET_DIR is `dir`. Resolves a
// symbolic link, because a verify accepts one as TARGET_DIR.
std::string WorkspaceOf(const std::string& dir) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(dir, error).string();
  return Workspace::DirOf(error ? dir : real);
}

// Records *fault in the directory that has the name `dir` now. If writing
// fails, removes last_transfer.json, but only if the directory has the inode
// number `identity`.
Status WriteFault(rocksdb::FileSystem* file_system, const std::string& dir,
                  const std::string& identity, HealthFile* fault) {
  const Descriptor lock = LockRecord(dir);
  HealthFile known;
  RETURN_IF_ERROR(ReadKnownFault(dir, &known));
  if (known.fault != ReplicaFault::kNone && known.id != TransferId()) {
    if (known.fault >= fault->fault && known.what == fault->what &&
        known.families == fault->families &&
        known.interval == fault->interval) {
      fault->id = known.id;  // the same finding keeps its id
    }
    Join(known, fault);
    if (known.fault > fault->fault) {
      fault->fault = known.fault;
      fault->what = known.what;
    }
  }
  if (fault->id == TransferId()) {
    fault->id = RandomId();
  }
  std::string text;
  EncodeHealthFile(*fault, &text);
  const Status status =
      WriteDurably(file_system, dir + "/" + kHealthFileName, text);
  std::string identity_now;
  if (status.ok() || !FindInode(dir, &identity_now).ok() ||
      identity_now != identity) {
    return status;
  }
  // Remove last_transfer.json instead, which is possible even on a full disk.
  Status removed = RemoveTree(file_system, dir + "/" + kLastTransferName);
  if (removed.ok()) {
    removed = SyncDirectory(file_system, dir);
  }
  return WithContext(status, EndStateOf(status),
                     "could not record that " + dir + " has a fault (" +
                         fault->what + ")" +
                         (removed.ok() ? ""
                                       : ", nor mark this by removing " +
                                             std::string(kLastTransferName)));
}

}  // namespace

HealthFile MakeFault(ReplicaFault fault, const std::string& what,
                     const Selection& looked_at) {
  HealthFile made;
  made.fault = fault;
  made.id = RandomId();
  made.found_seconds = static_cast<uint64_t>(std::time(nullptr));
  made.what = what;
  made.families = looked_at.families;
  made.interval = looked_at.interval;
  return made;
}

// If the workspace does not exist or cannot be locked, an exchange may run at
// the same time and miss the record. So records the fault again if a pull has
// made a workspace or exchanged `dir` meanwhile.
Status RecordFault(rocksdb::FileSystem* file_system, const std::string& dir,
                   HealthFile* fault, const std::function<bool()>& holds) {
  const std::string workspace = WorkspaceOf(dir);
  Descriptor lock;
  Status written;
  bool is_certain = false;
  while (!is_certain) {
    std::string exchanges;
    Status asked = FindInode(workspace, &exchanges);
    // If the lock fails, record the fault nevertheless.
    const Status locked = LockDirectory(workspace, &lock);
    std::string identity;
    if (asked.ok()) {
      asked = FindInode(dir, &identity);
    }
    if (holds && !holds()) {
      *fault = HealthFile();
      return Status::OK();
    }
    written = WriteFault(file_system, dir, identity, fault);
    is_certain = lock.is_open();
    if (!is_certain) {
      if (!locked.ok()) {
        std::this_thread::sleep_for(kExchange);
      }
      std::string exchanges_now;
      std::string identity_now;
      if (asked.ok()) {
        asked = FindInode(workspace, &exchanges_now);
      }
      if (asked.ok()) {
        asked = FindInode(dir, &identity_now);
      }
      if (!asked.ok()) {
        return written.ok() ? asked : written;
      }
      is_certain = exchanges_now == exchanges && identity_now == identity;
    }
  }
  return written;
}

Status ClearFault(rocksdb::FileSystem* file_system, const std::string& dir,
                  const HealthFile& mended) {
  if (mended.fault == ReplicaFault::kNone) {
    return Status::OK();
  }
  Descriptor exchanges;
  RETURN_IF_ERROR(LockDirectory(WorkspaceOf(dir), &exchanges));
  const Descriptor lock = LockRecord(dir);
  HealthFile known;
  RETURN_IF_ERROR(ReadKnownFault(dir, &known));
  if (known.id != mended.id) {
    return Status::OK();
  }
  RETURN_IF_ERROR(RemoveTree(file_system, dir + "/" + kHealthFileName));
  return SyncDirectory(file_system, dir);
}

bool Includes(const Selection& asked, const HealthFile& fault) {
  const bool families =
      asked.families.empty() ||
      (!fault.families.empty() &&
       std::all_of(fault.families.begin(), fault.families.end(),
                   [&asked](const std::string& name) {
                     return std::find(asked.families.begin(),
                                      asked.families.end(),
                                      name) != asked.families.end();
                   }));
  return families && IsBound(asked.interval.begin, fault.interval.begin) &&
         IsBound(asked.interval.end, fault.interval.end);
}

std::string SwapCommand(const PullOptions& options) {
  return "sstferry swap " + ShellWord(options.source.ToString()) + " " +
         ShellWord(options.target_dir) +
         AccessWords(options, options.source) +
         SelectionWords(TextOf(options.selection));
}

std::string ReplaceCommand(const PullOptions& options) {
  return SwapCommand(options) + " --verify";
}

Status FaultStatus(const PullOptions& options, const HealthFile& fault) {
  return MakeStatus(
      EndState::kCorrupt,
      "target " + options.target_dir + ": " + FaultSentence(fault) +
          (fault.fault == ReplicaFault::kDamaged
               ? ", which a refresh in place does not repair"
               : ", and this refresh compares only a part of the keys that may "
                 "differ"),
      fault.fault == ReplicaFault::kDamaged
          ? ReplaceCommand(options)
          : std::string("sstferry ") + PullModeName(options.mode) + " " +
                ShellWord(options.source.ToString()) + " " +
                ShellWord(options.target_dir) +
                AccessWords(options, options.source));
}

}  // namespace sstferry
