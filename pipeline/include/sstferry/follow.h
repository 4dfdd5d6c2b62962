// Follows a live source: a standby receives the source's writes within a few
// milliseconds, and one command turns it into a database. docs/follow.md lists
// the guarantees.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/types.h"
#include "sstferry/options.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Result of a standby's audits. An audit compares a part of a cut with the same
// part of the standby (docs/follow.md).
struct AuditState {
  // Every entry that can be audited was compared at least once since this time,
  // in microseconds by the clock of the standby's machine. 0: some entries were
  // never compared.
  uint64_t oldest_micros = 0;
  // Totals since the standby was made.
  uint64_t slices = 0;
  uint64_t entries = 0;
  uint64_t differences = 0;
  // Number of cuts that were due to be audited but could not be.
  uint64_t unaudited_cuts = 0;
  // Why the newest of these cuts could not be audited. Empty: no such cut.
  std::string unaudited_reason;
  // Description of the newest difference. Empty: no difference was found.
  std::string difference;
  // Column families that are not audited, each with the reason.
  std::map<std::string, std::string> families;
  // Why the record of the audits cannot be read. Empty: it was read.
  std::string damage;
};

// State of a standby, or of a follower that fills an archive.
struct StandbyState : StandbyOrigin, SourceHeard {
  std::string dir;
  // True if a follower is running.
  bool is_followed = false;
  // True if the directory is already a database: a promotion was completed, or
  // was interrupted just before it removed the standby's record.
  bool is_promoted = false;
  // sequence is the last sequence number that a promotion would include now.
  // durable_sequence is the last one that would survive a power failure.
  uint64_t sequence = 0;
  uint64_t durable_sequence = 0;
  // The standby has everything that the source wrote before this moment, in
  // microseconds since 1970 by the source's clock. 0: unknown. If no follower
  // is running, the moment is that of the last synced data.
  uint64_t moment_micros = 0;
  // True if the source was closed at moment_micros. The standby then has all
  // writes of the source.
  bool source_closed = false;
  // Description of the standby's fault, from its record or found by this status
  // query or promotion. Empty: no fault is known.
  std::string fault;
  // WAL bytes that the source has and DIR does not have yet.
  uint64_t behind_bytes = 0;
  // WAL bytes that RocksDB would replay when it opens the database.
  uint64_t replay_bytes = 0;
  // Reason of the last cut, for example "first" or "barrier".
  std::string cut_reason;
  // Number of cuts by reason since DIR was made.
  std::map<std::string, uint64_t> cuts;
  // Column families that have a compaction filter. The standby may still have
  // entries of these families that the source's filter has dropped since the
  // last cut. Empty with FollowOptions::exact_filters. Not set: unknown.
  std::optional<std::vector<std::string>> filtered_families;
  // Number of options in the last cut's OPTIONS file that this version of
  // sstferry does not know. Not set: the file was not read yet.
  std::optional<uint64_t> unknown_options;
  uint64_t received_bytes = 0;
  AuditState audit;
  // Moment of the newest view (see FollowOptions::view_every), as defined for
  // moment_micros. 0: there is no view, or its moment is unknown.
  uint64_t view_moment_micros = 0;
  // Number of views made in this run.
  uint64_t views_made = 0;
  // Why the next view is late. Otherwise empty.
  std::string view_problem;
  // Duration of a promotion, without its hooks.
  double seconds = 0;

  // --- for a follower into an archive ----------------------------------------
  // True if the follower fills an archive; `dir` is then its local directory.
  bool is_archive = false;
  // True while the follower pushes a set.
  bool is_pushing = false;
  // Latest time to which the archive can restore the source, by the follower's
  // clock. Only segments that follow a finished set count. 0: no such time is
  // known.
  uint64_t put_micros = 0;
  // Number and size of the segments that were stored in this run.
  uint64_t segments = 0;
  uint64_t segment_bytes = 0;
  // Number of barriers and outages in this run, after each of which the
  // archived log has a gap.
  uint64_t gaps = 0;
  // Bytes that were received but may not be in the archive yet.
  uint64_t unput_bytes = 0;
  // Time, by the follower's clock, since which the follower has had data that
  // the archive cannot restore yet. The data is unput_bytes, or a log whose
  // first set is still being pushed. 0: there is no such data.
  uint64_t unput_micros = 0;
};

// A promotion relies on the source's last answer only if the answer is not
// older than this. Otherwise it requires that the follower has waited for
// another answer, without receiving anything, for kSourceSilent.
inline constexpr std::chrono::seconds kSourceHeard{5};
// If a follower has waited this long for an answer and has received nothing,
// the source counts as silent. The time is longer than the interval between two
// pings (5 s by default). A source that only replies to pings is therefore not
// silent.
inline constexpr std::chrono::seconds kSourceSilent{6};

// Reads the state of the standby in `dir`, and changes nothing. *found is false
// if `dir` has no standby. Does not read the WALs: `sequence` is the durable
// sequence number, and only faults that were recorded are reported.
//   kCorrupt  the standby's record is damaged
[[nodiscard]] rocksdb::Status ReadStandbyState(const std::string& dir,
                                               bool* found,
                                               StandbyState* state);

struct PromoteOptions {
  std::string dir;
  // Hooks that are called before the first change and after the last change,
  // also if this call completes an interrupted promotion. `after` is called
  // only if `dir` is then a database. If a follower is running, `before` must
  // stop it within 30 s. If a follower is running and `before` is not set, the
  // promotion ends with kBusy.
  SwapHook before;
  SwapHook after;
  // The command-line options that set `before` and `after`, each with a space
  // before it. Messages that show a command contain them.
  std::string hook_words;
  // Waits until a running follower has received everything and reports that the
  // source is closed; only reports from after the start of this promotion
  // count. `wait` limits this time; 0: no limit.
  bool after_source_closed = false;
  std::chrono::milliseconds wait{0};
  // Skips the check that the source is down. Without this option, the promotion
  // ends with kRefused if no follower is running or if the follower reports
  // that the source may be open.
  bool source_is_down = false;
  // Promotes the standby even if it is known to be damaged or to differ from
  // its source. `dir` keeps the record of the fault.
  bool force = false;
  std::shared_ptr<rocksdb::FileSystem> file_system;  // null: the default one
  LogFunction log;
};

struct ViewOptions {
  // A standby, or any other database directory.
  std::string dir;
  // A missing or empty directory on the same file system as `dir`.
  std::string view_dir;
  std::shared_ptr<rocksdb::FileSystem> file_system;
  LogFunction log;
};

// A running follower, a promotion or the making of a view.
//
// Threads: Run() may be called once. Cancel() may be called from any thread.
class StandbyJob {
 public:
  virtual ~StandbyJob() = default;
  // Runs the job. Fills *state as far as it is known, also on failure.
  [[nodiscard]] virtual rocksdb::Status Run(StandbyState* state) = 0;
  virtual void Cancel() = 0;
};

struct FollowOptions {
  // The source, DIR (as target_dir), and options of the pulls that transfer
  // cuts. MakeFollow() itself sets the options that make a pull a cut.
  PullOptions pull;
  // Follows into the archive at store.where instead of DIR. A cut is then
  // stored as a set, and the records between two sets are stored as a log. The
  // follower stores a log segment at intervals of `segment`, or earlier when
  // the segment has `segment_bytes` bytes.
  bool into_archive = false;
  StoreOptions store;
  std::chrono::milliseconds segment{std::chrono::seconds(10)};
  uint64_t segment_bytes = 16u << 20;
  // If the follower lags behind the source for longer than this, the archive's
  // log gets a gap. The times in the gap cannot be restored.
  std::chrono::milliseconds max_gap{3000};
  std::string label;  // label of the sets
  // Into an archive: the same as ArchiveOptions::adopt. Into DIR: replaces a
  // database in DIR, such as a former primary, by a standby. Files that are
  // equal on both sides are linked, after a comparison of their bytes. The
  // complete old database is kept next to DIR (see PullOptions::adopts_old). If
  // DIR is a standby, its source may be another database at the first cut.
  bool adopt = false;
  // Takes a cut when the last cut is older than `cut_every`, or when an
  // application that opens the standby would have to replay more than
  // max_replay_bytes of WALs.
  std::chrono::milliseconds cut_every{std::chrono::minutes(10)};
  uint64_t max_replay_bytes = 256'000'000;
  // Maximum number of bytes that one audit compares. An audit runs after a cut
  // due to cut_every or max_replay_bytes. It uses 1 % of a CPU core on average.
  // 0: no audits.
  uint64_t max_audit_bytes = 1'000'000'000;
  // Interval at which the follower syncs the records that it has received.
  std::chrono::milliseconds durable{100};
  // Takes a cut after each compaction of a column family that has a compaction
  // filter.
  bool exact_filters = false;
  // Interval between two views. A view is a database of hard links in DIR.view/
  // that applications open read-only. The link DIR.view/current points to the
  // newest view. After another view replaces a view, the old one is kept for
  // keep_views * view_every. 0: no views.
  std::chrono::milliseconds view_every{0};
  uint32_t keep_views = 6;
  // Used only if the source is a directory; see ServeOptions::max_held_bytes.
  uint64_t max_held_bytes = 1'000'000'000;
  // The thread of Run() calls this function after each cut, and about once a
  // second. The thread does not call it while it takes a required cut, waits
  // for the source, or waits before a retry.
  std::function<void(const StandbyState&)> on_state;
};

// Makes a job that follows until it is cancelled. Run() then stores the data
// that was received, and returns OK or the reason why the data could not be
// stored. For an archive, this may take 40 s. While the source cannot be
// reached, or the target's disk has no room for a cut, the job retries without
// limit. If a view cannot be made, the job logs a warning and tries again.
//   kRefused  the source cannot be followed, DIR is not a standby of it, or
//             DIR.view contains other files or belongs to another account
//   kBusy     another process follows into DIR, or has the database open that
//             DIR adopts
//   kCorrupt  received or local data is damaged
//   kNoSpace  no room for records; the standby keeps its earlier records
std::unique_ptr<StandbyJob> MakeFollow(const FollowOptions& options);

// Makes a job that turns a standby into a database by replacing CURRENT. Uses
// no network.
//   kRefused  `dir` is not a standby, or a process may have the source open:
//             - no follower is running; or
//             - less than kSourceHeard ago, the source answered that a process
//               has it open, or that this is unknown; or
//             - there is no such recent answer, and the follower has not waited
//               for one for kSourceSilent; or
//             - with after_source_closed: no follower is running, or the source
//               was opened again
//   kCorrupt  the standby is damaged, or known to differ from its source
//   kBusy     the follower was still running 30 s after `before`
//   kDeadline no follower reported within `wait` that the source is closed
std::unique_ptr<StandbyJob> MakePromote(const PromoteOptions& options);

// Makes a job that creates a directory with the standby's present contents. An
// application can open the directory as a database. It consists of hard links
// and copies, and changes to it do not affect the standby. The standby may be
// followed meanwhile.
//   kRefused  view_dir is not empty; see PullOptions::target_dir
//   others    errors of a snapshot of `dir`
std::unique_ptr<StandbyJob> MakeView(const ViewOptions& options);

}  // namespace sstferry
