#include "pipeline/follow/followed_source.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "format/clone_file.h"
#include "format/end_state.h"
#include "format/printable.h"
#include "format/rocksdb/edit_judge.h"
#include "format/rocksdb/wal_end.h"
#include "pipeline/base/database_open.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/options/options_text.h"
#include "pipeline/snapshot/snapshot_wal_place.h"
#include "pipeline/snapshot/snapshot_wals.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr uint64_t kPieceBytes = 1u << 20;
// A round reads at most this many bytes of one WAL, except if one record is
// larger.
constexpr uint64_t kRoundBytes = 8u << 20;
// When an answer is larger than this, it gets no further piece.
constexpr uint64_t kAnswerBytes = 8u << 20;
// If a record is larger, it requires a cut, and its bytes are not kept.
constexpr uint64_t kMaxPieceBytes = kMaxFollowAnswerBytes / 2;
constexpr int kMaxListings = 5;
// Maximum number of MANIFEST prefixes whose digests are kept. This limit
// applies separately to the cuts of followers, and to the judged parts that
// were sent.
constexpr size_t kMaxBegins = 256;
// A round begins at most this many lives of the source. If the source begins
// still more, the next round continues.
constexpr int kMaxLives = 3;

bool MayPass(const Status& status) {
  return status.IsTryAgain() || status.IsNotFound();
}

// Reads a file once, in order, from one offset on, and keeps the bytes. RocksDB
// may recycle a WAL and overwrite it. So the bytes that are sent must be the
// same bytes that were checked, and not be read again.
class Captured : public ByteSource {
 public:
  // REQUIRES: the file has `file_bytes` bytes, at least `begin`.
  Captured(int fd, const std::string& name, uint64_t file_bytes, uint64_t begin,
           uint64_t limit)
      : source_(fd, name, file_bytes),
        begin_(begin),
        size_(begin + std::min(limit, file_bytes - begin)) {}

  Status Read(uint64_t offset, size_t n, std::string* scratch,
              Slice* out) const override {
    if (offset != begin_ + bytes_.size()) {
      return Status::InvalidArgument("a log read out of order");
    }
    RETURN_IF_ERROR(source_.Read(offset, n, scratch, out));
    bytes_.append(out->data(), out->size());
    return Status::OK();
  }
  uint64_t size() const override { return size_; }
  uint64_t file_bytes() const { return source_.size(); }
  const std::string& bytes() const { return bytes_; }

 private:
  const DescriptorSource source_;
  const uint64_t begin_;
  const uint64_t size_;
  mutable std::string bytes_;
};

// A file that stays open while it is read.
class OpenedFile : public ByteSource {
 public:
  explicit OpenedFile(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Status Open() {
    FileId opened;
    RETURN_IF_ERROR(OpenPrivate(path_, &file_));
    RETURN_IF_ERROR(FileIdOf(file_.get(), path_, &opened));
    bytes_ = opened.bytes;
    return Status::OK();
  }
  Status Read(uint64_t offset, size_t n, std::string* scratch,
              Slice* out) const override {
    return DescriptorSource(file_.get(), path_, bytes_)
        .Read(offset, n, scratch, out);
  }
  uint64_t size() const override { return bytes_; }

 private:
  const std::string path_;
  Descriptor file_;
  uint64_t bytes_ = 0;
};

}  // namespace

struct FollowedSource::WalFile {
  explicit WalFile(uint64_t log_number) : number(log_number) { BeginAgain(); }

  void BeginAgain() {
    follower = std::make_unique<LogFollower>(LogKind::kWal, number);
  }

  const uint64_t number;
  std::string path;
  std::shared_ptr<Descriptor> file;
  std::unique_ptr<LogFollower> follower;
  Digest128Stream digest;  // digest of all bytes that were read and staged
  bool has_records = false;
  bool is_whole = false;  // true: RocksDB appends nothing to it
  bool is_torn = false;   // true: other bytes follow the last record
  bool is_held = false;   // true: held_ has, or had, this WAL
};

struct FollowedSource::Piece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string data;    // empty: the bytes must be read from the file
  Digest128 digest{};  // digest of the bytes; set if `data` is empty
  // Digest of all bytes of the WAL before this piece.
  std::unique_ptr<Digest128Stream> before;
};

struct FollowedSource::HeldWal {
  std::string path;
  std::shared_ptr<Descriptor> file;
  uint64_t begin = 0;
  uint64_t end = 0;
  bool has_records = false;
  Digest128 digest{};  // digest of all bytes up to `end`
  std::deque<Piece> pieces;
};

struct FollowedSource::StagedBytes {
  uint64_t number = 0;
  Piece piece;
  Digest128 digest{};  // digest of the WAL up to the end of the piece
};

struct FollowedSource::Staged {
  std::vector<StagedBytes> bytes;
  Barrier<LogPlace> barrier;
  uint64_t read_bytes = 0;
  bool more = false;
  bool life_ended = false;
  SourceProcess source_process = SourceProcess::kUnknown;
};

FollowedSource::FollowedSource(FollowedSourceOptions options)
    : options_(std::move(options)) {}

FollowedSource::~FollowedSource() = default;

// --- reading -----------------------------------------------------------------

void FollowedSource::JudgeRecord(const VersionEdit& edit,
                                 const ManifestState& before, uint64_t end) {
  std::string why;
  const EditKind kind = JudgeEdit(edit, before, &why);
  if (kind == EditKind::kBarrier) {
    judged_.barrier = {end, CutReason::kBarrier, why};
    for (const ManifestFile& file : edit.new_files) {
      if (file.smallest_sequence == file.largest_sequence) {
        judged_.table_sequences.push_back(file.largest_sequence);
      }
    }
    return;
  }
  for (const ManifestFile& file : edit.new_files) {
    if (kind == EditKind::kFlush) {
      judged_.flushed.push_back(
          {file.smallest_sequence, file.largest_sequence, end});
    }
  }
  // If a filter drops all entries of a flush, the flush adds no table. But its
  // edit still has a log number.
  const bool may_filter =
      kind != EditKind::kBookkeeping || edit.log_number.has_value();
  const auto family = before.families.find(edit.family_id);
  if (may_filter && family != before.families.end()) {
    judged_.rewritten[family->second.name] = end;
  }
}

// Reads M, the new records of the MANIFEST. Returns TryAgain if CURRENT now
// names another MANIFEST.
Status FollowedSource::FollowManifest() {
  bool changed = false;
  RETURN_IF_ERROR(manifest_->Follow(&changed));
  return manifest_->generation() == 1
             ? Status::OK()
             : Status::TryAgain("another MANIFEST");
}

Status FollowedSource::ReadRound(bool list, bool* more) {
  std::lock_guard<std::mutex> reading(reader_mu_);
  *more = false;
  for (int lives = 0; lives < kMaxLives; ++lives) {
    const uint64_t micros = MicrosNow();
    Staged staged;
    // If the last round found new records, the database counts as open, without
    // a check.
    staged.source_process =
        !is_idle_ || IsDatabaseOpen(options_.database_dir)
            ? SourceProcess::kOpen
        : IsDatabaseClosed(options_.database_dir) ? SourceProcess::kClosed
                                                  : SourceProcess::kUnknown;
    Status status = manifest_ == nullptr ? BeginLife() : Status::OK();
    if (status.ok()) status = ReadWals(list, &staged);
    if (options_.wals_read) options_.wals_read();
    if (status.ok()) status = FollowManifest();
    if (status.ok() && !staged.life_ended) {
      *more = staged.more;
      Publish(micros, list, &staged);
      return Status::OK();
    }
    EndLife();
    if (!status.ok() && !MayPass(status)) {
      return status;
    }
  }
  return Status::OK();  // the source keeps changing; the next round tries again
}

// Begins a life of the source. Reads the MANIFEST before any WAL, because it
// says where the WALs are, which WALs are needed, and which sequence number the
// first record continues. The records that the MANIFEST already has are judged
// like later ones, so they may be barriers.
Status FollowedSource::BeginLife() {
  manifest_ = std::make_unique<ManifestTail>(
      options_.database_dir,
      [this](const VersionEdit& edit, const ManifestState& before,
             uint64_t end) { JudgeRecord(edit, before, end); });
  seen_options_.emplace(options_.database_dir);
  RETURN_IF_ERROR(seen_options_->Look());
  RETURN_IF_ERROR(FollowManifest());
  // Checks this after reading the MANIFEST. If a process on another machine
  // opens the database later, it begins another MANIFEST, and thus another
  // life.
  RETURN_IF_ERROR(CheckWriterIsHere(options_.database_dir));
  const ManifestState& state = manifest_->state();
  std::string database_id;
  RETURN_IF_ERROR(
      ReadDatabaseId(options_.database_dir, state, &database_id));
  if (database_id.empty()) {
    return MakeStatus(EndState::kRefused,
                      options_.database_dir +
                          ": expected a database id in the MANIFEST or in "
                          "IDENTITY, by which a follower recognizes its "
                          "source, found none; opening the database with "
                          "RocksDB writes one");
  }
  std::string directory;
  RETURN_IF_ERROR(FindWalDirectory(options_.database_dir, options_.wal_dir,
                                   *seen_options_, manifest_.get(),
                                   &directory));
  oldest_ = state.min_log_number_to_keep;
  newest_listed_ = 0;
  continuity_ = std::make_unique<WalContinuity>(state.last_sequence);
  std::lock_guard<std::mutex> lock(mu_);
  wal_directory_ = directory;
  database_id_ = database_id;
  return Status::OK();
}

// Requires a cut if a flush or a compaction has rewritten a family that has a
// compaction filter. Reads OPTIONS after M, because RocksDB writes a new
// OPTIONS file after CURRENT, but before any compaction.
//
// If OPTIONS cannot be read, the next round usually tries again. But a round
// that lists all WALs then assumes a filter in each of these families. Only
// such a round may report that the source is closed, and a closed source must
// not require a cut afterwards.
void FollowedSource::FindFiltered(bool listed) {
  if (judged_.rewritten.empty()) {
    return;
  }
  const Status looked = seen_options_->Look();
  if (!looked.ok() && !listed) {
    return;
  }
  std::vector<std::string> names;
  for (const auto& [family, end] : judged_.rewritten) {
    names.push_back(family);
  }
  const OptionsText text(seen_options_->TextFor(names));
  for (const auto& [family, end] : judged_.rewritten) {
    const bool may_have = !looked.ok() || !text.HasFamily(family) ||
                          text.HasFilter(family);
    if (may_have && end > filtered_.end) {
      filtered_ = {end, CutReason::kFilter,
                   looked.ok() ? "compaction filter of " + family
                               : family + " may have a compaction filter: " +
                                     MessageOf(looked)};
    }
  }
  judged_.rewritten.clear();
}

void FollowedSource::EndLife() {
  manifest_.reset();
  continuity_.reset();
  wals_.clear();
  judged_ = {};
  filtered_ = {};
  torn_wal_ = 0;
  kept_wals_ = 0;
  digest_.reset();
  digested_bytes_ = 0;
  std::lock_guard<std::mutex> lock(mu_);
  ++lives_;
  if (manifest_number_ != 0) {
    last_manifest_number_ = manifest_number_;
    last_begins_ = std::move(begins_);
    last_begins_.merge(told_);
  }
  manifest_number_ = 0;
  manifest_end_ = 0;
  begins_.clear();
  told_.clear();
  told_judged_ = {};
  manifest_barrier_ = {};
  filter_barrier_ = {};
  wal_barrier_ = {};
  held_.clear();
  held_bytes_ = 0;
  memory_bytes_ = 0;
  cold_end_ = {};
  ++rounds_;
}

// Lists the WALs until the newest name is the same twice, as PinnedWals::List()
// does. A listing is certainly complete only up to the newest name of the
// previous listing.
Status FollowedSource::ListWals() {
  std::map<uint64_t, std::string> listed;
  for (int listings = 0; listings < kMaxListings; ++listings) {
    std::vector<std::string> names;
    RETURN_IF_ERROR(ListDirectory(wal_directory_, &names));
    listed = WalsIn(names);
    const uint64_t newest = listed.empty() ? 0 : listed.rbegin()->first;
    if (newest == newest_listed_) {
      break;
    }
    newest_listed_ = newest;
  }
  const uint64_t newest_known = wals_.empty() ? 0 : wals_.rbegin()->first;
  for (auto named = listed.lower_bound(std::max(oldest_, newest_known + 1));
       named != listed.end(); ++named) {
    auto wal = std::make_unique<WalFile>(named->first);
    wal->path = wal_directory_ + "/" + named->second;
    wal->file = std::make_shared<Descriptor>();
    RETURN_IF_ERROR(OpenForeign(wal->path, wal->file.get()));
    if (wal->file->is_open()) {
      wals_[named->first] = std::move(wal);
    }
  }
  return Status::OK();
}

// Reads the new bytes of all WALs. RocksDB creates a WAL before it writes the
// last buffered bytes of the previous WAL. Once a WAL has a record, the
// previous WALs are complete. So before accepting the first record of a WAL,
// reads the previous WALs again.
Status FollowedSource::ReadWals(bool list, Staged* staged) {
  for (const uint64_t sequence : judged_.table_sequences) {
    continuity_->Excuse(sequence);
  }
  judged_.table_sequences.clear();
  ForgetTornWal();
  if (list || wals_.empty()) {
    RETURN_IF_ERROR(ListWals());
  }
  for (auto wal = wals_.begin(); wal != wals_.end(); ++wal) {
    const bool hold = wal != wals_.begin() && !wal->second->has_records;
    bool held_first = false;
    RETURN_IF_ERROR(ReadWal(wal->second.get(), hold, staged, &held_first));
    if (held_first) {
      for (auto earlier = wals_.begin(); earlier != wal && !staged->more;
           ++earlier) {
        RETURN_IF_ERROR(
            ReadWal(earlier->second.get(), false, staged, &held_first));
        earlier->second->is_whole = !staged->more;
      }
      if (!staged->more) {
        FindTornWal(wal->first);
        RETURN_IF_ERROR(
            ReadWal(wal->second.get(), false, staged, &held_first));
      }
    }
    if (staged->more || staged->life_ended) {
      break;  // later WALs must wait until this one was read completely
    }
  }
  return Status::OK();
}

// Finds out whether a recovery would stop in an earlier WAL, because this WAL
// ends with a torn record. Then a recovery would not reach the first record of
// the WAL `number`.
void FollowedSource::FindTornWal(uint64_t number) {
  for (const auto& [earlier, wal] : wals_) {
    if (earlier < number && wal->is_torn && !continuity_->has_entries()) {
      torn_wal_ = earlier;
      continuity_->SetLost(true);
    }
  }
}

// Requires a cut once the source no longer needs the torn WAL. After that, the
// standby must not depend on this WAL either.
void FollowedSource::ForgetTornWal() {
  if (torn_wal_ != 0 &&
      manifest_->state().min_log_number_to_keep > torn_wal_) {
    judged_.barrier = {manifest_->end(), CutReason::kUnlogged,
                       "records after the torn end of WAL " +
                           std::to_string(torn_wal_)};
    torn_wal_ = 0;
    continuity_->SetLost(false);
  }
}

// Reads the new bytes of one WAL. If `hold_first` is true, does not accept the
// WAL's first record, but sets *held_first to true if there is one.
Status FollowedSource::ReadWal(WalFile* wal, bool hold_first, Staged* staged,
                               bool* held_first) {
  *held_first = false;
  for (uint64_t limit = kRoundBytes; !wal->is_whole; limit *= 2) {
    const uint64_t before = wal->follower->end();
    RETURN_IF_ERROR(ReadSome(wal, hold_first, limit, staged, held_first));
    if (!staged->more || wal->follower->end() > before) {
      break;
    }
    // One record is larger than the limit: doubles the limit.
    staged->more = false;
  }
  return Status::OK();
}

Status FollowedSource::ReadSome(WalFile* wal, bool hold_first, uint64_t limit,
                                Staged* staged, bool* held_first) {
  const uint64_t begin = wal->follower->end();
  FileId opened;
  RETURN_IF_ERROR(FileIdOf(wal->file->get(), wal->path, &opened));
  if (opened.bytes < begin) {
    // The file became shorter. There are two possible reasons. If the path now
    // names another file, RocksDB has recycled the first file for another WAL.
    // Otherwise the source's process crashed, and the next process truncated
    // the file.
    RETURN_IF_ERROR(
        IsNamed(wal->file->get(), wal->path, &staged->life_ended));
    wal->is_whole = true;
    return Status::OK();
  }
  Captured source(wal->file->get(), wal->path, opened.bytes, begin, limit);
  std::vector<uint64_t> ends;
  const Status status = wal->follower->Follow(
      source, [&](const Slice& record, uint64_t end) {
        if (hold_first) {
          *held_first = true;
          return Status::Aborted("the WAL before may not be whole");
        }
        WalStep step = WalStep::kContinues;
        RETURN_IF_ERROR(continuity_->Add(wal->number, record, &step));
        const bool is_large =
            end - (ends.empty() ? begin : ends.back()) > kMaxPieceBytes;
        if (step != WalStep::kContinues || is_large) {
          staged->barrier = {
              {wal->number, end},
              step == WalStep::kGap         ? CutReason::kSequenceGap
              : step == WalStep::kBlobIndex ? CutReason::kBlobIndex
                                            : CutReason::kLargeRecord,
              wal->path + ", before offset " + std::to_string(end)};
        }
        ends.push_back(end);
        return Status::OK();
      });
  if (status.IsTryAgain()) {
    // Truncated while it was read; the next round finds this.
    return Status::OK();
  }
  if (!status.ok() && !*held_first) {
    return WithContext(status, EndState::kSourceError, wal->path);
  }
  const uint64_t end = wal->follower->end();
  staged->more = source.size() < source.file_bytes() && !*held_first &&
                 (end > begin || wal->follower->stopped_inside());
  wal->has_records = wal->has_records || !ends.empty();
  wal->is_torn = !*held_first && source.size() == source.file_bytes() &&
                 end < source.file_bytes();
  if (!wal->has_records) {
    // Does not use these bytes before the WAL has its first record, because the
    // previous WAL may still receive bytes.
    wal->BeginAgain();
    return Status::OK();
  }
  staged->read_bytes += end - begin;
  if (ends.empty() || ends.back() != end) {
    ends.push_back(end);
  }
  CutIntoPieces(wal, begin, ends, source.bytes(), staged);
  return Status::OK();
}

// Splits the bytes after `begin` into pieces. Each piece ends with a record.
void FollowedSource::CutIntoPieces(WalFile* wal, uint64_t begin,
                                   const std::vector<uint64_t>& ends,
                                   const std::string& bytes,
                                   Staged* staged) const {
  uint64_t at = begin;
  for (size_t i = 0; i < ends.size(); ++i) {
    const bool is_last = i + 1 == ends.size();
    if (ends[i] == at || (!is_last && ends[i + 1] - at <= kPieceBytes)) {
      continue;
    }
    StagedBytes part;
    part.number = wal->number;
    part.piece.offset = at;
    part.piece.bytes = ends[i] - at;
    part.piece.before = wal->digest.Copy();
    wal->digest.Add(Slice(bytes.data() + (at - begin), part.piece.bytes));
    part.digest = wal->digest.Finish();
    if (part.piece.bytes <= kMaxPieceBytes) {
      part.piece.data = bytes.substr(at - begin, part.piece.bytes);
    }
    staged->bytes.push_back(std::move(part));
    at = ends[i];
  }
}

// Finds flushed tables with entries that no WAL has. If a table has entries
// after the last record that was read, these may be in a WAL that was not read
// yet. Then waits for the next round that reads all WALs.
void FollowedSource::FindUnlogged(bool saw_all) {
  std::vector<Flushed> pending;
  for (Flushed& table : judged_.flushed) {
    const bool is_known = continuity_->Covers(table.first, table.last);
    const bool is_read = table.last <= continuity_->last_sequence();
    if (is_known && !is_read && !(saw_all && table.seen)) {
      table.seen = true;
      pending.push_back(table);
    } else if (!is_known || !is_read) {
      if (table.end > judged_.barrier.end) {
        judged_.barrier = {table.end, CutReason::kUnlogged,
                           "table with entries up to sequence number " +
                               std::to_string(table.last)};
      }
      if (!is_read) continuity_->SkipTo(table.last);
    }
  }
  judged_.flushed = std::move(pending);
}

// Finds prepared transactions whose WAL RocksDB no longer keeps. Such a
// transaction has ended. If the reader did not see a commit, it finds a gap in
// the sequence numbers; but a rollback leaves no gap. If the end of the
// transaction may be in a WAL that was not read yet, waits for the next round
// that reads all WALs.
void FollowedSource::FindEndedUnseen(bool saw_all) {
  const std::string name = continuity_->PreparedBefore(kept_wals_);
  if (saw_all && !name.empty()) {
    judged_.barrier = {manifest_->end(), CutReason::kSequenceGap,
                       "transaction " + Printable(name) +
                           " has ended in a WAL that was not seen"};
    continuity_->ForgetPreparedBefore(kept_wals_);
  }
  if (saw_all) {
    kept_wals_ = manifest_->state().min_log_number_to_keep;
  }
}

// Computes the digest of the part of the MANIFEST that was judged. This part
// has all records, or only those before the first flush that FindUnlogged()
// leaves to the next round.
Status FollowedSource::DigestJudged(FollowJudged* judged) {
  uint64_t end = manifest_->end();
  for (const Flushed& table : judged_.flushed) {
    end = std::min(end, table.end - 1);
  }
  if (digest_ == nullptr) {
    digest_ = std::make_unique<Digest128Stream>();
  }
  if (end > digested_bytes_) {
    RETURN_IF_ERROR(manifest_->Digest(digested_bytes_, end, digest_.get()));
    digested_bytes_ = end;
  }
  *judged = {digested_bytes_, digest_->Finish()};
  return Status::OK();
}

// Makes W, and the result of reading M, visible to followers.
void FollowedSource::Publish(uint64_t micros, bool listed, Staged* staged) {
  const bool saw_all = listed && !staged->more;
  FindUnlogged(saw_all);
  FindEndedUnseen(saw_all);
  FollowJudged judged;
  if (!DigestJudged(&judged).ok()) {
    // The digest may be incomplete; the next round starts over.
    digest_.reset();
    digested_bytes_ = 0;
    judged = {};
  }
  FindFiltered(listed);
  std::lock_guard<std::mutex> lock(mu_);
  manifest_number_ = manifest_->number();
  manifest_end_ = manifest_->end();
  if (judged_.barrier.end > manifest_barrier_.end) {
    manifest_barrier_ = judged_.barrier;
  }
  if (filtered_.end > filter_barrier_.end) {
    filter_barrier_ = filtered_;
  }
  judged_.barrier = {};
  told_judged_ = judged;
  if (judged.manifest_bytes != 0) {
    told_[judged.manifest_bytes] = judged.manifest;
  }
  if (told_.size() > kMaxBegins) {
    told_.erase(told_.begin());
  }
  if (staged->barrier.reason != CutReason::kNone) {
    wal_barrier_ = staged->barrier;
  }
  for (const auto& [number, wal] : wals_) {
    if (!std::exchange(wal->is_held, true)) {
      held_[number].path = wal->path;
      held_[number].file = wal->file;
    }
  }
  for (StagedBytes& bytes : staged->bytes) {
    Hold(&bytes);
  }
  Trim();
  read_bytes_ += staged->read_bytes;
  read_micros_ = micros;
  last_sequence_ = continuity_->last_sequence();
  is_idle_ = staged->bytes.empty();
  source_process_ = staged->source_process;
  // Does not report the source as closed if a table is left to the next round,
  // because that round may require a cut.
  source_closed_ = source_process_ == SourceProcess::kClosed && saw_all &&
                   judged_.flushed.empty() &&
                   continuity_->PreparedBefore(kept_wals_).empty();
  ++rounds_;
  while (wals_.size() > 1 && wals_.begin()->second->is_whole) {
    wals_.erase(wals_.begin());
  }
}

// --- kept bytes --------------------------------------------------------------

void FollowedSource::Hold(StagedBytes* staged) {
  const auto found = held_.find(staged->number);
  if (found == held_.end()) {
    return;  // no follower needs this WAL any more
  }
  Piece& piece = staged->piece;
  HeldWal& held = found->second;
  held.end = piece.offset + piece.bytes;
  held.has_records = true;
  held.digest = staged->digest;
  held_bytes_ += piece.bytes;
  memory_bytes_ += piece.data.size();
  if (!held.pieces.empty()) {
    Piece& last = held.pieces.back();
    if (!last.data.empty() && !piece.data.empty() &&
        last.bytes + piece.bytes <= kPieceBytes) {
      last.data += piece.data;
      last.bytes += piece.bytes;
      return;
    }
  }
  held.pieces.push_back(std::move(piece));
}

void FollowedSource::Trim() {
  CoolDown();
  for (auto oldest = held_.begin();
       oldest != held_.end() && held_bytes_ > options_.max_held_bytes;) {
    HeldWal& held = oldest->second;
    while (!held.pieces.empty() && held_bytes_ > options_.max_held_bytes) {
      const Piece& piece = held.pieces.front();
      held.begin = piece.offset + piece.bytes;
      held_bytes_ -= piece.bytes;
      memory_bytes_ -= piece.data.size();
      held.pieces.pop_front();
    }
    const bool is_of_use = !held.pieces.empty() || wals_.count(oldest->first);
    oldest = is_of_use ? std::next(oldest) : held_.erase(oldest);
  }
}

// Frees the memory of the oldest pieces. Their bytes can still be read from the
// files.
void FollowedSource::CoolDown() {
  for (auto held = held_.lower_bound(cold_end_.number);
       memory_bytes_ > options_.memory_bytes && held != held_.end(); ++held) {
    for (Piece& piece : held->second.pieces) {
      if (memory_bytes_ <= options_.memory_bytes) {
        return;
      }
      if (!piece.data.empty()) {
        piece.digest = DigestOf(piece.data);
        memory_bytes_ -= piece.data.size();
        std::string().swap(piece.data);
      }
      cold_end_ = {held->first, piece.offset};
    }
  }
}

void FollowedSource::DropBefore(uint64_t wal_number) {
  std::lock_guard<std::mutex> lock(mu_);
  while (held_.size() > 1 && held_.begin()->first < wal_number) {
    for (const Piece& piece : held_.begin()->second.pieces) {
      held_bytes_ -= piece.bytes;
      memory_bytes_ -= piece.data.size();
    }
    held_.erase(held_.begin());
  }
}

void FollowedSource::Release() {
  std::lock_guard<std::mutex> reading(reader_mu_);
  EndLife();
}

// --- answering ---------------------------------------------------------------

// The history of the bytes that the reader has read and still has digests of.
class FollowedSource::ReadHistory : public History {
 public:
  explicit ReadHistory(const FollowedSource* source) : source_(source) {
    std::lock_guard<std::mutex> lock(source->mu_);
    database_id_ = source->database_id_;
    manifest_number_ = source->manifest_number_;
  }
  const std::string& database_id() const override { return database_id_; }
  uint64_t manifest_number() const override { return manifest_number_; }
  Status ManifestBegin(uint64_t bytes, FileBegin* begin,
                       Digest128* digest) const override {
    return source_->DigestOfManifest(bytes, begin, digest);
  }
  Status WalBegin(uint64_t number, uint64_t bytes, FileBegin* begin,
                  Digest128* digest) const override {
    std::lock_guard<std::mutex> lock(source_->mu_);
    return source_->DigestOfWal(number, bytes, begin, digest);
  }
  // Sets *is_flushed to false. If a WAL is missing, later records may also be
  // missing.
  Status IsWalFlushed(uint64_t, uint64_t, bool* is_flushed) const override {
    *is_flushed = false;
    return Status::OK();
  }

 private:
  const FollowedSource* const source_;
  std::string database_id_;
  uint64_t manifest_number_ = 0;
};

Status FollowedSource::DigestOfManifest(uint64_t bytes, FileBegin* begin,
                                        Digest128* digest) const {
  {
    std::lock_guard<std::mutex> lock(mu_);
    *begin = bytes > manifest_end_ ? FileBegin::kShort : FileBegin::kKnown;
    if (*begin == FileBegin::kShort) {
      return Status::OK();
    }
    using Begins = const std::map<uint64_t, Digest128>;
    for (Begins* const known : {static_cast<Begins*>(&begins_), &told_}) {
      if (const auto found = known->find(bytes); found != known->end()) {
        *digest = found->second;
        return Status::OK();
      }
    }
  }
  std::lock_guard<std::mutex> reading(reader_mu_);
  const Status status = manifest_ == nullptr
                            ? Status::TryAgain()
                            : manifest_->DigestOfBegin(bytes, digest);
  if (!status.ok()) {
    // The database now has another MANIFEST. The next round finds this.
    *begin = FileBegin::kShort;
    return MayPass(status) ? Status::OK() : status;
  }
  std::lock_guard<std::mutex> lock(mu_);
  if (begins_.size() >= kMaxBegins) {
    begins_.erase(begins_.begin());
  }
  begins_[bytes] = *digest;
  return Status::OK();
}

bool FollowedSource::HasRecordsFrom(uint64_t number) const {
  return std::any_of(held_.lower_bound(number), held_.end(),
                     [](const auto& wal) { return wal.second.has_records; });
}

Status FollowedSource::DigestOfWal(uint64_t number, uint64_t bytes,
                                   FileBegin* begin, Digest128* digest) const {
  const auto found = held_.find(number);
  *begin = FileBegin::kKnown;
  if (found == held_.end()) {
    *begin = !held_.empty() && number < held_.begin()->first
                 ? FileBegin::kGone
             : HasRecordsFrom(number) ? FileBegin::kNever
                                      : FileBegin::kShort;
    return Status::OK();
  }
  const HeldWal& wal = found->second;
  if (bytes > wal.end) {
    *begin = HasRecordsFrom(number + 1) ? FileBegin::kNever : FileBegin::kShort;
    return Status::OK();
  }
  if (bytes < wal.begin) {
    *begin = FileBegin::kGone;
    return Status::OK();
  }
  if (bytes == wal.end) {
    *digest = wal.digest;
    return Status::OK();
  }
  // Finds the last piece that begins at `bytes` or before.
  const auto piece = std::prev(std::upper_bound(
      wal.pieces.begin(), wal.pieces.end(), bytes,
      [](uint64_t at, const Piece& each) { return at < each.offset; }));
  const std::unique_ptr<Digest128Stream> stream = piece->before->Copy();
  if (bytes > piece->offset) {
    std::string read;
    const Status status = BytesOf(wal, *piece, piece->offset, &read);
    if (status.IsTryAgain()) {
      *begin = FileBegin::kGone;
      return Status::OK();
    }
    RETURN_IF_ERROR(status);
    stream->Add(Slice(read.data(), static_cast<size_t>(bytes - piece->offset)));
  }
  *digest = stream->Finish();
  return Status::OK();
}

// Finds a barrier after the position. The position includes how much of the
// MANIFEST another reader has judged. Trusts this, because that reader may have
// seen WALs that this reader has not.
CutReason FollowedSource::FindBarrier(const FollowRequest& request,
                                      std::string* note) const {
  const FollowPosition& position = request.position;
  const LogPlace place = {position.wal_number, position.wal_bytes};
  if (position.manifest_bytes < manifest_barrier_.end) {
    *note = manifest_barrier_.note;
    return manifest_barrier_.reason;
  }
  if (request.exact_filters && position.cut_bytes < filter_barrier_.end) {
    *note = filter_barrier_.note;
    return filter_barrier_.reason;
  }
  if (place < wal_barrier_.end) {
    *note = wal_barrier_.note;
    return wal_barrier_.reason;
  }
  return CutReason::kNone;
}

// Finds out whether this life continues the last life, if a follower had
// reached the position in the last life. Then sets *judged to the judged part
// of this life's MANIFEST. Otherwise *judged stays zero.
//
// A round is published only if CURRENT still named the same MANIFEST after the
// WALs were read. So the position's records were written before CURRENT named
// the new MANIFEST, and they were still in their WAL at that time.
Status FollowedSource::FindContinued(const FollowPosition& position,
                                     FollowJudged* judged) const {
  const auto known = last_begins_.find(position.manifest_bytes);
  if (position.database_id != database_id_ ||
      position.manifest_number != last_manifest_number_ ||
      position.wal_bytes == 0 || known == last_begins_.end() ||
      !(known->second == position.manifest)) {
    return Status::OK();
  }
  FileBegin begin = FileBegin::kNever;
  Digest128 digest;
  RETURN_IF_ERROR(DigestOfWal(position.wal_number, position.wal_bytes, &begin,
                              &digest));
  if (begin == FileBegin::kKnown && digest == position.wal) {
    *judged = told_judged_;
  }
  return Status::OK();
}

Status FollowedSource::Answer(const FollowRequest& request, Found* found,
                              Round* round) const {
  const FollowPosition& position = request.position;
  *round = Round();
  *found = Found::kRound;
  uint64_t lives = 0;
  {
    std::lock_guard<std::mutex> lock(mu_);
    round->end.last_sequence = last_sequence_;
    round->end.read_micros = read_micros_;
    round->end.source_process = source_process_;
    lives = lives_;
    if (position == FollowPosition()) {
      round->end.cut = CutReason::kFirst;
      return Status::OK();
    }
    if (manifest_number_ == 0) {
      *found = Found::kAhead;
      return Status::OK();
    }
  }
  Standing standing = Standing::kAnother;
  RETURN_IF_ERROR(FindStanding(position, ReadHistory(this), &standing));
  std::lock_guard<std::mutex> lock(mu_);
  if (lives_ != lives || standing == Standing::kAhead) {
    *found = Found::kAhead;  // or the source has begun a new life meanwhile
    return Status::OK();
  }
  round->end.last_sequence = last_sequence_;
  round->end.read_micros = read_micros_;
  round->end.source_process = source_process_;
  if (standing != Standing::kSame) {
    round->end.cut = standing == Standing::kNotHeld ? CutReason::kNotHeld
                                                    : CutReason::kNewLife;
    return standing == Standing::kNotHeld
               ? Status::OK()
               : FindContinued(position, &round->end.judged);
  }
  round->end.cut = FindBarrier(request, &round->end.note);
  if (round->end.cut != CutReason::kNone) {
    return Status::OK();
  }
  const LogPlace place = {position.wal_number, position.wal_bytes};
  const auto wal = held_.find(place.number);
  const bool is_held = wal != held_.end() && place.offset >= wal->second.begin;
  if (!is_held && !(held_.empty() && place.number == 0)) {
    round->end.cut = CutReason::kNotHeld;  // the bytes were released meanwhile
    return Status::OK();
  }
  if (is_held) {
    RETURN_IF_ERROR(Gather(place, round));
  }
  *found = round->logs.empty() && round->end.cut == CutReason::kNone
               ? Found::kNothing
               : Found::kRound;
  if (round->end.cut == CutReason::kNone && round->end.more_bytes == 0) {
    round->end.judged = told_judged_;
    round->end.source_closed = source_closed_;
  }
  return Status::OK();
}

Status FollowedSource::Gather(const LogPlace& from, Round* round) const {
  uint64_t gathered = 0;
  for (auto held = held_.find(from.number); held != held_.end(); ++held) {
    const HeldWal& wal = held->second;
    uint64_t at = held->first == from.number ? from.offset : 0;
    for (auto piece = wal.pieces.begin(); piece != wal.pieces.end(); ++piece) {
      const uint64_t end = piece->offset + piece->bytes;
      if (end <= at) {
        continue;
      }
      if (gathered >= kAnswerBytes) {
        round->end.more_bytes += end - at;
        at = end;
        continue;
      }
      std::string bytes;
      const Status status = BytesOf(wal, *piece, at, &bytes);
      if (status.IsTryAgain()) {
        round->logs.clear();
        round->end.wal = Digest128();
        round->end.cut = CutReason::kNotHeld;
        round->end.note = wal.path + " was recycled";
        return Status::OK();
      }
      RETURN_IF_ERROR(status);
      gathered += bytes.size();
      const auto next = std::next(piece);
      round->end.wal = next == wal.pieces.end() ? wal.digest
                                                : next->before->Finish();
      if (!round->logs.empty() &&
          round->logs.back().wal_number == held->first) {
        round->logs.back().bytes += bytes;
      } else {
        round->logs.push_back({held->first, at, std::move(bytes)});
      }
      at = end;
    }
  }
  return Status::OK();
}

// Reads the bytes of a piece, beginning at offset `from` of the WAL. Returns
// TryAgain if the file no longer has these bytes.
Status FollowedSource::BytesOf(const HeldWal& wal, const Piece& piece,
                               uint64_t from, std::string* bytes) const {
  const uint64_t skipped = from - piece.offset;
  if (!piece.data.empty()) {
    *bytes = piece.data.substr(skipped);
    return Status::OK();
  }
  const DescriptorSource source(wal.file->get(), wal.path,
                                piece.offset + piece.bytes);
  std::string scratch;
  Slice read;
  RETURN_IF_ERROR(source.Read(piece.offset, static_cast<size_t>(piece.bytes),
                              &scratch, &read));
  if (!(DigestOf(read) == piece.digest)) {
    return Status::TryAgain("other bytes");
  }
  bytes->assign(read.data() + skipped, read.size() - skipped);
  return Status::OK();
}

std::string FollowedSource::wal_directory() const {
  std::lock_guard<std::mutex> lock(mu_);
  return wal_directory_;
}

uint64_t FollowedSource::newest_wal() const {
  std::lock_guard<std::mutex> lock(mu_);
  for (auto wal = held_.rbegin(); wal != held_.rend(); ++wal) {
    if (wal->second.has_records) {
      return wal->first;
    }
  }
  return 0;
}

uint64_t FollowedSource::rounds() const {
  std::lock_guard<std::mutex> lock(mu_);
  return rounds_;
}

uint64_t FollowedSource::read_bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return read_bytes_;
}

uint64_t FollowedSource::held_bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return held_bytes_;
}

void FollowedSource::Measure(const FollowPosition& position,
                             uint64_t* behind_bytes,
                             uint64_t* held_bytes) const {
  *behind_bytes = 0;
  *held_bytes = 0;
  std::lock_guard<std::mutex> lock(mu_);
  for (auto held = held_.lower_bound(position.wal_number);
       held != held_.end(); ++held) {
    const uint64_t at =
        held->first == position.wal_number ? position.wal_bytes : 0;
    *behind_bytes += held->second.end - std::min(at, held->second.end);
    *held_bytes += held->second.end - held->second.begin;
  }
}

uint64_t FollowedSource::last_sequence() const {
  std::lock_guard<std::mutex> lock(mu_);
  return last_sequence_;
}

Status PositionOfCut(const std::vector<CloneFile>& files,
                     const std::string& directory,
                     const std::string& database_id,
                     FollowPosition* position) {
  *position = FollowPosition();
  position->database_id = database_id;
  for (const CloneFile& file : files) {
    if (file.kind == CloneFileKind::kManifest) {
      position->manifest_number = file.number;
      position->cut_bytes = file.records_end;
      position->manifest_bytes = file.records_end;
      RETURN_IF_ERROR(DigestOfFileBegin(directory + "/" + CloneFileName(file),
                                        file.records_end,
                                        &position->manifest));
    }
  }
  if (position->manifest_number == 0) {
    return MakeStatus(EndState::kCorrupt,
                      "cut: expected a MANIFEST, found none");
  }
  WalEnd end;
  const OpenWal open = [&directory](const CloneFile& file,
                                    std::unique_ptr<ByteSource>* wal) {
    const std::string path = directory + "/" + CloneFileName(file);
    auto opened = std::make_unique<OpenedFile>(path);
    RETURN_IF_ERROR(opened->Open());
    *wal = std::move(opened);
    return Status::OK();
  };
  RETURN_IF_ERROR(FindWalEnd(files, open, &end));
  position->wal_number = end.number;
  position->wal_bytes = end.bytes;
  CloneFile wal;
  wal.kind = CloneFileKind::kWal;
  wal.number = end.number;
  return end.bytes == 0 ? Status::OK()
                        : DigestOfFileBegin(directory + "/" + CloneFileName(wal),
                                            end.bytes, &position->wal);
}

}  // namespace sstferry
