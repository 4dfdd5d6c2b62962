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

// Result of a standby's audits (docs/follow.md).
struct AuditState {
  // Every auditable entry was compared at least once since this time
  // (microseconds, DIR's clock); 0: some entries were never compared.
  uint64_t oldest_micros = 0;
  // Counts since the standby was made.
  uint64_t slices = 0;
  uint64_t entries = 0;
  uint64_t differences = 0;
  uint64_t unaudited_cuts = 0;   // cuts whose audit was due, but impossible
  std::string unaudited_reason;  // for the newest such cut; empty: no such cut
  std::string difference;        // the newest difference; empty: none
  // Column family -> why it is not audited.
  std::map<std::string, std::string> families;
  // Why the audit record cannot be read; empty: it was read.
  std::string damage;
};

// State of a standby.
struct StandbyState : StandbyOrigin, SourceHeard {
  std::string dir;
  bool is_followed = false;        // a follower is running
  // The directory is a database: a promotion was completed, or was interrupted
  // before it removed its record.
  bool is_promoted = false;
  // Sequence number of the last record that a promotion would include now, and
  // of the last durable record.
  uint64_t sequence = 0;
  uint64_t durable_sequence = 0;
  // The standby holds everything that the source wrote up to this moment, in
  // microseconds since 1970 by the source's clock; 0: unknown. If no follower
  // runs: the last durable moment.
  uint64_t moment_micros = 0;
  // The source was closed at that moment, so the standby misses nothing.
  bool source_closed = false;
  // The recorded fault of the standby, or the one that a status or a promotion
  // found; empty: no fault is known.
  std::string fault;
  uint64_t behind_bytes = 0;       // bytes of source WALs not yet in DIR
  uint64_t replay_bytes = 0;       // WALs to replay at the next open
  std::string cut_reason;          // "first", "barrier", ...
  std::map<std::string, uint64_t> cuts;  // by reason, since DIR was made
  // Column families with a compaction filter. The standby still has entries
  // that the source's filter has dropped since the last cut. Empty with
  // FollowOptions::exact_filters; unset: unknown.
  std::optional<std::vector<std::string>> filtered_families;
  // Number of options in the last cut's OPTIONS file that this version does not
  // know; their effect is unknown. Unset: the file was not read yet.
  std::optional<uint64_t> unknown_options;
  uint64_t received_bytes = 0;     // WAL bytes received in this run
  AuditState audit;
  // Moment of the newest view (FollowOptions::view_every), like moment_micros;
  // 0: there is no view, or its moment is unknown.
  uint64_t view_moment_micros = 0;
  uint64_t views_made = 0;         // in this run
  std::string view_problem;        // why the next view is late; or empty
  double seconds = 0;              // duration of a promotion, without its hooks

  // --- for a follower into an archive ----------------------------------------
  bool is_archive = false;  // `dir` is the follower's local directory
  bool is_pushing = false;  // a set is being pushed
  // Latest time to which the archive can restore the source, by the follower's
  // clock: the end of the log segments in the archive, if the set before them
  // is committed. 0: no such time is known.
  uint64_t put_micros = 0;
  uint64_t segments = 0;       // stored in this run
  uint64_t segment_bytes = 0;  // stored in this run
  uint64_t gaps = 0;           // barriers and outages in this run
  uint64_t unput_bytes = 0;    // received, but perhaps not in the archive yet
  // Time, by the follower's clock, since which there are bytes that the archive
  // cannot restore: unput_bytes, or a log whose first set is still being
  // pushed. 0: no such bytes.
  uint64_t unput_micros = 0;
};

// Maximum age at which MakePromote() relies on the source's last answer. If the
// answer is older, a promotion requires that the follower has since waited for
// another answer for kSourceSilent.
inline constexpr std::chrono::seconds kSourceHeard{5};
// A source is silent if a follower has waited this long for an answer, and has
// received nothing. Longer than the time between two pings (5 s by default), so
// a source that only replies to pings is not silent.
inline constexpr std::chrono::seconds kSourceSilent{6};

// Reads the state of the standby in `dir`, without changing it. *found: `dir`
// holds a standby. Does not read the WALs, so `sequence` is the durable
// sequence number, and does not look for faults that are not recorded.
//   kCorrupt  the standby's record is damaged
[[nodiscard]] rocksdb::Status ReadStandbyState(const std::string& dir,
                                               bool* found,
                                               StandbyState* state);

struct PromoteOptions {
  std::string dir;
  // Called before the first change and after the last one, also if this call
  // completes an interrupted promotion. `after` is called only if `dir` is a
  // database then. If a follower runs, `before` must stop it; the follower must
  // end within 30 s. Without `before`, the promotion then ends with kBusy.
  SwapHook before;
  SwapHook after;
  // The options that set `before` and `after`, each with a space before it; for
  // commands in messages.
  std::string hook_words;
  // Promotes only if a running follower has received everything and reports,
  // after this promotion began, that the source is closed. `wait` limits how
  // long to wait for this; 0: no limit.
  bool after_source_closed = false;
  std::chrono::milliseconds wait{0};
  // Assumes that the source is down, even if the follower's last report
  // contradicts this or no follower runs.
  bool source_is_down = false;
  // Promotes the standby even if it is known to be damaged or different. `dir`
  // keeps the record of the fault.
  bool force = false;
  std::shared_ptr<rocksdb::FileSystem> file_system;  // null: the default one
  LogFunction log;
};

struct ViewOptions {
  std::string dir;        // a standby, or any database
  std::string view_dir;   // missing or empty, on the same file system
  std::shared_ptr<rocksdb::FileSystem> file_system;
  LogFunction log;
};

// A promotion or a view.
//
// Threads: Run() from one thread, once; Cancel() from any.
class StandbyJob {
 public:
  virtual ~StandbyJob() = default;
  // Fills *state with what is known, also on failure.
  [[nodiscard]] virtual rocksdb::Status Run(StandbyState* state) = 0;
  virtual void Cancel() = 0;
};

struct FollowOptions {
  // The source, DIR (target_dir), and options of the pulls that transfer cuts.
  // MakeFollow() sets the options that turn a pull into a cut.
  PullOptions pull;
  // Follows into the archive at store.where instead of DIR: cuts become sets,
  // and the records between them become a log. The follower stores a log
  // segment every `segment`, or earlier when it reaches `segment_bytes`.
  bool into_archive = false;
  StoreOptions store;
  std::chrono::milliseconds segment{std::chrono::seconds(10)};
  uint64_t segment_bytes = 16u << 20;
  // If the follower does not have all of the source's records for longer than
  // this, later moments cannot be restored until it has them again.
  std::chrono::milliseconds max_gap{3000};
  std::string label;  // label of the sets
  // Into an archive: like ArchiveOptions::adopt. Into DIR: turns a database in
  // DIR, such as a former primary, into a standby. Files that the source also
  // has are compared with the source's bytes and linked. The old database is
  // kept complete next to DIR (PullOptions::adopts_old).
  bool adopt = false;
  // Takes a cut when the last one is this old, or when an application would
  // have to replay more than max_replay_bytes of WALs.
  std::chrono::milliseconds cut_every{std::chrono::minutes(10)};
  uint64_t max_replay_bytes = 256'000'000;
  // Maximum number of bytes to audit after a scheduled cut. An audit compares
  // entries of the cut with entries of the standby and uses 1 % of a core on
  // average. 0: no audits.
  uint64_t max_audit_bytes = 1'000'000'000;
  // Interval at which the follower syncs received records.
  std::chrono::milliseconds durable{100};
  // Takes a cut after each compaction of a family that has a compaction filter.
  bool exact_filters = false;
  // Makes a view this often: a database of hard links in DIR.view/, which
  // applications open read-only. The link DIR.view/current points to the newest
  // view. A replaced view is kept for keep_views * view_every. 0: no views.
  std::chrono::milliseconds view_every{0};
  uint32_t keep_views = 6;
  // Like ServeOptions::max_held_bytes, if the source is a directory.
  uint64_t max_held_bytes = 1'000'000'000;
  // Called after each cut and once a second, from a thread of Run().
  std::function<void(const StandbyState&)> on_state;
};

// Follows until cancelled, and then returns OK. Retries without limit while the
// source cannot be reached, or while the target's disk has no room for a cut.
//   kRefused  the source cannot be followed, DIR is not a standby of it, or
//             DIR.view contains other files or belongs to another account
//   kBusy     another process follows into DIR, or has the database open that
//             DIR adopts
//   kCorrupt  received or local data is damaged
//   kNoSpace  no room for records; the standby keeps its earlier records
// A view that cannot be made causes a warning, and is retried.
std::unique_ptr<StandbyJob> MakeFollow(const FollowOptions& options);

// Turns a standby into a database by replacing CURRENT. Uses no network.
//   kRefused  `dir` is not a standby, or a process may have the source open:
//             - no follower runs; or
//             - within kSourceHeard, the source answered that it is open, or
//               that this is unknown; or
//             - without such an answer, the follower has not just waited for
//               one for kSourceSilent; or
//             - with after_source_closed: no running follower reports the
//               source closed, or the source was opened again
//   kCorrupt  the standby is damaged, or known to differ from its source
//   kBusy     the follower still ran 30 s after `before`
//   kDeadline no follower reported the source closed within `wait`
std::unique_ptr<StandbyJob> MakePromote(const PromoteOptions& options);

// Makes a directory that can be opened as a database with the standby's current
// contents. Uses hard links and copies; the standby may be followed meanwhile.
// Changes to the view do not affect the standby.
//   kRefused  view_dir is not empty; see PullOptions::target_dir
//   others    errors of a snapshot of `dir`
std::unique_ptr<StandbyJob> MakeView(const ViewOptions& options);

}  // namespace sstferry
