// Follows a live source: a standby that takes what the source writes a few
// milliseconds later, and that one command makes a database of. docs/follow.md
// tells what it promises.
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

// Tells what the audits of a standby have compared (docs/follow.md).
struct AuditState {
  // All entries that are audited were compared after this, by DIR's clock; 0:
  // not all of them ever were.
  uint64_t oldest_micros = 0;
  // Since the standby was made.
  uint64_t slices = 0;
  uint64_t entries = 0;
  uint64_t differences = 0;
  uint64_t unaudited_cuts = 0;   // that were due, and could not be audited
  std::string unaudited_reason;  // of the newest such cut; empty: no cut yet
  std::string difference;        // the newest one; empty: no difference yet
  std::map<std::string, std::string> families;  // not audited: why not
  // The record cannot be read: nothing is known; empty: it can.
  std::string damage;
};

// How a standby is.
struct StandbyState {
  std::string dir;
  std::string source;              // as its follower was told
  std::string source_database_id;
  bool is_followed = false;        // a follower runs
  // A promotion ended, or was cut short before it had removed its record; the
  // directory is a database.
  bool is_promoted = false;
  // The sequence of the last record that a promotion has now, and of the last
  // one that is durable.
  uint64_t sequence = 0;
  uint64_t durable_sequence = 0;
  // The moment of the source that the standby holds all of, in microseconds
  // since 1970 by the source's clock; 0: not known. In a standby that nobody
  // follows, what was durable then.
  uint64_t moment_micros = 0;
  // The source was closed at that moment: nothing comes after it.
  bool source_closed = false;
  // When the follower got the source's last answer, by DIR's clock; 0: never.
  uint64_t heard_micros = 0;
  // When the follower began that heard it, or waits for a first answer.
  uint64_t begun_micros = 0;
  // That answer said that a process has the source open.
  bool source_open = false;
  // The known fault of the standby; empty: none.
  std::string fault;
  uint64_t behind_bytes = 0;       // of WALs that the source has and DIR not
  uint64_t replay_bytes = 0;       // of WALs that an application replays
  uint64_t cut_micros = 0;         // time of the last cut, by DIR's clock
  std::string cut_reason;          // "first", "barrier", ...
  std::map<std::string, uint64_t> cuts;  // by reason, since DIR was made
  // The families with a compaction filter. They are as if that had not run since
  // the last cut. Empty with FollowOptions::exact_filters; unset: not known yet.
  std::optional<std::vector<std::string>> filtered_families;
  // Options in the OPTIONS of the last cut that this version does not know;
  // unset: not known yet. Nobody can say what these change.
  std::optional<uint64_t> unknown_options;
  uint64_t received_bytes = 0;     // of WALs, in this run
  // A source came back with less than the standby had; the last time.
  uint64_t lost_sequences = 0;
  std::string lost_dir;            // empty: never
  // Directories with the WALs that the standby had when its source began another
  // life that did not show whether it has all of them; the newest few, the
  // oldest first.
  std::vector<std::string> unproven_dirs;
  AuditState audit;
  double seconds = 0;              // of a promotion, without its hooks

  // --- of a follower into an archive ------------------------------------------
  bool is_archive = false;  // `dir` is its place
  bool is_pushing = false;  // a set
  // Up to here the log is in the archive, by the follower's clock.
  uint64_t put_micros = 0;
  uint64_t segments = 0;       // put in this run
  uint64_t segment_bytes = 0;  // of these
  uint64_t gaps = 0;           // in this run: barriers and outages
  // Received and not known to be in the archive, and since when, by the
  // follower's clock, there is any; 0: nothing is.
  uint64_t unput_bytes = 0;
  uint64_t unput_micros = 0;
};

// A follower that got an answer so long ago, and no other since, does not hear
// its source.
inline constexpr std::chrono::seconds kSourceHeard{5};

// Reads the state of the standby in `dir`; *found: there is one. Changes
// nothing. The WALs are not read, so `sequence` is the durable one.
//   kCorrupt  its record is damaged
[[nodiscard]] rocksdb::Status ReadStandbyState(const std::string& dir,
                                               bool* found,
                                               StandbyState* state);

struct PromoteOptions {
  std::string dir;
  // Called before the first change and after the last one, also if a promotion
  // that was cut short is completed. Every call of `before` is followed by one
  // of `after`; SwapEvent::exchanged says whether `dir` is a database. If a
  // follower runs, `before` must stop it, which has half a minute to end.
  SwapHook before;
  SwapHook after;
  // Only if the follower sees, after this began, that the source is closed, and
  // has all of it. Waits so long for that; 0: for ever.
  bool after_source_closed = false;
  std::chrono::milliseconds wait{0};
  // Believes that the source is down, whatever its follower heard last, and
  // also if none runs.
  bool source_is_down = false;
  // Promotes a standby that is known to be damaged or different. The record of
  // that stays in `dir`.
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

// Threads: Run() from one thread, once; Cancel() from any.
class StandbyJob {
 public:
  virtual ~StandbyJob() = default;
  // *state is what is known, whatever it returns.
  [[nodiscard]] virtual rocksdb::Status Run(StandbyState* state) = 0;
  virtual void Cancel() = 0;
};

struct FollowOptions {
  // The source, DIR (target_dir), and how cuts are pulled. What makes a pull a
  // cut of a standby is set by MakeFollow().
  PullOptions pull;
  // Follows into the archive at store.where instead: cuts are sets, and what
  // comes between them is a log, of which a segment is put so often, or when it
  // is as large.
  bool into_archive = false;
  StoreOptions store;
  std::chrono::milliseconds segment{std::chrono::seconds(10)};
  uint64_t segment_bytes = 16u << 20;
  // Times are not restorable that come so long after the follower had all.
  std::chrono::milliseconds max_gap{3000};
  std::string label;  // of sets
  // Into an archive: as ArchiveOptions has it. Else a database in DIR, such as a
  // former primary, becomes a standby: files that the source has, too, are
  // compared with its bytes and linked, and it stays whole beside DIR
  // (PullOptions::adopts_old).
  bool adopt = false;
  // A cut is taken at the latest so long after the one before, or when the WALs
  // that an application would replay are larger.
  std::chrono::milliseconds cut_every{std::chrono::minutes(10)};
  uint64_t max_replay_bytes = 256'000'000;
  // After a cut that is due, entries are compared with what was here: of so many
  // bytes at most, and with 1 % of a core over time. 0: never.
  uint64_t max_audit_bytes = 1'000'000'000;
  // The follower syncs so often what it received.
  std::chrono::milliseconds durable{100};
  // A compaction of a family with a compaction filter asks for a cut.
  bool exact_filters = false;
  // As ServeOptions::max_held_bytes, where the source is a directory.
  uint64_t max_held_bytes = 1'000'000'000;
  // Called after each cut and once a second, from a thread of Run().
  std::function<void(const StandbyState&)> on_state;
};

// Follows until it is cancelled, which is OK. Tries again for ever while the
// source cannot be reached, or a cut has no room here.
//   kRefused  the source cannot be followed, or DIR is none of it
//   kBusy     another process follows into DIR, or has the database open that
//             is adopted
//   kCorrupt  what came, or what is here, is damaged
//   kNoSpace  records have no room here: what came before stays
std::unique_ptr<StandbyJob> MakeFollow(const FollowOptions& options);

// Makes a database of a standby: it gets CURRENT. Asks nobody over a network.
//   kRefused  no standby; or the source may be open: no follower runs, or one
//             that has heard so within kSourceHeard; or no follower runs that
//             sees the source closed, or the source was opened again
//   kCorrupt  the standby is damaged, or known to differ from its source
//   kBusy     a follower runs
//   kDeadline the follower did not end in time
std::unique_ptr<StandbyJob> MakePromote(const PromoteOptions& options);

// Makes a directory that can be opened, of what the standby holds now, by hard
// links and copies, while it is followed. Nothing that is done to it is done to
// the standby.
//   kRefused  view_dir is not empty; see PullOptions::target_dir
//   others    errors of a snapshot of `dir`
std::unique_ptr<StandbyJob> MakeView(const ViewOptions& options);

}  // namespace sstferry
