// Over 600 lines because the tables are read side by side.
#include "tools/sstferry/commands.h"

#include <initializer_list>
#include <set>

#include "format/limits.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/option_rows.h"

namespace sstferry {
namespace {

using Group = OptionGroup;
using Serve = ServeArguments;
using Pull = PullArguments;
using Verify = VerifyArguments;

constexpr uint64_t kMaxConnections = 65536;

const OptionSpec kFamilyOption = {
    "cf", "NAME", Group::kCommon,
    "Select column family NAME (repeatable). Default: all.", true};
const OptionSpec kBeginOption = {"begin", "KEY", Group::kCommon,
                                 "Start at KEY, inclusive, in each selected "
                                 "family's own order. Default: the "
                                 "first key."};
const OptionSpec kEndOption = {
    "end", "KEY", Group::kCommon,
    "End before KEY. Default: after the last key."};
const OptionSpec kMetricsOption = {
    "metrics", "HOST:PORT", Group::kOutput,
    "Show metrics for Prometheus at http://HOST:PORT/metrics, on an address of "
    "this machine only; port 0 takes a free port. Default: none."};

template <typename Arguments>
TlsFiles& TlsOf(Arguments& arguments) {
  return arguments.options.tls;
}
TlsFiles& TlsOf(Serve& arguments) { return arguments.tls; }

template <typename Arguments>
std::vector<OptionSpec> TlsRows() {
  return {
      Row<Arguments>(
          "tls-cert", Group::kNetwork,
          "Certificate of this side with its intermediates, PEM. With "
          "--tls-key "
          "and --tls-ca, every connection uses TLS 1.3. Default: plain TCP.",
          [](auto& a) -> auto& { return TlsOf(a).cert; }, PathValue("FILE")),
      Row<Arguments>(
          "tls-key", Group::kNetwork,
          "Private key of --tls-cert, PEM, without a passphrase.",
          [](auto& a) -> auto& { return TlsOf(a).key; }, PathValue("FILE")),
      Row<Arguments>(
          "tls-ca", Group::kNetwork,
          "CA certificates that may sign the other side's certificate, PEM.",
          [](auto& a) -> auto& { return TlsOf(a).ca; }, PathValue("FILE")),
  };
}

template <typename Arguments>
OptionSpec StallRow() {
  return Row<Arguments>(
      "stall-timeout", Group::kNetwork,
      "Fail with TOO_SLOW after waiting this long for a peer that is "
      "connected but does nothing. Raise it for a --max-rate below 50K per "
      "lane.",
      [](auto& a) -> auto& { return a.options.stall_timeout; },
      DurationValue());
}

template <typename Arguments>
std::string& SnapshotDirOf(Arguments& arguments) {
  return arguments.options.snapshot_dir;
}
std::string& SnapshotDirOf(ReleaseArguments& arguments) {
  return arguments.snapshot_dir;
}

template <typename Arguments>
OptionSpec SnapshotDirRow() {
  return Row<Arguments>(
      "snapshot-dir", Group::kAdvanced,
      "Link the private snapshot of a source directory in DIR, which must be "
      "on "
      "the source's file system, unless that is read-only. Default: beside the "
      "source, or in TMPDIR for one on a read-only file system.",
      [](auto& a) -> auto& { return SnapshotDirOf(a); }, PathValue("DIR"));
}

template <typename Arguments>
OptionSpec WalDirRow() {
  return Row<Arguments>(
      "wal-dir", Group::kAdvanced,
      "Read the WAL of a source directory from DIR. Default: where its OPTIONS "
      "file and MANIFEST say.",
      [](auto& a) -> auto& { return a.options.wal_dir; }, PathValue("DIR"));
}

template <typename Arguments>
OptionSpec TtlRow() {
  return Row<Arguments>(
      "snapshot-ttl", Group::kLimits,
      "Retain the snapshot of an interrupted pull this long, counted while no "
      "target is connected, so that the pull can resume.",
      [](auto& a) -> auto& { return a.options.snapshot_ttl; },
      LeaseValue("do not retain it"));
}

std::vector<OptionSpec> Joined(
    std::initializer_list<std::vector<OptionSpec>> lists) {
  std::vector<OptionSpec> all;
  for (const std::vector<OptionSpec>& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

std::vector<OptionSpec> ServeOptionSpecs() {
  return Joined(
      {{
           {"db", "[NAME=]DIR", Group::kCommon,
            "Serve the database directory DIR as NAME, which is 1 to 64 of A-Z "
            "a-z "
            "0-9 . _ - (repeatable). Default NAME: DIR's last component.",
            true},
           Row<Serve>(
               "listen", Group::kCommon,
               "Accept connections at HOST:PORT, where port 0 takes a free "
               "port, or at "
               "the Unix socket unix:/PATH, where only accounts of --allow-uid "
               "may "
               "connect.",
               [](auto& a) -> auto& { return a.listen; }, AddressValue()),
           Row<Serve>(
               "max-rate", Group::kCommon,
               "Send at most BYTES per second, over all transfers together. "
               "SIGHUP "
               "reads it again from --config.",
               [](auto& a) -> auto& {
                 return a.options.max_rate_bytes_per_sec;
               },
               BytesValue("no limit")),
           Row<Serve>(
               "once", Group::kCommon,
               "Exit after the first transfer, with that transfer's exit code.",
               [](auto& a) -> auto& { return a.once; }),
           Row<Serve>(
               "allow-missing", Group::kCommon,
               "Start even if a database is missing or cannot be read now; "
               "each request "
               "opens it again. Default: check every database, and fail.",
               [](auto& a) -> auto& { return a.allow_missing; }),
           Row<Serve>(
               "max-lanes", Group::kLimits,
               "Allow N lanes per transfer; a pull that asks for more gets N.",
               [](auto& a) -> auto& { return a.options.max_lanes; },
               NumberValue(1, kMaxLanes)),
           Row<Serve>(
               "max-transfers", Group::kLimits,
               "Serve N transfers at once; the targets of further ones wait "
               "and ask again.",
               [](auto& a) -> auto& { return a.options.max_transfers; },
               NumberValue(1, kMaxConnections)),
           Row<Serve>(
               "share-snapshots", Group::kLimits,
               "Keep the snapshot of a pull with --snapshot latest this long, "
               "and give "
               "it to all such pulls.",
               [](auto& a) -> auto& { return a.options.share_snapshots; },
               LeaseValue("each gets its own")),
           Row<Serve>(
               "spool", Group::kLimits,
               "Keep up to BYTES of rebuilt chunks of shared snapshots beside "
               "them, in "
               "all, so that each is built once for all targets.",
               [](auto& a) -> auto& { return a.options.spool_bytes; },
               BytesValue("", "build for each")),
           TtlRow<Serve>(),
           Row<Serve>(
               "min-free", Group::kLimits,
               "Release snapshots while less than N% of their file system is "
               "free: idle "
               "ones first, from the oldest, then the largest in use.",
               [](auto& a) -> auto& { return a.options.min_free_percent; },
               PercentValue()),
           Row<Serve>(
               "max-connections", Group::kLimits,
               "Accept N connections at once; a pull uses one, and one per "
               "lane.",
               [](auto& a) -> auto& { return a.options.max_connections; },
               NumberValue(1, kMaxConnections)),
           Row<Serve>(
               "max-per-address", Group::kLimits,
               "Accept N connections from one address at once.",
               [](auto& a) -> auto& {
                 return a.options.max_connections_per_address;
               },
               NumberValue(1, kMaxConnections)),
       },
       TlsRows<Serve>(),
       {
           {"allow-uid", "UID", Group::kNetwork,
            "Allow the user UID, a number or a name, to connect to a Unix "
            "socket "
            "(repeatable). Default: root and the user that runs serve, who "
            "always "
            "may.",
            true},
           {"allow", "NAME=SUBJECT", Group::kNetwork,
            "Serve database NAME only to certificates whose common name or "
            "DNS, IP, "
            "URI or e-mail name is exactly SUBJECT (repeatable), or to every "
            "certificate that --tls-ca accepts if SUBJECT is *. Needs TLS. "
            "Default: "
            "*, with a warning.",
            true},
           Row<Serve>(
               "insecure", Group::kNetwork,
               "Allow --listen beyond this machine without TLS. Anyone who "
               "reaches the "
               "port can then read the databases.",
               [](auto& a) -> auto& { return a.insecure; }),
           StallRow<Serve>(),
           Row<Serve>(
               "snapshot-dir", Group::kAdvanced,
               "Link private snapshots in DIR, which must be on the databases' "
               "file "
               "system, unless that is read-only. Default: beside each "
               "database, or in "
               "TMPDIR for those on a read-only file system.",
               [](auto& a) -> auto& { return a.options.snapshot_dir; },
               PathValue("DIR")),
           {"wal-dir", "NAME=DIR", Group::kAdvanced,
            "Read the WAL of database NAME from DIR (repeatable). Default: "
            "where its OPTIONS file and MANIFEST say.",
            true},
           kMetricsOption,
       }});
}

std::vector<OptionSpec> RefreshOptionSpecs() {
  return {
      Row<Pull>(
          "visibility", Group::kRefresh,
          "When readers see the new data: all (everything at once, after "
          "staging) "
          "or swap (a new database replaces the directory while nothing has it "
          "open).",
          [](auto& a) -> auto& { return a.options.visibility; },
          ChoiceValue<Visibility>("all|swap",
                                  {Visibility::kAll, Visibility::kSwap})),
      Row<Pull>(
          "compare", Group::kRefresh,
          "How all finds what changed: files (by files and WALs of both sides, "
          "and "
          "comparison where these prove nothing: finds every write, but no "
          "bytes "
          "that a disk changed) or digest (compare everything on both sides).",
          [](auto& a) -> auto& { return a.options.compare; },
          ChoiceValue<CompareMode>(
              "files|digest", {CompareMode::kFiles, CompareMode::kDigest})),
      Row<Pull>(
          "drop-missing", Group::kRefresh,
          "Drop column families that the source no longer has. With all; not "
          "with "
          "--cf, --begin or --end.",
          [](auto& a) -> auto& { return a.options.drop_missing; }),
      {"compact", "auto|none", Group::kRefresh,
       "Merge at the end a part of what refreshes left above the data (auto), "
       "or nothing (none). With all. Default: auto."},
      Row<Pull>(
          "min-free", Group::kRefresh,
          "Keep N% of TARGET_DIR's file system free: wait up to a minute for "
          "room "
          "before each chunk, then fail with NO_SPACE.",
          [](auto& a) -> auto& { return a.options.min_free_percent; },
          PercentValue()),
      Row<Pull>(
          "before-swap", Group::kRefresh,
          "Run CMD with /bin/sh before the swap. It must stop whatever has "
          "TARGET_DIR open.",
          [](auto& a) -> auto& { return a.before_swap; },
          TextValue("CMD", "a command")),
      Row<Pull>(
          "after-swap", Group::kRefresh,
          "Run CMD with /bin/sh after the swap, to start that again. It runs "
          "once "
          "whenever --before-swap was started, also if the swap failed.",
          [](auto& a) -> auto& { return a.after_swap; },
          TextValue("CMD", "a command")),
      Row<Pull>(
          "always-swap", Group::kRefresh,
          "Swap also when TARGET_DIR holds what the source holds. With "
          "--method "
          "clone and swap. Default: leave it as it is, and run no command.",
          [](auto& a) -> auto& { return a.options.always_swap; }),
      Row<Pull>(
          "adopt", Group::kRefresh,
          "Accept a TARGET_DIR that was made from another source, or not by "
          "sstferry.",
          [](auto& a) -> auto& { return a.options.adopt; }),
      {"source-id", "ID", Group::kRefresh,
       "Identify a source that has no IDENTITY file as ID, so that the next "
       "refresh knows it again."},
      Row<Pull>(
          "delete-rate", Group::kRefresh,
          "Delete the replaced database's files at BYTES per second. With "
          "swap.",
          [](auto& a) -> auto& { return a.options.delete_rate_bytes_per_sec; },
          BytesValue()),
  };
}

std::vector<OptionSpec> SeedOptionSpecs() {
  return Joined({{
      Row<Pull>("mode", Group::kCommon,
       "seed fills a TARGET_DIR that is empty or missing; refresh updates a "
       "replica of the same source, or seeds it (see --help=refresh).",
       [](auto& a) -> auto& { return a.options.mode; },
       ChoiceValue<PullMode>("seed|refresh",
                             {PullMode::kSeed, PullMode::kRefresh})),
      Row<Pull>("method", Group::kCommon,
       "How data moves into a new database: ingest (as sorted chunks, "
       "compacted on arrival), clone (the source's files as they are; not with "
       "--cf, --begin, --end) or auto (ingest, but clone what chunks cannot "
       "hold and what is compacted already). With seed and swap.",
       [](auto& a) -> auto& { return a.options.method; },
       ChoiceValue<PullMethod>("auto|ingest|clone",
                               {PullMethod::kAuto, PullMethod::kIngest,
                                PullMethod::kClone})),
      Row<Pull>("replace", Group::kCommon,
       "Replace a TARGET_DIR that is not empty; the old one stays as "
       "TARGET_DIR.old-TRANSFER_ID. Default: refuse.",
       [](auto& a) -> auto& { return a.options.replace; }),
      Row<Pull>("restart", Group::kCommon,
       "Discard an unfinished pull of TARGET_DIR and start over. Default: "
       "resume it.",
       [](auto& a) -> auto& { return a.options.restart; }),
      Row<Pull>("verify", Group::kCommon,
       "Read the finished database back and compare it with the source's "
       "snapshot before the final rename.",
       [](auto& a) -> auto& { return a.options.verify; }),
      {"snapshot", "new|latest|ID", Group::kAdvanced,
       "Which point in time to pull: new (that of now), latest (the one that "
       "other pulls with latest got within the source's --share-snapshots), or "
       "that of transfer ID. Default: new."},
      kFamilyOption,
      kBeginOption,
      kEndOption,
      Row<Pull>("lanes", Group::kCommon,
       "Move N parts at the same time.",
       [](auto& a) -> auto& { return a.options.lanes; },
       NumberValue(1, kMaxLanes)),
      Row<Pull>("max-rate", Group::kCommon,
       "Write at most BYTES of SST data per second. SIGHUP reads it again "
       "from --config.",
       [](auto& a) -> auto& { return a.options.max_rate_bytes_per_sec; },
       BytesValue("no limit")),
      {"compress", "auto|none|zstd[:LEVEL]", Group::kCommon,
       "Compress on the wire: auto (while the link is the bottleneck), none, "
       "or zstd (always; LEVEL 1 to 19, default 1). Default: auto."},
      }, TlsRows<Pull>(), {
      StallRow<Pull>(),
      Row<Pull>("wait-for-source", Group::kNetwork,
       "Wait this long for the source's first answer, also when a pull is "
       "resumed, then fail with DEAD_PEER.",
       [](auto& a) -> auto& { return a.options.wait_for_source; },
       DurationValue("10s")),
      Row<Pull>("retry-for", Group::kNetwork,
       "Reconnect after a lost connection until there was no progress for this "
       "long, then fail with DEAD_PEER.",
       [](auto& a) -> auto& { return a.options.retry_for; }, DurationValue()),
      Row<Pull>("deadline", Group::kLimits,
       "Fail with DEADLINE when the whole pull takes longer.",
       [](auto& a) -> auto& { return a.options.deadline; },
       DurationValue("none")),
      TtlRow<Pull>(),
      Row<Pull>("max-age", Group::kLimits,
       "Discard an unfinished pull whose snapshot is older, and start over.",
       [](auto& a) -> auto& { return a.options.max_age; },
       DurationValue("resume it, however old")),
      Row<Pull>("chunk-bytes", Group::kAdvanced,
       "Size of an SST chunk.",
       [](auto& a) -> auto& { return a.options.chunk_bytes; },
       BytesValue("", nullptr, kMinChunkBytes, kMaxChunkBytes)),
      Row<Pull>("reuse", Group::kAdvanced,
       "Link files of the source that the database in DIR has already, on the "
       "file system of TARGET_DIR. With --method clone. Default: TARGET_DIR, "
       "where it is to be replaced.",
       [](auto& a) -> auto& { return a.options.reuse_dir; }, PathValue("DIR")),
      Row<Pull>("keep-identity", Group::kAdvanced,
       "Give a clone the source's database id, for a clone that replaces its "
       "source. Default: an id of its own.",
       [](auto& a) -> auto& { return a.options.keep_identity; }),
      Row<Pull>("other-files", Group::kAdvanced,
       "What to do with the application's own files in the source's directory, "
       "such as a configuration: copy (those that a new directory may get, 16 "
       "MiB each and 64 MiB in all) or ignore.",
       [](auto& a) -> auto& { return a.options.other_files; },
       ChoiceValue<OtherFiles>("copy|ignore",
                               {OtherFiles::kCopy, OtherFiles::kIgnore})),
      Row<Pull>("durability", Group::kAdvanced,
       "When to sync: chunk (each chunk before it is recorded) or none (once, "
       "before the final rename).",
       [](auto& a) -> auto& { return a.options.durability; },
       ChoiceValue<Durability>("chunk|none",
                               {Durability::kChunk, Durability::kNone})),
      Row<Pull>("for-rocksdb", Group::kAdvanced,
       "Release of RocksDB of the application that will open TARGET_DIR, such "
       "as 8.11.4: write and clone only what it reads. Default: the one that "
       "last opened TARGET_DIR, for a new directory that of the source's "
       "application.",
       [](auto& a) -> auto& { return a.options.for_rocksdb; }, ReleaseValue()),
      SnapshotDirRow<Pull>(),
      WalDirRow<Pull>(),
      {"owner", "USER[:GROUP]", Group::kAdvanced,
       "Owner of the new database, by name or id. Default: that of the "
       "TARGET_DIR that it replaces or fills, else the user who runs pull."},
      {"permissions", "OCTAL", Group::kAdvanced,
       "Permissions of the new TARGET_DIR; its files get them without the "
       "execute bits. Default: those of the TARGET_DIR that it replaces or "
       "fills, else 0755 less the umask."},
      kMetricsOption,
      {"metrics-file", "FILE.prom", Group::kOutput,
       "Write metrics to FILE.prom at the end, also of a pull that fails, for "
       "node_exporter's textfile collector. Default: none."},
  }});
}

std::vector<OptionSpec> PullOptionSpecs() {
  return Joined({SeedOptionSpecs(), RefreshOptionSpecs()});
}

// The options of pull that a plan depends on, or, for `listed` false, the
// others, which it takes so that the command line of a pull can be planned.
std::vector<OptionSpec> PlanOptionSpecs(bool listed) {
  static const std::set<std::string> for_plan = {
      "adopt",          "always-swap",    "before-swap",    "begin",
      "cf",             "chunk-bytes",    "compare",        "deadline",
      "drop-missing",   "end",            "for-rocksdb",    "keep-identity",
      "lanes",          "max-age",        "method",         "min-free",
      "mode",           "other-files",    "owner",          "permissions",
      "replace",        "restart",        "reuse",          "snapshot",
      "snapshot-dir",   "source-id",      "stall-timeout",  "tls-ca",
      "tls-cert",       "tls-key",        "visibility",     "wal-dir"};
  std::vector<OptionSpec> specs;
  if (listed) {
    specs.push_back(Row<Pull>(
        "summary", Group::kCommon,
        "Print totals only. Default: also a line for each column family and "
        "for each file or key interval.",
        [](auto& a) -> auto& { return a.summary_only; }));
  }
  for (const OptionSpec& spec : PullOptionSpecs()) {
    if ((for_plan.count(spec.name) > 0) == listed) {
      specs.push_back(spec);
    }
  }
  return specs;
}

std::vector<OptionSpec> VerifyOptionSpecs() {
  return Joined({{
      Row<Verify>("show", Group::kCommon,
       "List the first N differences; all are counted.",
       [](auto& a) -> auto& { return a.options.max_differences_shown; },
       NumberValue(0, kMaxDifferencesShown)),
      {"snapshot", "ID", Group::kCommon,
       "Read LEFT from the snapshot that it retains for transfer ID; the "
       "snapshot stays retained. Default: LEFT as it is now."},
      kFamilyOption,
      kBeginOption,
      kEndOption,
      Row<Verify>("lanes", Group::kCommon,
       "Compare N parts at the same time.",
       [](auto& a) -> auto& { return a.options.lanes; },
       NumberValue(1, kMaxLanes)),
      }, TlsRows<Verify>(), {
      StallRow<Verify>(),
      SnapshotDirRow<Verify>(),
      WalDirRow<Verify>(),
  }});
}

}  // namespace

const std::vector<OptionSpec>& CommonOptions() {
  using Common = CommonArguments;
  static const std::vector<OptionSpec> options = {
      Row<Common>("json", Group::kCommon,
       "Print one JSON object, on every exit but 2.",
       [](auto& a) -> auto& { return a.json; }),
      {"config", "FILE", Group::kAdvanced,
       "Read options from the TOML file FILE, operands by their names in lower "
       "case. The command line wins."},
      Row<Common>("progress", Group::kOutput,
       "Progress on standard error: auto (one redrawn line on a terminal, "
       "otherwise a line per interval), always (redrawn), never, or json (an "
       "object per interval).",
       [](auto& a) -> auto& { return a.progress; },
       ChoiceValue<ProgressMode>("auto|always|never|json",
                                 {ProgressMode::kAuto, ProgressMode::kAlways,
                                  ProgressMode::kNever, ProgressMode::kJson})),
      Row<Common>("progress-interval", Group::kOutput,
       "Time between progress lines that are not redrawn.",
       [](auto& a) -> auto& { return a.progress_interval; }, DurationValue()),
      Row<Common>("log-level", Group::kOutput,
       "Least level of the log lines on standard error.",
       [](auto& a) -> auto& { return a.log_level; },
       ChoiceValue<LogLevel>("error|warning|info|debug",
                             {LogLevel::kError, LogLevel::kWarning,
                              LogLevel::kInfo, LogLevel::kDebug})),
      Row<Common>("log-format", Group::kOutput,
       "Log lines as text, or as one JSON object per line: time, level, "
       "transfer_id, message.",
       [](auto& a) -> auto& { return a.log_format; },
       ChoiceValue<LogFormat>("text|json",
                              {LogFormat::kText, LogFormat::kJson})),
      {"help", "[=GROUP]", Group::kCommon,
       "Show the common options, a GROUP of the others, or all (--help=all)."},
      {"version", nullptr, Group::kOutput,
       "Print the versions of sstferry, RocksDB, zstd and the protocol, and "
       "exit."},
  };
  return options;
}

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"serve",
       "--db [NAME=]DIR [--db ...] [options]",
       "Serve databases to pull, plan and verify",
       "Serves databases over the network. A database may be closed, a "
       "checkpoint, or open and written by another process; serve never writes "
       "to it. Checks and lists the databases, then prints \"listening on "
       "ADDRESS\" on standard output. SIGINT or SIGTERM ends it with exit "
       "code 0.",
       ServeOptionSpecs(),
       {},
       {{"Serve one database to one account of this machine, for instance for "
         "an "
         "ssh tunnel",
         "sstferry serve --db users=/data/users --listen "
         "unix:/run/sstferry-serve/socket --allow-uid 1000"},
        {"Serve two databases to the network over TLS",
         "sstferry serve --db /data/users --db /data/orders --listen "
         "0.0.0.0:7420 --tls-cert source.pem --tls-key source.key --tls-ca "
         "ca.pem"}}},
      {"pull",
       "SOURCE TARGET_DIR [options]",
       "Copy a database into a directory, or update a replica",
       "Copies a snapshot of the database SOURCE into TARGET_DIR, which "
       "appears "
       "whole or not at all. The same command resumes an interrupted pull. "
       "Runs at the target. SOURCE is a directory, sst://HOST[:PORT]/NAME or "
       "unix:/PATH:NAME.",
       PullOptionSpecs(),
       {"source", "target"},
       {{"Seed a replica and compare it with the source's snapshot",
         "sstferry pull sst://db1/users /data/users --verify"},
        {"Update a replica by a new database that replaces the directory",
         "sstferry pull sst://db1/users /data/users --mode refresh "
         "--visibility swap --before-swap 'systemctl stop app' --after-swap "
         "'systemctl start app'"},
        {"Copy one column family of a local database at 50 MB per second",
         "sstferry pull /data/users /copy/users --cf default --max-rate "
         "50M"}}},
      {"verify",
       "LEFT RIGHT [options]",
       "Compare two databases entry by entry",
       "Compares the databases LEFT and RIGHT entry by entry, each as it is at "
       "one moment. Ends with DIFFERENT if they differ. Ends with "
       "CHANGED_SINCE if one side is a directory that was pulled from the "
       "other at an older sequence.",
       VerifyOptionSpecs(),
       {"left", "right"},
       {{"Compare a replica with its source",
         "sstferry verify sst://db1/users /data/users"}}},
      {"plan",
       "SOURCE [TARGET_DIR] [options]",
       "Show what pull would do, and why",
       "Runs the steps of a pull with the same options up to the first name "
       "that it would make, and changes nothing. Prints what the pull would "
       "move, and why: column families, parts, sizes, disk space. Ends with "
       "the status and the exit code with which the pull would end before it "
       "moves data. Takes all options of pull; those that change nothing here "
       "are not listed. If SOURCE is sst://HOST[:PORT] or unix:/PATH "
       "without a NAME, lists the databases that are served there.",
       PlanOptionSpecs(true),
       {"source", "target"},
       {{"Show what a pull would move, and what would stop it",
         "sstferry plan sst://db1/users /data/users --summary"},
        {"List the names that a host serves", "sstferry plan sst://db1"}},
       PlanOptionSpecs(false)},
      {"ls",
       "SOURCE [options]",
       "List the databases that a server serves",
       "Lists the databases that this side may read, with their size, sequence "
       "number and age (the time since they were last written to). Size and "
       "sequence are as of the last flush: WALs may hold more. SOURCE is "
       "sst://HOST[:PORT] or unix:/PATH, or one database there.",
       Joined({TlsRows<StatusArguments>(), {StallRow<StatusArguments>()}}),
       {"source"},
       {{"List what a host serves", "sstferry ls sst://db1"}}},
      {"status",
       "SOURCE|TARGET_DIR [options]",
       "Show retained snapshots and unfinished pulls",
       "Shows which snapshots a database retains for pulls that may resume "
       "(sst://HOST[:PORT] or unix:/PATH: those of all databases that this "
       "side "
       "may read), "
       "and how far the pull into a directory has come, with the command to "
       "run next. Changes nothing.",
       Joined(
           {TlsRows<StatusArguments>(),
            {StallRow<StatusArguments>(), SnapshotDirRow<StatusArguments>()}}),
       {"place"},
       {{"Show how far a pull has come", "sstferry status /data/users"},
        {"Show what a host retains", "sstferry status sst://db1"}}},
      {"release",
       "SOURCE_DIR ID [options]",
       "Release a retained snapshot",
       "Releases the snapshot that the database directory SOURCE_DIR retains "
       "for transfer ID, as status shows it (8 digits or more). The pull that "
       "it was retained for then starts over. Ends with BUSY while a target is "
       "connected.",
       {SnapshotDirRow<ReleaseArguments>()},
       {"source", "id"},
       {{"Release the snapshot of an abandoned pull",
         "sstferry release /data/users 3f9a1c22"}}},
  };
  return commands;
}

const Command* FindCommand(const std::string& name) {
  for (const Command& command : Commands()) {
    if (name == command.name) {
      return &command;
    }
  }
  return nullptr;
}

std::vector<OptionSpec> AllOptions(const Command& command) {
  std::vector<OptionSpec> specs = command.options;
  specs.insert(specs.end(), CommonOptions().begin(), CommonOptions().end());
  return specs;
}

std::vector<OptionSpec> ReadableOptions(const Command& command) {
  std::vector<OptionSpec> specs = AllOptions(command);
  specs.insert(specs.end(), command.unlisted.begin(), command.unlisted.end());
  return specs;
}

std::string CommandNames() {
  std::string names;
  for (size_t i = 0; i < Commands().size(); ++i) {
    names += i == 0                        ? ""
             : i + 1 < Commands().size() ? ", "
                                           : " or ";
    names += Commands()[i].name;
  }
  return names;
}

}  // namespace sstferry
