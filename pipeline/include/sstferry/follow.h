// Follows a live source: a standby receives what the source writes within a few
// milliseconds, and one command turns it into a database. docs/follow.md says
// what it guarantees.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sstferry/options.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Result of the audits of a standby (docs/follow.md).
struct AuditState {
  // Since this time (microseconds, DIR's clock), every entry that can be
  // audited was compared at least once; 0: not every entry was ever compared.
  uint64_t oldest_micros = 0;
  // Counts since the standby was made.
  uint64_t slices = 0;
  uint64_t entries = 0;
  uint64_t differences = 0;
  uint64_t unaudited_cuts = 0;   // due, but impossible
  std::string unaudited_reason;  // of the newest such cut; empty: none
  std::string difference;        // the newest one; empty: none
  // Column family -> why it is not audited.
  std::map<std::string, std::string> families;
  // Why the audit record cannot be read; empty: it was read.
  std::string damage;
};

// State of a standby.
struct StandbyState {
  std::string dir;
  std::string source;              // address given to its follower
  std::string source_database_id;
  bool is_followed = false;        // a follower runs
  // The directory is a database: a promotion ended, or was interrupted before
  // it removed its record.
  bool is_promoted = false;
  // Sequence numbers: of the last record that a promotion would contain now,
  // and of the last durable record.
  uint64_t sequence = 0;
  uint64_t durable_sequence = 0;
  // The moment up to which the standby holds everything that the source wrote,
  // in microseconds since 1970 by the source's clock; 0: unknown. Without a
  // running follower: the last durable moment.
  uint64_t moment_micros = 0;
  // The source was closed at that moment, so nothing is missing after it.
  bool source_closed = false;
  // When the follower received the source's last answer, by DIR's clock; 0:
  // never.
  uint64_t heard_micros = 0;
  // When the follower started that received this answer, or still waits for its
  // first one.
  uint64_t begun_micros = 0;
  // The last answer said that a process has the source open.
  bool source_open = false;
  // The known fault of the standby; empty: none.
  std::string fault;
  uint64_t behind_bytes = 0;       // WALs of the source that DIR lacks yet
  uint64_t replay_bytes = 0;       // WALs to replay at the next open
  uint64_t cut_micros = 0;         // time of the last cut, by DIR's clock
  std::string cut_reason;          // "first", "barrier", ...
  std::map<std::string, uint64_t> cuts;  // by reason, since DIR was made
  // Column families with a compaction filter. Their contents are as if the
  // filter had not run since the last cut. Empty with
  // FollowOptions::exact_filters; unset: unknown.
  std::optional<std::vector<std::string>> filtered_families;
  // Options in the OPTIONS file of the last cut that this version does not
  // know, so their effect is unknown; unset: not read yet.
  std::optional<uint64_t> unknown_options;
  uint64_t received_bytes = 0;     // of WALs, in this run
  // Set when a restarted source had fewer records than the standby; the last
  // such event.
  uint64_t lost_sequences = 0;
  std::string lost_dir;            // empty: never
  // Directories with WALs of the standby from before its source was opened
  // again without proof that the standby had all of them: the newest few, the
  // oldest first.
  std::vector<std::string> unproven_dirs;
  AuditState audit;
  // The newest view (FollowOptions::view_every): its moment, as moment_micros;
  // 0: there is no view, or its moment is unknown.
  uint64_t view_moment_micros = 0;
  uint64_t views_made = 0;         // in this run
  std::string view_problem;        // why the next one is late; empty: it is not
  double seconds = 0;              // of a promotion, without its hooks

  // --- for a follower into an archive ----------------------------------------
  bool is_archive = false;  // `dir` is its place
  bool is_pushing = false;  // a set is being pushed
  // The log is in the archive up to this time, by the follower's clock.
  uint64_t put_micros = 0;
  uint64_t segments = 0;       // stored in this run
  uint64_t segment_bytes = 0;  // stored in this run
  uint64_t gaps = 0;           // barriers and outages in this run
  // Bytes received but not known to be in the archive, and the time since when
  // there are any, by the follower's clock; 0: none.
  uint64_t unput_bytes = 0;
  uint64_t unput_micros = 0;
};

// A follower whose last answer is older than this counts as not hearing its
// source.
inline constexpr std::chrono::seconds kSourceHeard{5};

// Reads the state of the standby in `dir`; *found: there is one. Changes
// nothing. Does not read the WALs, so `sequence` is the durable one.
//   kCorrupt  its record is damaged
[[nodiscard]] rocksdb::Status ReadStandbyState(const std::string& dir,
                                               bool* found,
                                               StandbyState* state);

struct PromoteOptions {
  std::string dir;
  // Called before the first change and after the last one, also when an
  // interrupted promotion is completed. Each call of `before` is followed by
  // one of `after`; SwapEvent::exchanged says whether `dir` is a database. If a
  // follower runs, `before` must stop it; the follower has 30 s to end.
  SwapHook before;
  SwapHook after;
  // Promotes only if the follower sees, after this promotion began, that the
  // source is closed, and has received everything. `wait` limits how long to
  // wait for that; 0: no limit.
  bool after_source_closed = false;
  std::chrono::milliseconds wait{0};
  // Assumes that the source is down, whatever the follower heard last, and also
  // if no follower runs.
  bool source_is_down = false;
  // Promotes a standby that is known to be damaged or different. The record of
  // the fault stays in `dir`.
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
  // *state receives what is known, also on failure.
  [[nodiscard]] virtual rocksdb::Status Run(StandbyState* state) = 0;
  virtual void Cancel() = 0;
};

struct FollowOptions {
  // The source, DIR (target_dir), and how cuts are pulled. MakeFollow() sets
  // the options that make a pull a cut of a standby.
  PullOptions pull;
  // Follows into the archive at store.where instead: cuts become sets, and the
  // records between them become a log. A segment of the log is stored after
  // each `segment`, or when it reaches `segment_bytes`.
  bool into_archive = false;
  StoreOptions store;
  std::chrono::milliseconds segment{std::chrono::seconds(10)};
  uint64_t segment_bytes = 16u << 20;
  // Maximum time since the follower last had all records; later times cannot be
  // restored.
  std::chrono::milliseconds max_gap{3000};
  std::string label;  // of sets
  // Into an archive: as ArchiveOptions::adopt. Otherwise a database in DIR,
  // such as a former primary, becomes a standby: files that the source has too
  // are compared with the source's bytes and linked, and the database stays
  // whole beside DIR (PullOptions::adopts_old).
  bool adopt = false;
  // A cut is taken when the last one is this old, or when the WALs that an
  // application would replay exceed max_replay_bytes.
  std::chrono::milliseconds cut_every{std::chrono::minutes(10)};
  uint64_t max_replay_bytes = 256'000'000;
  // Maximum number of bytes to audit after a scheduled cut: entries of the cut
  // are compared with those of the standby, at 1 % of a core on average. 0:
  // never.
  uint64_t max_audit_bytes = 1'000'000'000;
  // Interval at which the follower syncs received records.
  std::chrono::milliseconds durable{100};
  // A compaction of a family with a compaction filter causes a cut.
  bool exact_filters = false;
  // Makes a view this often: a database of hard links in DIR.view/, which
  // applications open for reading only. The link DIR.view/current leads to the
  // newest one. After the next one has replaced it, a view stays for
  // keep_views * view_every. 0: no views.
  std::chrono::milliseconds view_every{0};
  uint32_t keep_views = 6;
  // As ServeOptions::max_held_bytes, if the source is a directory.
  uint64_t max_held_bytes = 1'000'000'000;
  // Called after each cut and once a second, from a thread of Run().
  std::function<void(const StandbyState&)> on_state;
};

// Follows until cancelled, and then returns OK. Retries without limit while the
// source cannot be reached, or while a cut has no room on the target's disk.
//   kRefused  the source cannot be followed, or DIR is no standby of it, or
//             DIR.view has other files, or belongs to another account
//   kBusy     another process follows into DIR, or has the adopted database
//             open
//   kCorrupt  received or local data is damaged
//   kNoSpace  no room for records; the standby keeps those it has
// A view that cannot be made is a warning, and tried again.
std::unique_ptr<StandbyJob> MakeFollow(const FollowOptions& options);

// Turns a standby into a database by creating CURRENT. Uses no network.
//   kRefused  not a standby; or the source may be open: no follower runs, or
//             the follower heard within kSourceHeard that it is open; or, with
//             after_source_closed, no running follower sees it closed, or it
//             was opened again
//   kCorrupt  the standby is damaged, or known to differ from its source
//   kBusy     a follower runs, and did not end within 30 s after `before`
//   kDeadline the source was not seen closed within `wait`
std::unique_ptr<StandbyJob> MakePromote(const PromoteOptions& options);

// Makes a directory that can be opened as a database, with what the standby
// holds now, by hard links and copies, while the standby is followed. Changes
// to the view do not affect the standby.
//   kRefused  view_dir is not empty; see PullOptions::target_dir
//   others    errors of a snapshot of `dir`
std::unique_ptr<StandbyJob> MakeView(const ViewOptions& options);

}  // namespace sstferry
