// Defines the tables of all commands and their options. The file is long,
// because a reader compares the tables with each other.
#include "tools/sstferry/commands.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include "format/limits.h"
#include "sstferry/fleet.h"
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

OptionSpec MetricsFileRow(const char* help) {
  return {"metrics-file", "FILE.prom", Group::kOutput, help};
}

// Makes the rows of --on-success and --on-failure, whose commands main() runs
// at the end of a job.
std::vector<OptionSpec> EndCommandRows() {
  std::vector<OptionSpec> rows = {
      {"on-success", "CMD", Group::kOutput,
       "Run CMD with /bin/sh once the job has ended with exit code 0. "
       "SSTFERRY_SUMMARY names a file with the JSON object of the job. If CMD "
       "fails, the exit code is 1."},
      {"on-failure", "CMD", Group::kOutput,
       "Run CMD with /bin/sh once the job has ended with an exit code other "
       "than 0 and 2, also after SIGTERM and --deadline. SSTFERRY_EXIT_CODE "
       "and SSTFERRY_SUMMARY are set. CMD does not change the exit code."}};
  for (OptionSpec& row : rows) {
    row.read = [name = row.name](const std::string& text, void*) {
      std::string unused;
      return TextValue("CMD", "a command")
          .Read(std::string("--") + name, text, &unused);
    };
  }
  return rows;
}

// Makes the rows of --all and of the options that only --all uses.
template <typename Arguments>
std::vector<OptionSpec> AllRows(const char* help) {
  return {Row<Arguments>("all", Group::kAdvanced, help,
                         [](auto& a) -> auto& { return a.all; }),
          Row<Arguments>("jobs", Group::kAdvanced,
                         "With --all: process N databases at once.",
                         [](auto& a) -> auto& { return a.jobs; },
                         NumberValue(1, kMaxFleetJobs))};
}

// Makes the rows of the options that publish metrics. `file_help` is the help
// text of --metrics-file.
template <typename Arguments>
std::vector<OptionSpec> MetricsRows(const char* file_help) {
  return {
      {"metrics", "HOST:PORT", Group::kOutput,
       "Serve metrics for Prometheus at http://HOST:PORT/metrics (port 0: a "
       "free port). At an address other than loopback, serves https with the "
       "certificates of --tls. Default: none."},
      Row<Arguments>(
          "metrics-insecure", Group::kOutput,
          "Allow --metrics at an address other than loopback without TLS. "
          "Anyone who reaches the port can then read names and sizes of the "
          "databases.",
          [](auto& a) -> auto& { return a.metrics.insecure; }),
      MetricsFileRow(file_help),
  };
}

template <typename Arguments>
SourceAccess& AccessOf(Arguments& arguments) {
  return arguments.options;
}
SourceAccess& AccessOf(FollowArguments& arguments) {
  return arguments.options.pull;
}

template <typename Arguments>
TlsFiles& TlsOf(Arguments& arguments) {
  return AccessOf(arguments).tls;
}
TlsFiles& TlsOf(Serve& arguments) { return arguments.tls; }

template <typename Arguments>
std::vector<OptionSpec> TlsRows() {
  return {
      {"tls", "DIR", Group::kCommon,
       "Use TLS 1.3 for every connection, with DIR/cert.pem (and its "
       "intermediates), DIR/key.pem and DIR/ca.pem. --tls-cert, --tls-key and "
       "--tls-ca name other files. Default: plain TCP."},
      Row<Arguments>(
          "tls-cert", Group::kHidden,
          "Certificate of this side with its intermediates, PEM.",
          [](auto& a) -> auto& { return TlsOf(a).cert; }, PathValue("FILE")),
      Row<Arguments>(
          "tls-key", Group::kHidden,
          "Private key of --tls-cert, PEM, without a passphrase.",
          [](auto& a) -> auto& { return TlsOf(a).key; }, PathValue("FILE")),
      Row<Arguments>(
          "tls-ca", Group::kHidden,
          "CA certificates that may sign the other side's certificate, PEM.",
          [](auto& a) -> auto& { return TlsOf(a).ca; }, PathValue("FILE")),
  };
}

// Makes the rows of the options for a source on a machine that is reached by
// ssh.
template <typename Arguments>
std::vector<OptionSpec> SshRows() {
  return {
      Row<Arguments>(
          "ssh-command", Group::kNetwork,
          "Run CMD with /bin/sh instead of ssh, followed by ssh's arguments, "
          "such as 'ssh -i KEY'. For HOST:/DIR and ssh://. Default: ssh.",
          [](auto& a) -> auto& { return AccessOf(a).ssh.ssh; },
          TextValue("CMD", "a command")),
      Row<Arguments>(
          "remote-command", Group::kNetwork,
          "Run CMD on that machine instead of sstferry, such as 'sudo -u app "
          "sstferry'. For HOST:/DIR and ssh://. Default: sstferry.",
          [](auto& a) -> auto& { return AccessOf(a).ssh.remote; },
          TextValue("CMD", "a command")),
  };
}

// Makes the row of --timeout for commands that end at a timeout and do not
// connect again.
template <typename Arguments>
OptionSpec TimeoutRow() {
  return Row<Arguments>(
      "timeout", Group::kNetwork,
      "Fail with TOO_SLOW after waiting this long for a peer that is "
      "connected but does nothing. Raise it for a --max-rate below 50K per "
      "lane.",
      [](auto& a) -> auto& { return a.options.timeouts.stall; },
      DurationValue());
}

template <typename Arguments>
OptionSpec SnapshotDirRow() {
  return Row<Arguments>(
      "snapshot-dir", Group::kAdvanced,
      "Make the private snapshot of a source directory in DIR, which must be "
      "on the source's file system unless that is read-only. Default: beside "
      "the source; in TMPDIR if its file system is read-only.",
      [](auto& a) -> auto& { return AccessOf(a).snapshot_dir; },
      PathValue("DIR"));
}

template <typename Arguments>
OptionSpec WalDirRow() {
  return Row<Arguments>(
      "wal-dir", Group::kAdvanced,
      "Read the WAL of a source directory from DIR. Default: where its OPTIONS "
      "file and MANIFEST say.",
      [](auto& a) -> auto& { return AccessOf(a).wal_dir; }, PathValue("DIR"));
}

template <typename Arguments>
OptionSpec TtlRow() {
  return Row<Arguments>(
      "snapshot-ttl", Group::kLimits,
      "Retain the snapshot of an interrupted pull this long, counted while no "
      "target is connected.",
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
            "Serve the database directory DIR as NAME, 1 to 240 characters of "
            "A-Z a-z 0-9 . _ - (repeatable; the first one may be given without "
            "--db). Default NAME: DIR's last component.",
            true},
           Row<Serve>(
               "db-dir", Group::kCommon,
               "Serve every database below DIR by its path, up to 8 "
               "directories deep, but not through links. DIR is searched again "
               "when a target asks, and on SIGHUP.",
               [](auto& a) -> auto& { return a.options.tree.directory; },
               PathValue("DIR")),
           Row<Serve>(
               "listen", Group::kCommon,
               "Accept connections at HOST:PORT (port 0: a free port), or at "
               "the Unix socket unix:/PATH, where only accounts of --allow-uid "
               "may connect.",
               [](auto& a) -> auto& { return a.listen; }, AddressValue()),
           Row<Serve>(
               "stdio", Group::kAdvanced,
               "Serve only the database directory DIR, or the databases below "
               "it, over standard input and output. Pulls run this through "
               "ssh; in a ForceCommand, DIR limits what the account may read. "
               "Not with --db, --listen, TLS, --once or --json.",
               [](auto& a) -> auto& { return a.stdio_directory; },
               PathValue("DIR")),
           Row<Serve>(
               "max-rate", Group::kCommon,
               "Send at most BYTES per second, in all transfers together. "
               "SIGHUP reads it again from --config. With none, the source "
               "also does not slow down for its applications.",
               [](auto& a) -> auto& { return a.options; }, RateValue()),
           Row<Serve>(
               "once", Group::kAdvanced,
               "Exit after the first transfer, with that transfer's exit code.",
               [](auto& a) -> auto& { return a.once; }),
           Row<Serve>(
               "allow-missing", Group::kLimits,
               "Start even if a database is missing or cannot be read now. "
               "Default: fail.",
               [](auto& a) -> auto& { return a.allow_missing; }),
           Row<Serve>(
               "max-lanes", Group::kLimits,
               "Allow N lanes per transfer; a pull that asks for more gets N.",
               [](auto& a) -> auto& { return a.options.max_lanes; },
               NumberValue(1, kMaxLanes)),
           Row<Serve>(
               "max-transfers", Group::kLimits,
               "Serve N transfers at once; further targets wait and ask "
               "again.",
               [](auto& a) -> auto& { return a.options.max_transfers; },
               NumberValue(1, kMaxConnections)),
           Row<Serve>(
               "share-snapshots", Group::kLimits,
               "Keep the snapshot of a pull with --snapshot latest this long, "
               "for all such pulls.",
               [](auto& a) -> auto& { return a.options.share_snapshots; },
               LeaseValue("each pull gets its own")),
           Row<Serve>(
               "spool", Group::kLimits,
               "Keep up to BYTES in total of rebuilt chunks beside the shared "
               "snapshots, so that each chunk is built once for all targets.",
               [](auto& a) -> auto& { return a.options.spool_bytes; },
               BytesValue("", "build chunks for each target")),
           Row<Serve>(
               "max-held", Group::kLimits,
               "For standbys that lag, keep up to BYTES of each database's "
               "WALs that RocksDB has deleted. A standby that needs more takes "
               "a cut.",
               [](auto& a) -> auto& { return a.options.max_held_bytes; },
               BytesValue()),
           TtlRow<Serve>(),
           Row<Serve>(
               "min-free", Group::kLimits,
               "Release snapshots while less than N% of their file system is "
               "free: first idle ones, the oldest first, then the largest in "
               "use.",
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
            "socket, besides root and the user that runs serve (repeatable).",
            true},
           {"allow", "NAME=SUBJECT", Group::kCommon,
            "Serve database NAME (* with --db-dir: all) only to certificates "
            "with SUBJECT as common name or as DNS, IP, URI or e-mail name "
            "(repeatable); SUBJECT * allows every certificate that --tls-ca "
            "accepts. Needs TLS. Default: *, with a warning.",
            true},
           Row<Serve>(
               "insecure", Group::kNetwork,
               "Allow --listen at an address other than loopback without TLS. "
               "Anyone who reaches the port can then read the databases.",
               [](auto& a) -> auto& { return a.insecure; }),
           TimeoutRow<Serve>(),
           Row<Serve>(
               "snapshot-dir", Group::kAdvanced,
               "Make private snapshots in DIR, which must be on the databases' "
               "file system unless that is read-only. Default: beside each "
               "database; in TMPDIR if its file system is read-only.",
               [](auto& a) -> auto& { return a.options.snapshot_dir; },
               PathValue("DIR")),
           {"wal-dir", "NAME=DIR", Group::kAdvanced,
            "Read the WAL of database NAME from DIR (repeatable). Default: "
            "where its OPTIONS file and MANIFEST say.",
            true},
       },
       MetricsRows<Serve>(
           "Write metrics to FILE.prom every 15 seconds and at the end.")});
}

// Makes the rows of the options for an S3 server, such as --endpoint.
template <typename Arguments>
std::vector<OptionSpec> StoreRows() {
  return {
      Row<Arguments>(
          "endpoint", Group::kNetwork,
          "Use the S3 server at URL, https://HOST[:PORT]. Default: Amazon's.",
          [](auto& a) -> auto& { return a.options.store.endpoint; },
          TextValue("URL", "a URL")),
      Row<Arguments>(
          "region", Group::kNetwork,
          "Sign for the region NAME. Default: AWS_REGION, the profile's or "
          "us-east-1.",
          [](auto& a) -> auto& { return a.options.store.region; },
          TextValue("NAME", "the name of a region")),
      Row<Arguments>(
          "ca-file", Group::kNetwork,
          "Trust the CA certificates of FILE, PEM, for the S3 server. Default: "
          "the system's.",
          [](auto& a) -> auto& { return a.options.store.ca_file; },
          PathValue("FILE")),
      Row<Arguments>(
          "credentials-command", Group::kNetwork,
          "Take the credentials that CMD prints as JSON, such as 'aws "
          "configure export-credentials'.",
          [](auto& a) -> auto& { return a.options.store.credentials_command; },
          TextValue("CMD", "a command")),
      Row<Arguments>(
          "key-file", Group::kNetwork,
          "Seal sets, and the log of a follower, with the key in FILE (64 hex "
          "digits), and accept only those that are sealed with it.",
          [](auto& a) -> auto& { return a.options.store.key_file; },
          PathValue("FILE")),
  };
}

OptionSpec PlanSummaryRow() {
  return Row<Pull>(
      "summary", Group::kCommon,
      "Print totals only. Default: also a line for each column family and for "
      "the first 40 files or key intervals, unless files are cloned.",
      [](auto& a) -> auto& { return a.summary_only; });
}

// Bits for the commands that have an option (JobOption::jobs).
constexpr int kOfPull = 1;
constexpr int kOfRefresh = 2;
constexpr int kOfSwap = 4;
constexpr uint32_t kMaxKeptOld = 1000;
constexpr int kAnyJob = kOfPull | kOfRefresh | kOfSwap;

struct JobOption {
  int jobs;
  OptionSpec spec;
};

std::vector<JobOption> ForAll(const std::vector<OptionSpec>& specs) {
  std::vector<JobOption> options;
  for (const OptionSpec& spec : specs) {
    options.push_back({kAnyJob, spec});
  }
  return options;
}

// Returns the options of pull, refresh and swap, in the order of help.
const std::vector<JobOption>& JobOptions() {
  static const std::vector<JobOption> options = [] {
    std::vector<JobOption> rows = {
        {kAnyJob,
         Row<Pull>(
             "method", Group::kCommon,
             "How data moves: ingest (entries, as sorted chunks; refresh: in "
             "place), clone (the source's files) or auto (clone where it is "
             "possible; a replica keeps its method).",
             [](auto& a) -> auto& { return a.options.method; },
             ChoiceValue<PullMethod>("auto|ingest|clone",
                                     {PullMethod::kAuto, PullMethod::kIngest,
                                      PullMethod::kClone}))},
        {kOfRefresh,
         Row<Pull>(
             "drop-missing", Group::kCommon,
             "In place: drop column families that the source no longer has. "
             "Not with --cf, --begin or --end.",
             [](auto& a) -> auto& { return a.options.drop_missing; })},
        {kOfSwap,
         Row<Pull>(
             "before-swap", Group::kCommon,
             "Run CMD with /bin/sh before the swap. It must stop whatever has "
             "TARGET_DIR open.",
             [](auto& a) -> auto& { return a.before_swap; },
             TextValue("CMD", "a command"))},
        {kOfSwap,
         Row<Pull>(
             "after-swap", Group::kCommon,
             "Run CMD with /bin/sh after the swap, to start the application "
             "again. It runs if --before-swap was started, even if the swap "
             "failed.",
             [](auto& a) -> auto& { return a.after_swap; },
             TextValue("CMD", "a command"))},
        {kOfRefresh | kOfSwap,
         AdoptRow<Pull>(
             Group::kCommon,
             "Accept a TARGET_DIR that sstferry did not make, or made from "
             "another source or with a smaller selection than now. Not in a "
             "config file.")},
        {kAnyJob,
         Row<Pull>(
             "verify", Group::kCommon,
             "Read the replica back and compare it with the source's snapshot, "
             "before a new directory gets its name.",
             [](auto& a) -> auto& { return a.options.verify; })},
        {kAnyJob, kFamilyOption},
        {kAnyJob, kBeginOption},
        {kAnyJob, kEndOption},
        {kAnyJob, Row<Pull>(
                      "lanes", Group::kLimits, "Move N parts at the same time.",
                      [](auto& a) -> auto& { return a.options.lanes; },
                      NumberValue(1, kMaxLanes))},
        {kAnyJob,
         Row<Pull>(
             "max-rate", Group::kCommon,
             "Write at most BYTES of SST data per second; SIGHUP reads it "
             "again. With none, the source also does not slow down for its "
             "application.",
             [](auto& a) -> auto& { return a.options; }, RateValue())},
        {kAnyJob,
         {"compress", "auto|none|zstd[:LEVEL]", Group::kNetwork,
          "Compress on the wire: auto (while the link is the bottleneck), "
          "none, "
          "or zstd (always; LEVEL 1 to 19, default 1). Default: auto."}},
        {kAnyJob,
         {"timeout", "DURATION", Group::kNetwork,
          "Give up after waiting this long for a source that cannot be reached "
          "(DEAD_PEER) or does nothing (TOO_SLOW). Default: 10s for its first "
          "answer, 2m while it is connected, 10m after a lost connection."}},
        {kAnyJob, Row<Pull>(
                      "deadline", Group::kLimits,
                      "Fail with DEADLINE if the whole pull takes longer than "
                      "this.",
                      [](auto& a) -> auto& { return a.options.deadline; },
                      DurationValue("none"))},
        {kAnyJob, TtlRow<Pull>()},
        {kAnyJob,
         Row<Pull>("restart", Group::kLimits,
                   "Discard an unfinished pull of TARGET_DIR. Default: resume "
                   "it.",
                   [](auto& a) -> auto& { return a.options.restart; })},
        {kAnyJob, Row<Pull>(
                      "max-age", Group::kLimits,
                      "Discard an unfinished pull whose snapshot is older than "
                      "this.",
                      [](auto& a) -> auto& { return a.options.max_age; },
                      DurationValue("resume it, however old"))},
        {kOfRefresh | kOfSwap,
         Row<Pull>(
             "min-free", Group::kLimits,
             "Keep N% of TARGET_DIR's file system free: wait up to a minute "
             "for "
             "room "
             "before each chunk, then fail with NO_SPACE.",
             [](auto& a) -> auto& { return a.options.min_free_percent; },
             PercentValue())},
        {kOfRefresh | kOfSwap,
         Row<Pull>(
             "delete-rate", Group::kLimits,
             "Delete replaced databases at BYTES per second.",
             [](auto& a) -> auto& {
               return a.options.delete_rate_bytes_per_sec;
             },
             BytesValue())},
        {kOfSwap,
         Row<Pull>(
             "keep-old", Group::kLimits,
             "Keep the N newest of the databases that swaps have replaced, as "
             "TARGET_DIR.old-DATE, and delete older ones after the swap.",
             [](auto& a) -> auto& { return a.keep_old; },
             NumberValue(0, kMaxKeptOld))},
        {kAnyJob,
         AllRows<Pull>(
             "Copy every database that SOURCE serves, or that is below SOURCE, "
             "to its path below TARGET_DIR, as of nearly one moment. pull "
             "leaves existing databases as they are. A failure does not stop "
             "the others.")[0]},
        {kAnyJob, AllRows<Pull>("")[1]},
        {kAnyJob,
         Row<Pull>(
             "delete", Group::kAdvanced,
             "With --all: if SOURCE no longer has a database, rename its "
             "replica to NAME.old-TIME, at the second run in a row without the "
             "database. Default: only report it.",
             [](auto& a) -> auto& { return a.delete_vanished; })},
        {kAnyJob,
         {"snapshot", "new|latest|ID", Group::kAdvanced,
          "Point in time to pull: new (now), latest (shared with other such "
          "pulls) or the snapshot of transfer ID. Default: new."}},
        {kAnyJob, Row<Pull>(
                      "chunk-bytes", Group::kHidden, "Size of an SST chunk.",
                      [](auto& a) -> auto& { return a.options.chunk_bytes; },
                      BytesValue("", nullptr, kMinChunkBytes, kMaxChunkBytes))},
        {kOfPull | kOfSwap,
         Row<Pull>(
             "reuse", Group::kAdvanced,
             "With --method clone: link files that the database in DIR already "
             "has; DIR must be on the file system of TARGET_DIR. Default: "
             "TARGET_DIR, if it is replaced.",
             [](auto& a) -> auto& { return a.options.reuse_dir; },
             PathValue("DIR"))},
        {kOfPull,
         Row<Pull>("if-absent", Group::kAdvanced,
                   "Exit with 0 at once if TARGET_DIR already holds a "
                   "database, for an init container.",
                   [](auto& a) -> auto& { return a.options.if_absent; })},
        {kOfPull | kOfSwap,
         Row<Pull>("keep-identity", Group::kAdvanced,
                   "Give a clone the source's database id, so that it can "
                   "replace the source. Default: an id of its own.",
                   [](auto& a) -> auto& { return a.options.keep_identity; })},
        {kOfSwap,
         Row<Pull>(
             "always-swap", Group::kAdvanced,
             "With --method clone: swap even if TARGET_DIR already holds what "
             "the source holds.",
             [](auto& a) -> auto& { return a.options.always_swap; })},
        {kOfRefresh,
         {"compact", "auto|none", Group::kAdvanced,
          "In place: afterwards compact a bounded part of the data, so that "
          "reads stay fast (auto), or nothing. Default: auto."}},
        {kAnyJob,
         {"source-id", "ID", Group::kHidden,
          "Identify a source that has no IDENTITY file as ID, so that the next "
          "refresh recognizes it."}},
        {kAnyJob,
         Row<Pull>(
             "other-files", Group::kAdvanced,
             "How to treat the application's own files in the source's "
             "directory, such as a configuration: copy (small ones) or "
             "ignore.",
             [](auto& a) -> auto& { return a.options.other_files; },
             ChoiceValue<OtherFiles>(
                 "copy|ignore", {OtherFiles::kCopy, OtherFiles::kIgnore}))},
        {kAnyJob,
         Row<Pull>(
             "durability", Group::kHidden,
             "When to sync: chunk (each chunk before it is recorded) or none "
             "(once, "
             "before the final rename).",
             [](auto& a) -> auto& { return a.options.durability; },
             ChoiceValue<Durability>("chunk|none",
                                     {Durability::kChunk, Durability::kNone}))},
        {kAnyJob,
         Row<Pull>(
             "for-rocksdb", Group::kAdvanced,
             "Write and clone only what RocksDB VERSION reads, such as 8.11.4: "
             "the version in the application that will open TARGET_DIR. "
             "Default: the version that last opened TARGET_DIR; for a new "
             "directory, the version in the source's application.",
             [](auto& a) -> auto& { return a.options.for_rocksdb; },
             ReleaseValue())},
        {kAnyJob, SnapshotDirRow<Pull>()},
        {kAnyJob, WalDirRow<Pull>()},
        {kAnyJob,
         {"owner", "USER[:GROUP]", Group::kAdvanced,
          "Owner of the new database, by name or id. Default: that of the "
          "directory that it replaces or fills, else the user who runs pull."}},
        {kAnyJob,
         {"permissions", "OCTAL", Group::kAdvanced,
          "Permissions of the new TARGET_DIR; its files get them without the "
          "execute bits. Default: those of the directory that it replaces or "
          "fills, else 0755 less the umask."}},
    };
    const char* const metrics_file =
        "Write metrics to FILE.prom at the end, even if the pull fails.";
    rows.push_back({kAnyJob, MetricsFileRow(metrics_file)});
    for (const std::vector<JobOption>& others :
         {ForAll(EndCommandRows()), ForAll(TlsRows<Pull>()),
          ForAll(SshRows<Pull>()), ForAll(StoreRows<Pull>())}) {
      rows.insert(rows.end(), others.begin(), others.end());
    }
    return rows;
  }();
  return options;
}

std::vector<OptionSpec> JobOptionSpecs(int job) {
  std::vector<OptionSpec> specs;
  for (const JobOption& option : JobOptions()) {
    if ((option.jobs & job) != 0) {
      specs.push_back(option.spec);
    }
  }
  return specs;
}

// Returns the options that help lists for plan, because they change the plan.
// plan also accepts the other options of the planned command.
std::vector<OptionSpec> PlanOptionSpecs() {
  static const std::set<std::string> for_plan = {
      "remote-command", "ssh-command", "adopt", "all", "always-swap",
      "before-swap", "jobs",
      "begin", "cf", "deadline", "drop-missing", "end",
      "for-rocksdb", "keep-identity", "lanes", "max-age", "method", "min-free",
      "other-files", "owner", "permissions", "restart", "reuse", "snapshot",
      "snapshot-dir", "timeout", "tls", "wal-dir", "endpoint", "region",
      "ca-file", "credentials-command", "key-file"};
  std::vector<OptionSpec> specs = {PlanSummaryRow()};
  for (const JobOption& option : JobOptions()) {
    if (for_plan.contains(option.spec.name)) {
      specs.push_back(option.spec);
    }
  }
  return specs;
}

std::vector<OptionSpec> VerifyOptionSpecs() {
  return Joined(
      {{
           Row<Verify>(
               "show", Group::kCommon,
               "List the first N differences; all are counted.",
               [](auto& a) -> auto& { return a.options.max_differences_shown; },
               NumberValue(0, kMaxDifferencesShown)),
           {"snapshot", "ID", Group::kCommon,
            "Read LEFT from the snapshot that it retains for transfer ID; the "
            "snapshot stays retained. Default: LEFT as it is now."},
           kFamilyOption,
           kBeginOption,
           kEndOption,
           Row<Verify>(
               "lanes", Group::kCommon, "Compare N parts at the same time.",
               [](auto& a) -> auto& { return a.options.lanes; },
               NumberValue(1, kMaxLanes)),
       },
       AllRows<Verify>(
           "Compare every database that LEFT serves, or that is below LEFT, "
           "with the database of the same name at RIGHT. Skips databases that "
           "only RIGHT has."),
       EndCommandRows(),
       TlsRows<Verify>(),
       SshRows<Verify>(),
       StoreRows<Verify>(),
       {
           TimeoutRow<Verify>(),
           SnapshotDirRow<Verify>(),
           WalDirRow<Verify>(),
       }});
}

std::vector<OptionSpec> ArchiveOptionSpecs() {
  using Archive = ArchiveArguments;
  constexpr uint64_t kMaxKept = 100'000;
  return Joined(
      {{
           Row<Archive>(
               "label", Group::kCommon,
               "push: Give the set the label TEXT.",
               [](auto& a) -> auto& { return a.options.label; },
               TextValue("TEXT", "a label")),
           AdoptRow<Archive>(
               Group::kAdvanced,
               "push: Accept a database other than that of the newest set, "
               "such as one that was rebuilt from a replica. Not in a config "
               "file."),
           Row<Archive>(
               "lanes", Group::kLimits,
               "push, check: Read and upload, or check, N files at once.",
               [](auto& a) -> auto& { return a.options.lanes; },
               NumberValue(1, kMaxLanes)),
           Row<Archive>(
               "read-data", Group::kCommon,
               "check: Read N% of all bytes, different bytes each day, and "
               "compare digests.",
               [](auto& a) -> auto& { return a.options.read_percent; },
               PercentValue(100)),
           Row<Archive>(
               "drill", Group::kCommon,
               "check: Restore the newest set beside DIR, which must be "
               "missing or empty; open it, compare it with the set, and remove "
               "it. Do the same with a random time of the log, and with the "
               "previous set and its log.",
               [](auto& a) -> auto& { return a.options.drill_dir; },
               TextValue("DIR", "a directory")),
           {"metrics-file", "FILE.prom", Group::kOutput,
            "push, check, prune: Write metrics to FILE.prom at the end, even "
            "after a failure."},
           Row<Archive>(
               "keep-last", Group::kCommon,
               "prune: Keep the newest N sets.",
               [](auto& a) -> auto& { return a.options.keep_last; },
               NumberValue(1, kMaxKept)),
           Row<Archive>(
               "keep-daily", Group::kCommon,
               "prune: Also keep the newest set of each of N days (UTC).",
               [](auto& a) -> auto& { return a.options.keep_daily; },
               NumberValue(0, kMaxKept)),
           Row<Archive>(
               "keep-weekly", Group::kCommon,
               "prune: Also keep the newest set of each of N weeks (UTC).",
               [](auto& a) -> auto& { return a.options.keep_weekly; },
               NumberValue(0, kMaxKept)),
           Row<Archive>(
               "keep-monthly", Group::kLimits,
               "prune: Also keep the newest set of each of N months (UTC).",
               [](auto& a) -> auto& { return a.options.keep_monthly; },
               NumberValue(0, kMaxKept)),
           Row<Archive>(
               "keep-log", Group::kLimits,
               "prune: Keep the log of the last DURATION, and the sets that it "
               "needs; remove the log before that. Default: keep the log after "
               "each set that stays.",
               [](auto& a) -> auto& { return a.options.keep_log; },
               GraceValue()),
           Row<Archive>(
               "dry-run", Group::kCommon,
               "prune: Change nothing; report which sets, files and bytes "
               "would be removed, and why each other set stays.",
               [](auto& a) -> auto& { return a.options.dry_run; }),
           {"from", "FROM", Group::kCommon,
            "repair: Also take bytes from FROM: a database's directory, a "
            "source elsewhere, or another archive."},
           Row<Archive>(
               "force", Group::kAdvanced,
               "remove: Remove even the last whole set.",
               [](auto& a) -> auto& { return a.options.force; }),
           Row<Archive>(
               "grace", Group::kLimits,
               "init: A prune may delete an object this long after an earlier "
               "prune marked it; at least 1h, or 24h if the store accepts "
               "requests with old signatures or without any. prune: Wait "
               "longer than init's grace. Default: 24h; for prune, the grace "
               "of init.",
               [](auto& a) -> auto& { return a.options.grace; },
               GraceValue()),
       },
       {
           {"timeout", "DURATION", Group::kNetwork,
            "Give up after waiting this long for the store, or for the source "
            "of a push (DEAD_PEER or TOO_SLOW). Default: 10s for a source's "
            "first answer, 2m while it is connected, 10m otherwise."},
           Row<Archive>(
               "deadline", Group::kLimits,
               "Fail with DEADLINE if the whole command takes longer than "
               "this.",
               [](auto& a) -> auto& { return a.options.deadline; },
               DurationValue("none")),
       },
       AllRows<Archive>(
           "push: Push every database that SOURCE serves, or that is below "
           "SOURCE, to an archive at its path below ARCHIVE. Makes missing "
           "archives."),
       EndCommandRows(),
       StoreRows<Archive>(),
       TlsRows<Archive>(),
       SshRows<Archive>(),
       {
           Row<Archive>(
               "storage-class", Group::kNetwork,
               "Store new files and segments in the class NAME, which must "
               "be readable at once. Default: the bucket's.",
               [](auto& a) -> auto& { return a.options.store.storage_class; },
               TextValue("NAME", "the name of a storage class")),
           Row<Archive>(
               "connections", Group::kNetwork,
               "Use at most N connections to the S3 server at once.",
               [](auto& a) -> auto& { return a.options.store.connections; },
               NumberValue(1, kMaxStoreConnections)),
           SnapshotDirRow<Archive>(),
           WalDirRow<Archive>(),
       }});
}

std::vector<OptionSpec> FollowOptionSpecs() {
  using Follow = FollowArguments;
  return Joined(
      {{
           Row<Follow>(
               "cut-every", Group::kCommon,
               "Take a cut, which copies the source's files that DIR lacks, at "
               "least this often. ARCHIVE: Push a set this often; if not "
               "given, once an hour.",
               [](auto& a) -> auto& { return a.options.cut_every; },
               DurationValue()),
           Row<Follow>(
               "max-replay", Group::kCommon,
               "Take a cut as soon as an application would replay more than "
               "BYTES of WALs after a promotion. ARCHIVE: Push a set as soon "
               "as the log after the newest set has more than BYTES; if not "
               "given, 4 GB.",
               [](auto& a) -> auto& { return a.options.max_replay_bytes; },
               BytesValue("", "no limit")),
           Row<Follow>(
               "max-audit", Group::kLimits,
               "After a scheduled cut, audit at most BYTES of keys and values, "
               "with 1 % of a core over time.",
               [](auto& a) -> auto& { return a.options.max_audit_bytes; },
               BytesValue("", "nothing")),
           Row<Follow>(
               "durable", Group::kCommon,
               "Sync received data this often. The data of one interval may be "
               "lost if this machine loses power together with the source.",
               [](auto& a) -> auto& { return a.options.durable; },
               DurationValue()),
           Row<Follow>(
               "view-every", Group::kAdvanced,
               "Make a database of hard links for readers this often, in "
               "DIR.view; the link DIR.view/current leads to it. Default: "
               "none.",
               [](auto& a) -> auto& { return a.options.view_every; },
               DurationValue("")),
           Row<Follow>(
               "keep-views", Group::kAdvanced,
               "Keep a view for N times --view-every after the next one has "
               "replaced it: a reader must reopen within that time.",
               [](auto& a) -> auto& { return a.options.keep_views; },
               NumberValue(1, 1000)),
           Row<Follow>(
               "segment", Group::kCommon,
               "ARCHIVE: Upload the received data as a segment this often. "
               "The data of one interval may be lost.",
               [](auto& a) -> auto& { return a.options.segment; },
               DurationValue()),
           Row<Follow>(
               "segment-bytes", Group::kLimits,
               "ARCHIVE: Upload a segment once it has BYTES.",
               [](auto& a) -> auto& { return a.options.segment_bytes; },
               BytesValue("", nullptr, 64u << 10, 128u << 20)),
           Row<Follow>(
               "label", Group::kCommon,
               "ARCHIVE: Give the sets the label TEXT.",
               [](auto& a) -> auto& { return a.options.label; },
               TextValue("TEXT", "a label")),
           AdoptRow<Follow>(
               Group::kAdvanced,
               "Make the closed database in DIR, such as a former primary, a "
               "standby, and keep the old one as DIR.sstferry-old-DATE. Of a "
               "standby: Accept another source database. "
               "ARCHIVE: Accept a database other than that of the newest set. "
               "Not in a config file."),
           Row<Follow>(
               "exact-filters", Group::kAdvanced,
               "Take a cut after each compaction of a column family with a "
               "compaction filter, so that the standby reflects what the "
               "filter removed.",
               [](auto& a) -> auto& { return a.options.exact_filters; }),
           Row<Follow>(
               "keep-identity", Group::kCommon,
               "Give the standby the database id of its source. Default: an id "
               "of its own.",
               [](auto& a) -> auto& { return a.options.pull.keep_identity; }),
           Row<Follow>(
               "lanes", Group::kLimits, "Move N files of a cut at once.",
               [](auto& a) -> auto& { return a.options.pull.lanes; },
               NumberValue(1, kMaxLanes)),
           Row<Follow>(
               "max-rate", Group::kLimits,
               "Receive at most BYTES per second, files and WALs together. "
               "With none, the source also does not slow down for its "
               "application.",
               [](auto& a) -> auto& { return a.options.pull; }, RateValue()),
           Row<Follow>(
               "max-held", Group::kLimits,
               "If SOURCE is a directory here: keep up to BYTES of its WALs "
               "that RocksDB has deleted, as serve does.",
               [](auto& a) -> auto& { return a.options.max_held_bytes; },
               BytesValue()),
           {"timeout", "DURATION", Group::kNetwork,
            "Reconnect after waiting this long for a source that is connected "
            "but does nothing. Default: 2m."},
       },
       EndCommandRows(),
       StoreRows<Follow>(),
       TlsRows<Follow>(),
       SshRows<Follow>(),
       {
           SnapshotDirRow<Follow>(),
           WalDirRow<Follow>(),
       },
       MetricsRows<Follow>(
           "Write metrics to FILE.prom every 15 seconds and at the end.")});
}

std::vector<OptionSpec> PromoteOptionSpecs() {
  using Promote = PromoteArguments;
  return {
      Row<Promote>(
          "after-source-closed", Group::kCommon,
          "Wait until the running follower reports that the source's "
          "application has closed the database, and that the follower has "
          "received everything.",
          [](auto& a) -> auto& { return a.options.after_source_closed; }),
      Row<Promote>(
          "wait", Group::kCommon,
          "Wait at most this long for --after-source-closed. Default: forever.",
          [](auto& a) -> auto& { return a.options.wait; },
          DurationValue("")),
      Row<Promote>(
          "source-is-down", Group::kCommon,
          "Promote even if no follower runs, or if the follower does not know "
          "that the source is down. Two databases that are both written to "
          "cannot be merged.",
          [](auto& a) -> auto& { return a.options.source_is_down; }),
      Row<Promote>(
          "force", Group::kAdvanced,
          "Promote the only copy even if it is damaged or differs from its "
          "source. The record of this fault stays in DIR.",
          [](auto& a) -> auto& { return a.options.force; }),
      Row<Promote>(
          "before", Group::kCommon,
          "Run CMD with /bin/sh before any change. CMD should fence the "
          "source, and must then stop a running follower. Nothing is promoted "
          "unless CMD ends with 0.",
          [](auto& a) -> auto& { return a.before; },
          TextValue("CMD", "a command")),
      Row<Promote>(
          "after", Group::kCommon,
          "Run CMD after the promotion, for example to start the application. "
          "If nothing was promoted, CMD does not run.",
          [](auto& a) -> auto& { return a.after; },
          TextValue("CMD", "a command")),
  };
}

std::vector<OptionSpec> UnitsOptionSpecs() {
  using Units = UnitsArguments;
  return {
      Row<Units>(
          "config", Group::kCommon,
          "Read the databases and their jobs from the TOML file FILE.",
          [](auto& a) -> auto& { return a.config; }, PathValue("FILE")),
      Row<Units>(
          "directory", Group::kCommon,
          "Write into DIR. Default: /etc/systemd/system, or /etc/cron.d with "
          "--cron.",
          [](auto& a) -> auto& { return a.directory; }, PathValue("DIR")),
      Row<Units>(
          "check", Group::kCommon,
          "Write nothing; verify the file, and print which units would change.",
          [](auto& a) -> auto& { return a.check; }),
      Row<Units>(
          "start", Group::kCommon,
          "Afterwards reload the units, stop removed ones, restart changed "
          "servers and followers, and enable and start sstferry.target, which "
          "wants all of them.",
          [](auto& a) -> auto& { return a.start; }),
      Row<Units>(
          "cron", Group::kAdvanced,
          "Write a file for cron instead. Its jobs have no sandbox. It "
          "restarts servers and followers within a minute, but does not retry "
          "failed jobs.",
          [](auto& a) -> auto& { return a.cron; }),
      Row<Units>(
          "kubernetes", Group::kAdvanced,
          "Write manifests instead, CronJobs and Deployments on the node that "
          "has the directories.",
          [](auto& a) -> auto& { return a.kubernetes; }),
  };
}

std::vector<OptionSpec> CertOptionSpecs() {
  return {
      {"also", "NAME", Group::kCommon,
       "Make the certificate valid for the DNS name or IP address NAME, too "
       "(repeatable).",
       true},
      Row<CertArguments>(
          "days", Group::kCommon, "Make the certificate expire after N days.",
          [](auto& a) -> auto& { return a.days; },
          NumberValue(1, kMaxCertificateDays)),
  };
}

}  // namespace

const std::vector<OptionSpec>& CommonOptions() {
  using Common = CommonArguments;
  static const std::vector<OptionSpec> options = {
      Row<Common>("json", Group::kCommon,
       "Print one JSON object, except with exit code 2.",
       [](auto& a) -> auto& { return a.json; }),
      {"config", "FILE", Group::kEvery,
       "Read options from the TOML file FILE. Operands have lower-case names "
       "there, such as target. The command line wins."},
      Row<Common>("progress", Group::kEvery,
       "Progress on standard error: auto (one redrawn line on a terminal, "
       "otherwise a line per interval), always (redrawn), never, or json (an "
       "object per interval).",
       [](auto& a) -> auto& { return a.progress; },
       ChoiceValue<ProgressMode>("auto|always|never|json",
                                 {ProgressMode::kAuto, ProgressMode::kAlways,
                                  ProgressMode::kNever, ProgressMode::kJson})),
      Row<Common>("progress-interval", Group::kHidden,
       "Time between progress lines that are not redrawn.",
       [](auto& a) -> auto& { return a.progress_interval; }, DurationValue()),
      Row<Common>("log-level", Group::kEvery,
       "Minimum level of the log lines on standard error.",
       [](auto& a) -> auto& { return a.log_level; },
       ChoiceValue<LogLevel>("error|warning|info|debug",
                             {LogLevel::kError, LogLevel::kWarning,
                              LogLevel::kInfo, LogLevel::kDebug})),
      Row<Common>("log-format", Group::kEvery,
       "Log lines as text, or as one JSON object per line: time, level, "
       "transfer_id, message.",
       [](auto& a) -> auto& { return a.log_format; },
       ChoiceValue<LogFormat>("text|json",
                              {LogFormat::kText, LogFormat::kJson})),
      {"help", "[=GROUP]", Group::kEvery,
       "Show the common options, a GROUP of the others, or all (--help=all)."},
      {"version", nullptr, Group::kEvery,
       "Print the versions of sstferry, RocksDB, zstd and the protocol, and "
       "exit."},
  };
  return options;
}

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"serve",
       "[NAME=]DIR [--db [NAME=]DIR ...] | --db-dir DIR | --stdio DIR "
       "[options]",
       "Serve databases to targets over the network",
       "Serves databases, which other processes may have open, over the "
       "network. Changes none of their files. Checks and lists them, then "
       "prints \"listening on ADDRESS\" on standard output. SIGINT or SIGTERM "
       "ends it with exit code 0.",
       ServeOptionSpecs(),
       {"db"},
       {{"Serve one database to one account of this machine, for instance for "
         "an "
         "ssh tunnel",
         "sstferry serve --db users=/data/users --listen "
         "unix:/run/sstferry-serve/socket --allow-uid 1000"},
        {"Serve two databases to the network over TLS",
         "sstferry serve --db /data/users --db /data/orders --listen "
         "0.0.0.0:7420 --tls /etc/sstferry/tls"},
        {"Serve all databases below a directory, such as those of a Kafka "
         "Streams application",
         "sstferry serve --db-dir /var/lib/kafka-streams"}}},
      {"pull",
       "SOURCE TARGET_DIR [options]",
       "Copy a database into a new directory",
       "Copies a snapshot of the database SOURCE into TARGET_DIR, which must "
       "be missing or empty and appears complete or not at all. The same "
       "command resumes an interrupted pull. HOST:/DIR and ssh:// need only "
       "ssh, and sstferry there. s3://BUCKET[/PREFIX][@SET] and DIR[@SET] are "
       "archives: pull restores the newest set, or the one that SET gives by "
       "its name, its label or a time.",
       JobOptionSpecs(kOfPull),
       {"source", "target"},
       {{"Seed a replica and compare it with the source's snapshot",
         "sstferry pull sst://db1/users /data/users --verify"},
        {"Seed a replica through ssh, without a server or a port",
         "sstferry pull app@db1:/var/lib/app/users /data/users"},
        {"Mirror all databases of a host that are not mirrored yet",
         "sstferry pull --all sst://db1 /data"},
        {"Restore the newest set of an archive",
         "sstferry pull s3://backups/users@latest /data/users"},
        {"Restore a moment of a source that an archive follows",
         "sstferry pull s3://backups/users@2026-11-24T14:03:20Z /data/users"},
        {"Restore some keys, and read only their blocks",
         "sstferry pull s3://backups/users /data/some --begin u:7 --end u:8"},
        {"Copy one column family of a local database at 50 MB per second",
         "sstferry pull /data/users /copy/users --cf default --max-rate "
         "50M"}}},
      {"refresh",
       "SOURCE TARGET_DIR [options]",
       "Update a replica that no process has open",
       "Makes the replica in TARGET_DIR current with a snapshot of SOURCE, "
       "from which it was pulled. Only what changed is sent. A clone is "
       "replaced by a new directory that links its unchanged files; a replica "
       "made of chunks is compared with the source, and changed in place. No "
       "process may have TARGET_DIR open; an application that has it open can "
       "refresh it through the library. A missing or empty TARGET_DIR is "
       "filled as pull does.",
       JobOptionSpecs(kOfRefresh),
       {"source", "target"},
       {{"Make a replica current",
         "sstferry refresh sst://db1/users /data/users"},
        {"Make a mirror of all databases of a host current, including new and "
         "vanished ones",
         "sstferry refresh --all sst://db1 /data --delete"},
        {"Read everything on both sides, and repair what differs",
         "sstferry refresh sst://db1/users /data/users --verify"}}},
      {"swap",
       "SOURCE TARGET_DIR [options]",
       "Replace a replica with a new database",
       "Builds a new database beside TARGET_DIR from a snapshot of SOURCE; "
       "only what changed is sent. Exchanges the two directories between two "
       "commands, which stop the application and start it again, and keeps the "
       "old one as TARGET_DIR.old-DATE. The application may have TARGET_DIR "
       "open until then.",
       JobOptionSpecs(kOfSwap),
       {"source", "target"},
       {{"Replace a replica that an application serves",
         "sstferry swap sst://db1/users /data/users --before-swap 'systemctl "
         "stop app' --after-swap 'systemctl start app'"},
        {"Replace a damaged replica that no process has open",
         "sstferry swap sst://db1/users /data/users"}}},
      {"verify",
       "LEFT RIGHT [options]",
       "Compare two databases entry by entry",
       "Compares the databases LEFT and RIGHT entry by entry, each as it is at "
       "one moment. Ends with DIFFERENT if they differ. Ends with "
       "CHANGED_SINCE if one side is a directory that was pulled from the "
       "other at an older sequence. Reads the objects of an archive's set, not "
       "only its record.",
       VerifyOptionSpecs(),
       {"left", "right"},
       {{"Compare a replica with its source",
         "sstferry verify sst://db1/users /data/users"}}},
      {"plan",
       "[pull|refresh|swap] SOURCE [TARGET_DIR] [options]",
       "Show what pull, refresh or swap would do, and why",
       "Prints what the command with the same options would move, and why, and "
       "changes nothing. If an error would stop the command before data moves, "
       "ends with the same exit code. Takes all options of the command; those "
       "without an effect here are not listed. Without a command, plans a "
       "pull. If SOURCE is a server without a NAME, lists its databases.",
       PlanOptionSpecs(),
       {"source", "target"},
       {{"Show what a pull would move, and what would stop it",
         "sstferry plan sst://db1/users /data/users --summary"},
        {"Show the same for a refresh",
         "sstferry plan refresh sst://db1/users /data/users --summary"},
        {"List the names that a host serves", "sstferry plan sst://db1"}}},
      {"ls",
       "SOURCE [options]",
       "List the databases that a server serves",
       "Lists the databases that this side may read at SOURCE: a server, a "
       "database, or a directory with databases below it. Size and sequence "
       "number are as of the last flush: WALs may hold more. AGE is the time "
       "since the last write.",
       Joined({TlsRows<StatusArguments>(),
               SshRows<StatusArguments>(),
               {TimeoutRow<StatusArguments>()}}),
       {"source"},
       {{"List what a host serves", "sstferry ls sst://db1"}}},
      {"status",
       "SOURCE|TARGET_DIR [options] | --all --config FILE [options]",
       "Show how old a replica is, and unfinished pulls",
       "For a replica, shows its point in time, its known faults, the progress "
       "of an unfinished pull and the command to run next. For a source, shows "
       "the snapshots that it retains; for a server, also the followers of the "
       "databases that this side may read. Changes nothing.",
       Joined({{Row<StatusArguments>(
                    "all", Group::kCommon,
                    "Show all jobs of this host, from the records that they "
                    "leave: last success, lag, next time. --config is then the "
                    "file that sstferry units reads.",
                    [](auto& a) -> auto& { return a.all; }),
                Row<StatusArguments>(
                    "metrics-file", Group::kOutput,
                    "With --all: also write the states of the jobs as metrics "
                    "to FILE.prom.",
                    [](auto& a) -> auto& { return a.metrics_file; },
                    PathValue("FILE.prom"))},
               TlsRows<StatusArguments>(),
               SshRows<StatusArguments>(),
               {TimeoutRow<StatusArguments>(),
                SnapshotDirRow<StatusArguments>()}}),
       {"place"},
       {{"Show the progress of a pull", "sstferry status /data/users"},
        {"Show the snapshots that a host retains",
         "sstferry status sst://db1"},
        {"Show all jobs of this host",
         "sstferry status --all --config /etc/sstferry/host.toml"}}},
      {"release",
       "SOURCE_DIR ID [options]",
       "Release a retained snapshot",
       "Releases the snapshot that SOURCE_DIR retains for transfer ID, as "
       "status shows it (8 digits or more). The pull then starts over. Ends "
       "with BUSY while a target is connected. With HOST:/DIR or ssh://, runs "
       "there through ssh.",
       Joined(
           {SshRows<ReleaseArguments>(), {SnapshotDirRow<ReleaseArguments>()}}),
       {"source", "id"},
       {{"Release the snapshot of an abandoned pull",
         "sstferry release /data/users 3f9a1c22"}}},
      {"archive",
       "init|list|check|prune ARCHIVE | push SOURCE ARCHIVE | remove ARCHIVE "
       "SET | repair ARCHIVE [SET] [options]",
       "Keep sets of a database's files in a bucket or a directory",
       "ARCHIVE is s3://BUCKET[/PREFIX], file:///DIR or a directory, for one "
       "database. init makes it. push uploads a snapshot of SOURCE, except "
       "files that an earlier set already has. An application may have SOURCE "
       "open; push needs no right to delete. list shows the sets. check looks "
       "for every object of the sets; --read-data also reads objects, --drill "
       "restores a set.\n\nprune marks sets that no --keep option keeps; a "
       "later prune deletes them after the archive's grace: run it once a day. "
       "The newest whole set stays; the options do not count damaged sets. "
       "remove deletes a set immediately, or an unreadable record of a prune "
       "or a push. repair makes whole sets from damaged ones. All may run on "
       "several machines at once, and be killed; the archive stays consistent.",
       ArchiveOptionSpecs(),
       {"action", "source", "archive"},
       {{"Make an archive in a directory",
         "sstferry archive init /backup/orders"},
        {"Push a database",
         "sstferry archive push /data/orders /backup/orders --label nightly"},
        {"Push from another machine what a source serves",
         "sstferry archive push sst://db1/orders s3://backup/orders"},
        {"Prove every night that the newest set can be restored",
         "sstferry archive check s3://backup/orders --read-data 5% --drill "
         "/scratch/drill"},
        {"Keep 14 days and 8 weeks",
         "sstferry archive prune /backup/orders --keep-daily 14 --keep-weekly "
         "8"}}},
      {"follow",
       "SOURCE DIR|ARCHIVE [options]",
       "Keep a standby of a live database, or a log of it in an archive",
       "Makes DIR a standby of the database SOURCE and updates it until SIGINT "
       "or SIGTERM: receives new records of the source's WALs as they are "
       "written, and its files from time to time. DIR always holds a state "
       "that the source had. DIR is no database until sstferry promote makes "
       "it one; sstferry view makes a database beside it. A restarted follower "
       "resumes.\n\nWith an archive (s3://BUCKET[/PREFIX], file:///DIR or a "
       "directory that archive init made) instead of DIR, puts sets there, and "
       "between them every record of the WALs: pull ARCHIVE@TIME restores any "
       "time that archive list shows.",
       FollowOptionSpecs(),
       {"source", "dir"},
       {{"Keep a standby",
         "sstferry follow sst://db1/orders /srv/orders"},
        {"Keep every second of it in a bucket",
         "sstferry follow sst://db1/orders s3://backup/orders"}}},
      {"promote",
       "DIR [options]",
       "Make a database from a standby",
       "Makes the standby in DIR a database that an application opens for "
       "writing, in milliseconds. First checks the standby and the source: "
       "ends with CORRUPT if a file is missing or damage is known, and with "
       "REFUSED if no follower runs, or if the follower does not know that the "
       "source is down. In all these cases, nothing is changed. Then runs "
       "--before, which must stop the follower, truncates the WALs after the "
       "last whole record, and writes CURRENT. The same command completes a "
       "promotion that was killed. Nothing prevents the source from being "
       "opened later: make sure that it stays down.",
       PromoteOptionSpecs(),
       {"dir"},
       {{"Take over from a source that is gone",
         "sstferry promote /srv/orders --before 'systemctl disable --now "
         "sstferry-follow@orders' --after 'systemctl enable --now app'"},
        {"Move a database whose application was stopped",
         "sstferry promote /srv/orders --after-source-closed --before "
         "'systemctl disable --now sstferry-follow@orders' --after "
         "'systemctl enable --now app'"}}},
      {"view",
       "DIR VIEW_DIR",
       "Make a database from the current state of a standby",
       "Makes a database in VIEW_DIR that can be read and written. It "
       "consists of hard links to the files of the standby in DIR and of "
       "copies of its WALs. VIEW_DIR must be missing or empty. The follower "
       "of DIR continues, and changes to VIEW_DIR do not affect DIR.",
       {},
       {"dir", "view"},
       {{"Look at today's orders",
         "sstferry view /srv/orders /srv/orders-today"}}},
      {"units",
       "--config FILE [options]",
       "Write the systemd units of all jobs of a host",
       "Reads FILE, which names the databases of this host, by paths or by "
       "patterns, and the jobs of each: serve, follow, push, check, drill, "
       "prune, refresh, swap. Writes a systemd service for each, with the "
       "sandbox of the packaged unit, a timer for each that has a time, and "
       "sstferry.target for all. Removes the units that it wrote earlier and "
       "the file no longer asks for; leaves others alone. A wrong file changes "
       "nothing.",
       UnitsOptionSpecs(),
       {},
       {{"Show what would change", "sstferry units --config "
         "/etc/sstferry/host.toml --check"},
        {"Write the units and start them",
         "sstferry units --config /etc/sstferry/host.toml --start"},
        {"Write manifests for Kubernetes",
         "sstferry units --config /etc/sstferry/host.toml --kubernetes "
         "--directory manifests"}}},
      {"cert",
       "init DIR | issue DIR HOST [options]",
       "Make the certificates for --tls",
       "cert init makes a CA in DIR: ca.pem, and ca.key, which stays there. "
       "cert issue makes a certificate of this CA for HOST, a DNS name or an "
       "IP address, in DIR/HOST: cert.pem, key.pem and ca.pem, which --tls "
       "takes on that host, to serve and to pull. Nothing that exists is "
       "replaced.",
       CertOptionSpecs(),
       {"action", "directory", "host"},
       {{"Make a CA in the directory pki", "sstferry cert init pki"},
        {"Make a certificate for the host db1, for --tls there",
         "sstferry cert issue pki db1"}}},
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
  for (const OptionSpec& common : CommonOptions()) {
    // Leaves out a common option that the command replaces: --config of units.
    if (std::none_of(command.options.begin(), command.options.end(),
                     [&](const OptionSpec& own) {
                       return std::string(own.name) == common.name;
                     })) {
      specs.push_back(common);
    }
  }
  return specs;
}

const std::map<std::string, std::set<ArchiveAction>>& ArchiveOptionUses() {
  static const std::map<std::string, std::set<ArchiveAction>> uses = {
      {"label", {ArchiveAction::kPush}},
      {"all", {ArchiveAction::kPush}},
      {"jobs", {ArchiveAction::kPush}},
      {"adopt", {ArchiveAction::kPush}},
      {"snapshot-dir", {ArchiveAction::kPush, ArchiveAction::kRepair}},
      {"wal-dir", {ArchiveAction::kPush, ArchiveAction::kRepair}},
      {"key-file",
       {ArchiveAction::kPush, ArchiveAction::kList, ArchiveAction::kCheck,
        ArchiveAction::kRepair}},
      {"ssh-command", {ArchiveAction::kPush, ArchiveAction::kRepair}},
      {"remote-command", {ArchiveAction::kPush, ArchiveAction::kRepair}},
      {"tls", {ArchiveAction::kPush, ArchiveAction::kRepair}},
      {"tls-cert", {ArchiveAction::kPush, ArchiveAction::kRepair}},
      {"tls-key", {ArchiveAction::kPush, ArchiveAction::kRepair}},
      {"tls-ca", {ArchiveAction::kPush, ArchiveAction::kRepair}},
      {"lanes",
       {ArchiveAction::kPush, ArchiveAction::kCheck, ArchiveAction::kRepair}},
      {"from", {ArchiveAction::kRepair}},
      {"read-data", {ArchiveAction::kCheck}},
      {"drill", {ArchiveAction::kCheck}},
      {"metrics-file",
       {ArchiveAction::kPush, ArchiveAction::kCheck, ArchiveAction::kPrune}},
      {"on-success",
       {ArchiveAction::kPush, ArchiveAction::kCheck, ArchiveAction::kPrune,
        ArchiveAction::kRepair}},
      {"on-failure",
       {ArchiveAction::kPush, ArchiveAction::kCheck, ArchiveAction::kPrune,
        ArchiveAction::kRepair}},
      {"grace", {ArchiveAction::kInit, ArchiveAction::kPrune}},
      {"keep-last", {ArchiveAction::kPrune}},
      {"keep-daily", {ArchiveAction::kPrune}},
      {"keep-weekly", {ArchiveAction::kPrune}},
      {"keep-monthly", {ArchiveAction::kPrune}},
      {"keep-log", {ArchiveAction::kPrune}},
      {"dry-run", {ArchiveAction::kPrune}},
      {"force", {ArchiveAction::kRemove}},
  };
  return uses;
}

std::optional<Command> FindArchiveAction(const std::string& name) {
  struct Action {
    ArchiveAction action;
    const char* name;
    const char* synopsis;
    const char* about;
    std::vector<std::string> operands;
  };
  static const std::vector<Action> actions = {
      {ArchiveAction::kInit, "archive init", "ARCHIVE [options]",
       "Makes the archive ARCHIVE: s3://BUCKET[/PREFIX], file:///DIR or "
       "an empty directory. Tries everything that the archive "
       "will need from the store, and names what fails.",
       {"archive"}},
      {ArchiveAction::kPush, "archive push", "SOURCE ARCHIVE [options]",
       "Uploads a snapshot of the database SOURCE, except files that an "
       "earlier set already has. An application may have SOURCE open. Needs no "
       "right to delete. A push that was killed leaves no set; the next one "
       "uses what it uploaded.",
       {"source", "archive"}},
      {ArchiveAction::kList, "archive list", "ARCHIVE [options]",
       "Lists the sets, with the state that the last check found and its age, "
       "and the times that a log restores.",
       {"archive"}},
      {ArchiveAction::kCheck, "archive check", "ARCHIVE [options]",
       "Looks for every object that the sets name. --read-data also reads a "
       "share of them, another one each day; --drill restores the newest set, "
       "opens it, and compares what a log restores with it.",
       {"archive"}},
      {ArchiveAction::kPrune, "archive prune", "ARCHIVE [options]",
       "Marks sets that no --keep option keeps; a later prune deletes them "
       "after the archive's grace: run it once a day. The newest whole set "
       "stays; the options do not count damaged sets.",
       {"archive"}},
      {ArchiveAction::kRemove, "archive remove", "ARCHIVE SET [options]",
       "Deletes a set immediately, or an unreadable record of a prune (a mark) "
       "or of a push (an intent).",
       {"archive", "set"}},
      {ArchiveAction::kRepair, "archive repair", "ARCHIVE [SET] [options]",
       "Makes whole sets from damaged ones: takes missing and damaged files "
       "from --from, a source, a directory or another archive.",
       {"archive", "set"}}};
  for (const Action& each : actions) {
    if (name != ArchiveActionName(each.action)) {
      continue;
    }
    Command command = *FindCommand("archive");
    command.name = each.name;
    command.synopsis = each.synopsis;
    command.about = each.about;
    command.operands = each.operands;
    std::erase_if(command.options, [&each](const OptionSpec& spec) {
      const auto uses = ArchiveOptionUses().find(spec.name);
      return uses != ArchiveOptionUses().end() &&
             !uses->second.contains(each.action);
    });
    return command;
  }
  return std::nullopt;
}

Command StatusOfAll() {
  Command status = *FindCommand("status");
  status.options.push_back(Row<StatusArguments>(
      "config", Group::kCommon, "The file that sstferry units reads.",
      [](auto& a) -> auto& { return a.host_file; }, PathValue("FILE")));
  return status;
}

Command Planned(const Command& job) {
  Command planned = job;
  planned.options.push_back(PlanSummaryRow());
  return planned;
}

std::vector<std::string> ActionsOf(const std::string& command) {
  return command == "archive" ? std::vector<std::string>{"init", "push", "list",
                                                         "check", "prune",
                                                         "remove", "repair"}
         : command == "cert"  ? std::vector<std::string>{"init", "issue"}
         : command == "plan"  ? std::vector<std::string>{"pull", "refresh",
                                                         "swap"}
                              : std::vector<std::string>();
}

std::optional<Command> FindAction(const std::string& command,
                                  const std::string& action) {
  if (command == "archive") {
    return FindArchiveAction(action);
  }
  if (command == "cert" && (action == "init" || action == "issue")) {
    Command cert = *FindCommand("cert");  // both actions have its options
    cert.operands.erase(cert.operands.begin());
    return cert;
  }
  for (const auto& [job, name] : {std::pair("pull", "plan pull"),
                                  std::pair("refresh", "plan refresh"),
                                  std::pair("swap", "plan swap")}) {
    if (command == "plan" && action == job) {
      Command planned = Planned(*FindCommand(job));
      planned.name = name;
      planned.about = FindCommand("plan")->about;
      return planned;
    }
  }
  return std::nullopt;
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
