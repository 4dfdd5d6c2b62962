#include "pipeline/follow/audit.h"

#include <ctime>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "format/end_state.h"
#include "format/sealed_file.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/base/thread_priority.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/health.h"
#include "pipeline/snapshot/private_dir.h"
#include "pipeline/snapshot/retained_snapshots.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};
// Minimum CPU time of a slice. With less time, a standby that takes long to
// open would never be compared.
constexpr uint64_t kLeastSliceMicros = 200'000;
// Maximum pause between audits.
constexpr uint64_t kMostRestMicros = uint64_t{3600} * 1'000'000;
// Maximum duration of a slice. It is limited because its hard links keep
// deleted files on the disk.
constexpr std::chrono::minutes kLongestSlice{10};

uint64_t ThreadCpuMicros() {
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return static_cast<uint64_t>(cpu.tv_sec) * 1'000'000 +
         static_cast<uint64_t>(cpu.tv_nsec) / 1000;
}

Status NotAudited(const std::string& why) {
  return MakeStatus(EndState::kSourceError, why);
}

}  // namespace

Status ReadAuditFile(const std::string& dir, AuditFile* audit,
                     std::string* damage) {
  *audit = AuditFile();
  damage->clear();
  const std::string path = dir + "/" + kAuditFileName;
  bool found = false;
  std::string text;
  RETURN_IF_ERROR(ReadRecord(path, kSealedHeaderBytes + kMaxAuditPayloadBytes,
                             &found, &text));
  if (found) {
    const Status status = DecodeAuditFile(text, audit);
    if (!status.ok()) {
      *audit = AuditFile();
      *damage = path + ": " + MessageOf(status) +
                "; the results of earlier audits are lost";
    }
  }
  return Status::OK();
}

void RemoveLeftAudits(const std::string& dir, const LogFunction& log) {
  RemoveLeftovers(std::filesystem::path(RealPath(dir)).parent_path().string(),
                  log);
}

StandbyAudit::StandbyAudit(AuditOptions options)
    : options_(std::move(options)) {}

StandbyAudit::~StandbyAudit() { End(); }

void StandbyAudit::Log(LogLevel level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

Status StandbyAudit::Write(const std::string& dir) const {
  std::string bytes;
  EncodeAuditFile(audit_, &bytes);
  const std::string path = dir + "/" + kAuditFileName;
  Access access;
  RETURN_IF_ERROR(AccessBeside(dir, &access));
  RETURN_IF_ERROR(WriteDurably(options_.file_system.get(), path, bytes));
  return SetAccess(path, access);
}

// Returns true if enough time has passed since the last audit began. The
// audit's CPU time, divided by the time passed, must not be higher than the
// allowed share of a core.
bool StandbyAudit::IsTime() const {
  const uint64_t now = MicrosNow();
  const uint64_t rest =
      std::min(audit_.cpu_micros * 100 / std::max(options_.cpu_percent, 1u),
               kMostRestMicros);
  return options_.cpu_percent >= 100 || audit_.compares_all ||
         now < audit_.begun_micros || now - audit_.begun_micros >= rest;
}

Status StandbyAudit::Prepare(const Standby& standby,
                             const std::string& new_dir, bool is_due,
                             const std::function<bool()>& stopped) {
  Drop();
  if (!standby.exists()) {
    return Status::OK();
  }
  std::string damage;
  RETURN_IF_ERROR(ReadAuditFile(options_.dir, &audit_, &damage));
  if (!damage.empty()) Log(LogLevel::kWarning, damage);
  FollowFile cut;
  bool found = false;
  RETURN_IF_ERROR(ReadStandbyRecord(new_dir, &found, &cut));
  if (audit_.source_database_id != cut.source_database_id) {
    BeginAgain();
    audit_.done_begun_micros = audit_.done_ended_micros = 0;
    audit_.source_database_id = cut.source_database_id;
  }
  if (is_due && options_.max_bytes > 0 && IsTime()) {
    const uint64_t cpu = ThreadCpuMicros();
    const Status taken = Take(standby, cut, new_dir, stopped);
    audit_.cpu_micros = ThreadCpuMicros() - cpu;
    if (EndStateOf(taken) == EndState::kCorrupt) {
      damage_ = MessageOf(taken);
    } else if (!taken.ok()) {
      audit_.unaudited_cuts++;
      audit_.unaudited_reason = MessageOf(taken);
      Log(LogLevel::kInfo, "this cut is not audited: " + MessageOf(taken));
    }
  }
  return Write(new_dir);
}

Status StandbyAudit::Take(const Standby& standby, const FollowFile& cut,
                          const std::string& new_dir,
                          const std::function<bool()>& stopped) {
  AuditPairOptions pair;
  pair.standby_dir = options_.dir;
  pair.cut_dir = new_dir;
  pair.exact_filters = standby.record().exact_filters;
  pair.registry = options_.registry;
  stopped_ = stopped;
  pair.cancelled = [this] {
    return ends_ || cancelled_ || (stopped_ && stopped_());
  };
  Status status = AwaitEnd(standby, cut, new_dir, &pair.end);
  if (status.ok()) status = AuditPair::Take(pair, &pair_);
  stopped_ = nullptr;
  return status;
}

// Waits until the standby has all records of the cut, and the source has judged
// that all records of the cut's MANIFEST are flushes or compactions.
Status StandbyAudit::AwaitEnd(const Standby& standby, const FollowFile& cut,
                              const std::string& new_dir,
                              WalLimit* end) const {
  StandbyPosition last;
  RETURN_IF_ERROR(FindStandbyEnd(options_.file_system.get(), new_dir, &last));
  *end = {last.wal_number, last.wal_bytes};
  if (last.wal_number == 0) {
    return NotAudited("the cut has no WAL, so it is unknown at which record it "
                      "and the standby would be compared");
  }
  if (cut.manifest_number != standby.record().manifest_number) {
    return NotAudited("the source has begun another MANIFEST");
  }
  const Clock::time_point until = Clock::now() + options_.patience;
  for (;;) {
    const StandbyPosition received = standby.received();
    // If the cut's WALs have no record, all earlier records are in tables. Then
    // compares sequence numbers, not WAL positions.
    const bool has_records =
        end->bytes == 0
            ? received.last_sequence >= cut.sequence
            : received.wal_number > end->number ||
                  (received.wal_number == end->number &&
                   received.wal_bytes >= end->bytes);
    const bool is_judged =
        standby.position().manifest_bytes >= cut.manifest_bytes;
    if (standby.gap().reason != CutReason::kNone) {
      return NotAudited("the received records do not continue those of the "
                        "standby");
    }
    if (has_records && is_judged) {
      return Status::OK();
    }
    if (Clock::now() >= until || (stopped_ && stopped_())) {
      return NotAudited(
          has_records ? "the source did not report in time whether the newest "
                        "records of its MANIFEST are flushes or compactions"
                      : "the standby did not reach the cut's end in time");
    }
    std::this_thread::sleep_for(kLook);
  }
}

void StandbyAudit::Drop() {
  End();
  pair_.reset();
  damage_.clear();
}

void StandbyAudit::Begin() {
  if (pair_ == nullptr && damage_.empty()) {
    return;
  }
  const Status started = StartThread([this] { Run(); }, &thread_);
  if (!started.ok()) {
    Log(LogLevel::kWarning, "the audit did not begin: " + MessageOf(started));
    Drop();
  }
}

void StandbyAudit::End() {
  ends_ = true;
  Await();
  ends_ = false;
}

void StandbyAudit::Cancel() { cancelled_ = true; }

void StandbyAudit::Await() {
  if (thread_.joinable()) thread_.join();
}

void StandbyAudit::Run() {
  // With 100 %, keeps the normal priority. At low priority, this thread would
  // stop late, so that End() would delay a cut.
  if (options_.cpu_percent < 100) LowerThreadPriority();
  if (!damage_.empty()) {
    TakeFault(ReplicaFault::kDamaged, damage_);
  } else {
    CompareSlice();
  }
  pair_.reset();
  damage_.clear();
  const Status written = Write(options_.dir);
  if (!written.ok()) {
    Log(LogLevel::kWarning, "cannot record an audit: " + MessageOf(written));
  }
}

void StandbyAudit::CompareSlice() {
  const uint64_t prepared_micros = audit_.cpu_micros;
  const uint64_t cpu_begin = ThreadCpuMicros();
  const uint64_t now = MicrosNow();
  const uint64_t passed =
      now > audit_.begun_micros ? now - audit_.begun_micros : 0;
  audit_.begun_micros = now;
  AuditSlice slice;
  Status status = pair_->Open();
  // If a family that was left out of the present pass can be compared now,
  // begins a new pass. The present pass would end without having compared this
  // family.
  if (status.ok() &&
      std::any_of(audit_.families.begin(), audit_.families.end(),
                  [this](const UnauditedFamily& family) {
                    return pair_->Audits(family.name);
                  })) {
    BeginAgain();
  }
  slice.next = {audit_.next_family, audit_.next_key};
  if (status.ok() || !pair_->unaudited().empty()) {
    audit_.families = pair_->unaudited();
  }
  FaultPoint("StandbyAudit:Opened");
  if (status.ok()) {
    if (audit_.pass_begun_micros == 0) audit_.pass_begun_micros = now;
    const uint64_t opened_micros = ThreadCpuMicros();
    const Clock::time_point until = Clock::now() + kLongestSlice;
    const auto is_spent = [&] {
      const uint64_t cpu = ThreadCpuMicros();
      const uint64_t used = prepared_micros + cpu - cpu_begin;
      return options_.cpu_percent < 100 && !audit_.compares_all &&
             (Clock::now() >= until ||
              (cpu - opened_micros >= kLeastSliceMicros &&
               used >= passed * options_.cpu_percent / 100));
    };
    const uint64_t max_bytes =
        audit_.compares_all ? UINT64_MAX : options_.max_bytes;
    status = pair_->Compare(slice.next, max_bytes, is_spent, &slice);
  }
  audit_.cpu_micros = prepared_micros + ThreadCpuMicros() - cpu_begin;
  const bool is_read =
      status.ok() || EndStateOf(status) == EndState::kCancelled;
  if (is_read || !slice.difference.empty()) {
    TakeSlice(slice);
  } else {
    TakeFailure(status);
  }
}

// Makes the next slice begin a new pass over all entries.
void StandbyAudit::BeginAgain() {
  audit_.pass_begun_micros = 0;
  audit_.next_family = 0;
  audit_.next_key.reset();
}

// Stores the result of a slice. The slice may have been stopped early.
void StandbyAudit::TakeSlice(const AuditSlice& slice) {
  audit_.entries += slice.entries;
  if (!slice.difference.empty()) {
    TakeFault(ReplicaFault::kDifferent, slice.difference);
    return;
  }
  const AuditPlace begin{audit_.next_family, audit_.next_key};
  if (slice.next == begin && !slice.is_end) {
    audit_.unaudited_cuts++;
    audit_.unaudited_reason =
        "the audit was stopped before it compared an entry, by the next cut or "
        "by the end of the follower";
    return;
  }
  audit_.slices++;
  audit_.next_family = slice.is_end ? 0 : slice.next.family;
  audit_.next_key = slice.is_end ? std::nullopt : slice.next.key;
  if (slice.is_end) {
    audit_.compares_all = false;
    audit_.passes++;
    audit_.done_begun_micros = std::exchange(audit_.pass_begun_micros, 0);
    audit_.done_ended_micros = MicrosNow();
  }
}

void StandbyAudit::TakeFailure(const Status& status) {
  if (EndStateOf(status) == EndState::kCorrupt) {
    TakeFault(ReplicaFault::kDamaged, MessageOf(status));
  } else {
    audit_.unaudited_cuts++;
    audit_.unaudited_reason = MessageOf(status);
    Log(LogLevel::kWarning,
        "the last cut is not audited: " + MessageOf(status));
  }
}

// Records a fault of DIR, and then reports it.
void StandbyAudit::TakeFault(ReplicaFault fault, const std::string& what) {
  audit_.differences++;
  audit_.difference_micros = MicrosNow();
  audit_.difference = what;
  audit_.compares_all = true;
  BeginAgain();
  HealthFile health = MakeFault(
      fault, "the audit at the last cut found: " + what, Selection());
  const Status recorded =
      RecordFault(options_.file_system.get(), options_.dir, &health);
  Log(LogLevel::kError,
      options_.dir + ": " + health.what +
          (recorded.ok() ? "" : "; " + MessageOf(recorded)));
  if (options_.on_fault) options_.on_fault(health);
}

}  // namespace sstferry
