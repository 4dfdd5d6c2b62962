#include "pipeline/snapshot/snapshot_wals.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "format/end_state.h"
#include "format/file_name.h"
#include "format/printable.h"
#include "format/rocksdb/batch_sequences.h"
#include "format/rocksdb/write_batch_reader.h"
#include "pipeline/snapshot/snapshot_tables.h"
#include "pipeline/snapshot/wal_check.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr char kSuffix[] = ".log";
constexpr int kMaxListings = 5;
// The bytes after a WAL's last record count as settled if they were the same in
// kSettledWalLooks reads. An owner may write all the time. So for the newest
// WAL it is also enough that kMovingLooks reads have found any bytes there.
constexpr uint64_t kSettledWalLooks = 3;
constexpr uint64_t kMovingLooks = 8;
// Wrong bytes count as damage if they were the same in this number of reads.
constexpr uint64_t kDamagedLooks = 3;

// Counts the sequence numbers of one record. A record may commit transactions
// that were prepared in an earlier WAL. Their entries are not counted here,
// because that WAL may not be read completely yet.
class RecordCounter : public BatchHandler {
 public:
  // `prepared` has the prepared transactions of this WAL.
  RecordCounter(PreparedSections* prepared, uint64_t wal)
      : prepared_(prepared), counter_(prepared, wal) {}

  uint64_t sequences() const { return counter_.sequences(); }
  // Returns the names of the transactions that the record commits and that were
  // prepared in other WALs.
  const std::vector<std::string>& commits() const { return commits_; }

  Status OnEntry(BatchEntryKind, uint32_t, const rocksdb::Slice&,
                 const rocksdb::Slice&) override {
    counter_.AddEntry();
    return Status::OK();
  }

  Status OnMarker(BatchMarker marker, const rocksdb::Slice& name) override {
    const bool is_commit = marker == BatchMarker::kCommit ||
                           marker == BatchMarker::kCommitWithTimestamp;
    if (is_commit && !prepared_->by_name().contains(name.ToString())) {
      commits_.push_back(name.ToString());
    }
    return counter_.AddMarker(marker, name);
  }

 private:
  PreparedSections* const prepared_;
  SequenceCounter counter_;
  std::vector<std::string> commits_;
};

}  // namespace

struct PinnedWals::Wal {
  explicit Wal(uint64_t log_number)
      : number(log_number), follower(LogKind::kWal, log_number) {}

  void AddRecord(const rocksdb::Slice& record) {
    BatchHeader header;  // stays zero if the record is no batch
    RecordCounter counter(&prepared, number);
    ReadWriteBatch(record, &header, &counter).PermitUncheckedError();
    first_sequence = has_records ? first_sequence : header.sequence;
    next_sequence = header.sequence + counter.sequences();
    commits = counter.commits();
    has_records = true;
  }

  const uint64_t number;
  std::string path;
  Descriptor file;
  LogFollower follower;
  bool has_records = false;
  uint64_t first_sequence = 0;  // first sequence number of its records
  // Sequence number after the last record. Does not count entries of `commits`.
  uint64_t next_sequence = 0;
  // Names of the transactions that the last record commits and that were
  // prepared in other WALs.
  std::vector<std::string> commits;
  // Transactions that were prepared in this WAL, but neither committed nor
  // rolled back there.
  PreparedSections prepared;
  uint64_t bytes = 0;       // file size at the last read
  uint64_t same_looks = 0;  // number of reads with the same end and size
  uint64_t tail_looks = 0;  // number of reads with bytes after the end
  uint64_t damaged_end = 0;
  uint64_t damaged_looks = 0;  // number of reads with wrong bytes there
};

std::map<uint64_t, std::string> WalsIn(const std::vector<std::string>& names) {
  std::map<uint64_t, std::string> wals;
  for (const std::string& name : names) {
    const uint64_t number = strtoull(name.c_str(), nullptr, 10);
    if (name == NumberedName(number, kSuffix)) {
      wals[number] = name;
    }
  }
  return wals;
}

PinnedWals::PinnedWals(std::string directory, std::string pinned)
    : directory_(std::move(directory)), pinned_(std::move(pinned)) {}

PinnedWals::~PinnedWals() = default;

bool PinnedWals::IsNewest(const Wal& wal) const {
  return wal.number == wals_.rbegin()->first;
}

bool PinnedWals::IsRecyclable(const Wal& wal) const {
  return may_recycle_ || wal.follower.is_recyclable();
}

Status PinnedWals::Follow(uint64_t oldest) {
  RETURN_IF_ERROR(List(oldest));
  return AdvanceAll();
}

// Reads new records in all WALs. An owner that buffers writes may create a new
// WAL first, and then write the last records of the WAL before it. Once the new
// WAL has a record, the WALs before it are complete. So they are then read
// again.
Status PinnedWals::AdvanceAll() {
  bool begins = false;
  for (const auto& [number, wal] : wals_) {
    const bool had_records = wal->has_records;
    RETURN_IF_ERROR(Advance(wal.get()));
    begins = begins || (wal->has_records && !had_records);
  }
  for (const auto& [number, wal] : wals_) {
    if (begins && !IsNewest(*wal)) RETURN_IF_ERROR(Advance(wal.get()));
  }
  return Status::OK();
}

// Lists the WALs. A listing may miss a name that was created meanwhile, and yet
// contain a newer name. But it contains all names that existed when it began.
// So if the newest name was already in the previous listing, no name before it
// is missing.
//
// If an open WAL is not in the listing, its owner has removed it, or renamed it
// to reuse its file. Before RocksDB does so, it records in the MANIFEST that it
// does not need the WAL. So if the MANIFEST did not change during this round,
// the round does not need the WAL, either.
Status PinnedWals::List(uint64_t oldest) {
  std::map<uint64_t, std::string> listed;
  for (int listings = 0;; listings++) {
    std::vector<std::string> names;
    RETURN_IF_ERROR(ListDirectory(directory_, &names));
    listed = WalsIn(names);
    const uint64_t newest = listed.empty() ? 0 : listed.rbegin()->first;
    if (newest == newest_listed_) {
      break;
    }
    newest_listed_ = newest;
    if (listings == kMaxListings) {
      return Status::TryAgain("new WALs appeared during each listing");
    }
  }
  if (limit_) {
    listed.erase(listed.upper_bound(limit_->number), listed.end());
  }
  wals_.erase(wals_.begin(), wals_.lower_bound(oldest));
  for (auto held = wals_.begin(); held != wals_.end();) {
    bool is_there = listed.contains(held->first);
    if (!is_there) {
      FileId named;
      RETURN_IF_ERROR(FileIdOf(held->second->path, &named));
      is_there = named.exists();
    }
    held = is_there ? std::next(held) : wals_.erase(held);
  }
  for (auto named = listed.lower_bound(oldest); named != listed.end();
       ++named) {
    RETURN_IF_ERROR(Hold(named->first, named->second));
  }
  return Status::OK();
}

Status PinnedWals::Hold(uint64_t number, const std::string& name) {
  const std::string path = directory_ + "/" + name;
  FileId named;
  FileId opened;
  RETURN_IF_ERROR(FileIdOf(path, &named));
  const auto known = wals_.find(number);
  if (known != wals_.end()) {
    RETURN_IF_ERROR(FileIdOf(known->second->file.get(), path, &opened));
    if (!named.exists() || opened.IsSameFile(named)) {
      return Status::OK();
    }
    wals_.erase(known);
  }
  auto wal = std::make_unique<Wal>(number);
  wal->path = path;
  const std::string link = pinned_ + "/" + name;
  unlink(link.c_str());
  bool found = false;
  // If the WAL directory is on another file system, no link can be made. The
  // open file alone then keeps the WAL alive.
  LinkFile(path, link, &found).PermitUncheckedError();
  RETURN_IF_ERROR(OpenForeign(path, &wal->file));
  opened = FileId();
  if (wal->file.is_open()) {
    RETURN_IF_ERROR(FileIdOf(wal->file.get(), path, &opened));
  }
  if (!opened.IsSameFile(named)) {
    return Status::TryAgain(path + " disappeared");
  }
  wals_[number] = std::move(wal);
  return Status::OK();
}

Status PinnedWals::Advance(Wal* wal) {
  const uint64_t before = wal->follower.end();
  FileId opened;
  RETURN_IF_ERROR(FileIdOf(wal->file.get(), wal->path, &opened));
  uint64_t bytes = opened.bytes;
  if (limit_ && limit_->number == wal->number) {
    bytes = std::min(bytes, limit_->bytes);
  }
  const Status status = wal->follower.Follow(
      DescriptorSource(wal->file.get(), wal->path, bytes),
      [wal](const rocksdb::Slice& record, uint64_t) {
        wal->AddRecord(record);
        return Status::OK();
      });
  if (status.IsTryAgain()) {
    return status;
  }
  const uint64_t end = wal->follower.end();
  wal->same_looks =
      end == before && bytes == wal->bytes ? wal->same_looks + 1 : 0;
  wal->bytes = std::max(bytes, end);
  wal->tail_looks += wal->bytes > end ? 1 : 0;
  return WithContext(status, EndState::kSourceError, wal->path);
}

Status PinnedWals::CheckEnds() {
  for (const auto& [number, wal] : wals_) {
    RETURN_IF_ERROR(CheckEnd(wal.get()));
  }
  if (!may_buffer_ || wals_.size() < 2 || wals_.rbegin()->second->has_records) {
    return Status::OK();
  }
  const Wal& before = *std::next(wals_.rbegin())->second;
  return before.same_looks >= kSettledWalLooks
             ? Status::OK()
             : Status::TryAgain(before.path +
                                " may lack its last records: the owner may "
                                "still be writing them, because the next WAL "
                                "has no record yet");
}

Status PinnedWals::CheckEnd(Wal* wal) {
  if (wal->bytes == wal->follower.end()) {
    return Status::OK();
  }
  const bool is_settled =
      IsRecyclable(*wal) || wal->same_looks >= kSettledWalLooks ||
      (IsNewest(*wal) && wal->tail_looks >= kMovingLooks);
  if (!is_settled) {
    return Status::TryAgain(wal->path + " ends inside a record");
  }
  const Status status = CheckWal(wal->file.get(), wal->number, wal->path);
  if (status.ok() || EndStateOf(status) != EndState::kCorrupt) {
    return status;
  }
  if (wal->damaged_end != wal->follower.end()) {
    wal->damaged_end = wal->follower.end();
    wal->damaged_looks = 0;
  }
  return ++wal->damaged_looks < kDamagedLooks
             ? Status::TryAgain(MessageOf(status))
             : status;
}

Status PinnedWals::CheckRecovery(const ManifestState& state, uint64_t oldest,
                                 const PointInTime& rules) const {
  // The last WAL with records that recovery reads.
  const Wal* last = nullptr;
  // The WAL at which recovery stops. Null: recovery continues.
  const Wal* stop = nullptr;
  // The WAL that the message names.
  const Wal* where = nullptr;
  std::string why;
  for (auto at = wals_.lower_bound(oldest); at != wals_.end(); ++at) {
    const Wal& wal = *at->second;
    if (wal.has_records && stop != nullptr) {
      if (last == nullptr || wal.first_sequence != NextSequence(*last)) {
        if (HidesStop(*stop) && (rules.replays || last == nullptr)) {
          where = stop;
          why = "would not read " + wal.path;
        }
        continue;
      }
      stop = nullptr;
    }
    last = wal.has_records ? &wal : last;
    const LogStop end = wal.follower.stop();
    const bool stops =
        end == LogStop::kOther ||
        (end == LogStop::kOldRecord && rules.stops_at_old_records);
    stop = stops ? &wal : stop;
  }
  for (const auto& [id, family] : state.families) {
    if (stop != nullptr && HidesStop(*stop) &&
        family.log_number > stop->number && !family.files.empty()) {
      where = stop;
      why = "would not open the database, because column family '" +
            Printable(family.name) + "' was flushed after this WAL";
    }
  }
  return where == nullptr
             ? Status::OK()
             : MakeStatus(
                   EndState::kSourceError,
                   where->path + ": its application's recovery "
                   "(kPointInTimeRecovery) stops at byte " +
                       std::to_string(where->follower.end()) +
                       ", where old bytes of a recycled file follow, and " +
                       why + ": records may be missing; let the application "
                       "open it once with kTolerateCorruptedTailRecords");
}

// Returns true if recovery of the source itself might stop after the records of
// `wal`, while recovery of the copied WALs might continue. This is possible
// because the bytes at which recovery stops are not copied.
bool PinnedWals::HidesStop(const Wal& wal) const {
  return wal.follower.stop() == LogStop::kOldRecord ||
         (wal.follower.stop() == LogStop::kOther &&
          BytesToCopy(wal) == wal.follower.end());
}

// Returns the sequence number after the last record of `wal`, as recovery
// counts it. If the record commits transactions that were prepared in older
// WALs, includes their entries. If such an older WAL was removed, its entries
// were flushed, and recovery does not apply them again.
uint64_t PinnedWals::NextSequence(const Wal& wal) const {
  uint64_t next = wal.next_sequence;
  for (const std::string& name : wal.commits) {
    for (auto older = std::make_reverse_iterator(wals_.find(wal.number));
         older != wals_.rend(); ++older) {
      const auto& sections = older->second->prepared.by_name();
      if (const auto found = sections.find(name); found != sections.end()) {
        next += found->second.entries;
        break;
      }
    }
  }
  return next;
}

// Returns true if the first record after `wal` continues the sequence numbers
// up to the end of `wal`, or if the later WALs have no records.
bool PinnedWals::IsContinued(const Wal& wal) const {
  // Last WAL with records that is not newer than `wal`.
  const Wal* last = nullptr;
  for (const auto& [number, other] : wals_) {
    if (!other->has_records) {
      continue;
    }
    if (number > wal.number) {
      return last == nullptr || other->first_sequence == NextSequence(*last);
    }
    last = other.get();
  }
  return true;
}

// Returns true if the bytes after the last record of `wal` change what recovery
// does, for example a record that a crashed owner has left incomplete. With
// kPointInTimeRecovery, recovery stops at such a record. RocksDB 9.1 also stops
// at old records in a recycled file. In both cases, it continues only if the
// next WAL continues the sequence numbers.
bool PinnedWals::NeedsRest(const Wal& wal) const {
  const bool is_torn = wal.follower.stopped_inside();
  const bool is_recycled = wal.follower.is_recyclable() ||
                           (may_recycle_ && !wal.has_records && !is_torn);
  if (IsNewest(wal)) {
    const bool is_written_on = IsRecyclable(wal) || is_standby_ ||
                               wal.same_looks < kSettledWalLooks;
    return is_torn && !is_written_on;
  }
  if (is_recycled) {
    return !passes_damage_ && (is_torn || !IsContinued(wal));
  }
  return true;  // even a few zeros are a truncated header
}

// Returns true if recovery stops at an older WAL, and `wal` has only old
// records of a recycled file. RocksDB 9.1 then assumes that it has stopped at
// the last WAL of this kind. So it can open a database in which a family was
// flushed after the WAL where it has really stopped. Without the old records in
// `wal`, it would report "SST file is ahead of WALs".
bool PinnedWals::MovesTheStop(const Wal& wal) const {
  if (!may_recycle_ || passes_damage_ || wal.has_records ||
      wal.follower.stopped_inside() || (is_standby_ && IsNewest(wal))) {
    return false;
  }
  return std::any_of(
      wals_.begin(), wals_.find(wal.number), [this](const auto& older) {
        return older.second->bytes > older.second->follower.end() &&
               NeedsRest(*older.second);
      });
}

// Returns the number of bytes to copy. Old records of a recycled file are
// copied only if recovery needs them, because they can do harm:
// - With kSkipAnyCorruptedRecords, recovery skips all of them, but RocksDB 7.8
//   reads the first of them in an endless loop.
// - If no later WAL has a record, RocksDB 9.1 refuses to open a database in
//   which one family was flushed. If a process has the database open, no record
//   is missing, so the copy must open. For closed databases, see
//   CheckRecovery().
uint64_t PinnedWals::BytesToCopy(const Wal& wal) const {
  return NeedsRest(wal) || MovesTheStop(wal) ? wal.bytes : wal.follower.end();
}

uint64_t PinnedWals::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [number, wal] : wals_) {
    bytes += BytesToCopy(*wal);
  }
  return bytes;
}

Status PinnedWals::CopyInto(const std::string& directory,
                          std::vector<CopiedWal>* copied) const {
  copied->clear();
  for (const auto& [number, wal] : wals_) {
    const std::string name = NumberedName(number, kSuffix);
    const uint64_t bytes = BytesToCopy(*wal);
    uint64_t written = 0;
    RETURN_IF_ERROR(CopyPrefix(wal->file.get(), wal->path,
                               directory + "/" + name, bytes, &written));
    if (written != bytes) {
      return Status::TryAgain(wal->path + " was truncated during the copy");
    }
    if (IsNewest(*wal) && bytes > wal->follower.end()) {
      RETURN_IF_ERROR(CheckUnwritten(*wal));
    }
    copied->push_back({number, name, bytes});
  }
  return CheckNames();
}

// Checks that the owner has written no record after the end of `wal` that
// Follow() found. The copy includes the bytes after this end, so they must not
// be new records.
Status PinnedWals::CheckUnwritten(const Wal& wal) const {
  FileId opened;
  RETURN_IF_ERROR(FileIdOf(wal.file.get(), wal.path, &opened));
  LogFollower again(LogKind::kWal, wal.number);
  RETURN_IF_ERROR(again.Follow(
      DescriptorSource(wal.file.get(), wal.path, opened.bytes),
      [](const rocksdb::Slice&, uint64_t) { return Status::OK(); }));
  return again.end() == wal.follower.end()
             ? Status::OK()
             : Status::TryAgain(wal.path + " was written to during the copy");
}

// Checks that recyclable WALs still have their names. To recycle a WAL, the
// owner renames its file and overwrites it, so the open file could change
// during the copy. RocksDB never uses an old name again.
Status PinnedWals::CheckNames() const {
  for (const auto& [number, wal] : wals_) {
    bool is_named = true;
    if (IsRecyclable(*wal)) {
      RETURN_IF_ERROR(IsNamed(wal->file.get(), wal->path, &is_named));
    }
    if (!is_named) {
      return Status::TryAgain(wal->path + " may have been recycled");
    }
  }
  return Status::OK();
}

}  // namespace sstferry
