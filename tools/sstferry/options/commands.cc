#include "tools/sstferry/options/commands.h"

#include <set>

namespace sstferry {
namespace {

using Group = OptionGroup;

const OptionSpec kFamilyOption = {
    "cf", "NAME", Group::kCommon,
    "Select column family NAME (repeatable). Default: all.", true};
const OptionSpec kBeginOption = {
    "begin", "KEY", Group::kCommon,
    "Start at KEY, inclusive, in each selected family's own order. Default: the "
    "first key."};
const OptionSpec kEndOption = {
    "end", "KEY", Group::kCommon,
    "End before KEY. Default: after the last key."};
const OptionSpec kSnapshotOption = {
    "snapshot-dir", "DIR", Group::kAdvanced,
    "Link the private snapshot of a source directory in DIR, which must be on "
    "the source's file system, unless that is read-only. Default: beside the "
    "source."};
const OptionSpec kWalDirOption = {
    "wal-dir", "DIR", Group::kAdvanced,
    "Read the WAL of a source directory from DIR. Default: where its OPTIONS "
    "file and MANIFEST say."};
const OptionSpec kStallOption = {
    "stall-timeout", "DURATION", Group::kNetwork,
    "Fail with TOO_SLOW after waiting this long for a peer that is "
    "connected but does nothing. Raise it for a --max-rate below 50K per "
    "lane. Default: 120s."};
const OptionSpec kTtlOption = {
    "snapshot-ttl", "DURATION", Group::kLimits,
    "Retain the snapshot of an interrupted pull this long, so that the pull "
    "can resume: 1s to 31d, counted while no target is connected; 0: do not "
    "retain it. Default: 1h."};
const OptionSpec kTlsCertOption = {
    "tls-cert", "FILE", Group::kNetwork,
    "Certificate of this side with its intermediates, PEM. With --tls-key and "
    "--tls-ca, every connection uses TLS 1.3. Default: plain TCP."};
const OptionSpec kTlsKeyOption = {
    "tls-key", "FILE", Group::kNetwork,
    "Private key of --tls-cert, PEM, without a passphrase."};
const OptionSpec kTlsCaOption = {
    "tls-ca", "FILE", Group::kNetwork,
    "CA certificates that may sign the other side's certificate, PEM."};
const OptionSpec kMetricsOption = {
    "metrics", "HOST:PORT", Group::kOutput,
    "Show metrics for Prometheus at http://HOST:PORT/metrics, on an address of "
    "this machine only; port 0 takes a free port. Default: none."};
const OptionSpec kLanesOption = {
    "lanes", "N", Group::kCommon,
    "Move N ranges at the same time, 1 to 64. Default: 4."};

std::vector<OptionSpec> ServeOptionSpecs() {
  return {
      {"db", "[NAME=]DIR", Group::kCommon,
       "Serve the database directory DIR as NAME, which is 1 to 64 of A-Z a-z "
       "0-9 . _ - (repeatable). Default NAME: DIR's last component.",
       true},
      {"listen", "HOST:PORT", Group::kCommon,
       "Accept connections at this address; port 0 takes a free port. Default: "
       "127.0.0.1:7420."},
      {"max-rate", "BYTES", Group::kCommon,
       "Send at most BYTES per second, over all transfers together. SIGHUP "
       "reads it again from --config. Default: no limit."},
      {"once", nullptr, Group::kCommon,
       "Exit after the first transfer, with that transfer's exit code."},
      {"allow-missing", nullptr, Group::kCommon,
       "Start even if a database is missing or cannot be read now; each request "
       "opens it again. Default: check every database, and fail."},
      {"max-lanes", "N", Group::kLimits,
       "Allow N lanes per transfer, 1 to 64; a pull that asks for more gets N. "
       "Default: 16."},
      {"max-transfers", "N", Group::kLimits,
       "Serve N transfers at once, 1 to 65536; further ones wait for their "
       "turn. Default: 64."},
      {"share-snapshots", "DURATION", Group::kLimits,
       "Keep the snapshot of a pull with --snapshot latest this long, and give "
       "it to all such pulls: 1s to 31d; 0: each gets its own. Default: 60s."},
      {"memory", "BYTES", Group::kLimits,
       "Keep up to BYTES in memory of what targets have not acknowledged, at "
       "least 2 MiB for each lane. Default: 256M."},
      {"chunk-cache", "BYTES", Group::kLimits,
       "Keep up to BYTES of rebuilt chunks of a shared snapshot beside it, so "
       "that each is built once for all targets; 0: build for each. Default: "
       "2G."},
      kTtlOption,
      {"min-free", "N%", Group::kLimits,
       "Release snapshots while less than N% of their file system is free, 0% "
       "to 99%: idle ones first, from the oldest, then the largest in use. "
       "Default: 5%."},
      {"max-connections", "N", Group::kLimits,
       "Accept N connections at once, 1 to 65536; a pull uses one, and one per "
       "lane. Default: 1024."},
      {"max-per-address", "N", Group::kLimits,
       "Accept N connections from one address at once, 1 to 65536. Default: "
       "256."},
      kTlsCertOption,
      kTlsKeyOption,
      kTlsCaOption,
      {"allow", "NAME=SUBJECT", Group::kNetwork,
       "Serve database NAME only to certificates whose common name or DNS, IP, "
       "URI or e-mail name is exactly SUBJECT (repeatable). Needs TLS. "
       "Default: every certificate that --tls-ca accepts.",
       true},
      {"insecure", nullptr, Group::kNetwork,
       "Allow --listen beyond this machine without TLS. Anyone who reaches the "
       "port can then read the databases."},
      kStallOption,
      {"snapshot-dir", "DIR", Group::kAdvanced,
       "Link private snapshots in DIR, which must be on the databases' file "
       "system, unless that is read-only. Default: beside each database."},
      {"wal-dir", "NAME=DIR", Group::kAdvanced,
       "Read the WAL of database NAME from DIR (repeatable). Default: "
       "where its OPTIONS file and MANIFEST say.",
       true},
      kMetricsOption,
  };
}

std::vector<OptionSpec> RefreshOptionSpecs() {
  return {
      {"visibility", "all|chunk|swap", Group::kRefresh,
       "When readers see the new data: all (everything at once, after "
       "staging), chunk (interval by interval, as chunks arrive) or swap (a "
       "new database replaces the directory while nothing has it open). "
       "Default: all."},
      {"compare", "files|digest|full", Group::kRefresh,
       "How all and chunk find what changed: files (by files and WALs of both "
       "sides, and comparison where these prove nothing: finds every write, but "
       "no bytes that a disk changed), digest (compare everything on both "
       "sides) or full (send everything). Default: files."},
      {"ranges", "FILE", Group::kRefresh,
       "Repair only the key ranges that FILE lists, the JSON of sstferry verify "
       "--json: compare them, send what differs, and do not look at the rest. "
       "With all; not with --cf, --begin, --end, --compare, --adopt or "
       "--verify. Default: refresh everything."},
      {"drop-missing", nullptr, Group::kRefresh,
       "Drop column families that the source no longer has. With all and "
       "chunk; not with --cf, --begin or --end."},
      {"single-delete", nullptr, Group::kRefresh,
       "The application deletes keys by SingleDelete: replace intervals with "
       "changes, and send no single entries. A source that shows a "
       "SingleDelete needs no option. With all and chunk."},
      {"compact", "auto|paced|none", Group::kRefresh,
       "Compact at the end the replaced intervals and a part of what single "
       "entries left above the data (auto), the replaced intervals (paced), or "
       "nothing (none). With all and chunk. Default: auto."},
      {"compact-rate", "BYTES", Group::kRefresh,
       "Read at most BYTES per second in that compaction. Default: no limit."},
      {"min-rate", "BYTES", Group::kRefresh,
       "Ingest at least BYTES per second even while the target's compactions "
       "lag behind. Default: 8M."},
      {"min-free", "N%", Group::kRefresh,
       "Keep N% of TARGET_DIR's file system free, 0% to 99%: wait up to a "
       "minute for room before each chunk, then fail with NO_SPACE. Default: "
       "5%."},
      {"before-swap", "CMD", Group::kRefresh,
       "Run CMD with /bin/sh before the swap. It must stop whatever has "
       "TARGET_DIR open."},
      {"after-swap", "CMD", Group::kRefresh,
       "Run CMD with /bin/sh after the swap, to start that again. It runs once "
       "whenever --before-swap was started, also if the swap failed."},
      {"always-swap", nullptr, Group::kRefresh,
       "Swap also when TARGET_DIR holds what the source holds. With --method "
       "clone and swap. Default: leave it as it is, and run no command."},
      {"adopt", nullptr, Group::kRefresh,
       "Accept a TARGET_DIR that was made from another source, or not by "
       "sstferry."},
      {"source-id", "ID", Group::kRefresh,
       "Identify a source that has no IDENTITY file as ID, so that the next "
       "refresh knows it again."},
      {"delete-rate", "BYTES", Group::kRefresh,
       "Delete the replaced database's files at BYTES per second. With swap. "
       "Default: 50M."},
  };
}

std::vector<OptionSpec> SeedOptionSpecs() {
  return {
      {"mode", "seed|refresh", Group::kCommon,
       "seed fills a TARGET_DIR that is empty or missing; refresh updates a "
       "replica of the same source, or seeds it (see --help=refresh). "
       "Default: seed."},
      {"method", "auto|ingest|clone", Group::kCommon,
       "How data moves into a new database: ingest (as sorted chunks, "
       "compacted on arrival), clone (the source's files as they are, without "
       "those that TARGET_DIR has; not with --cf, --begin, --end) or auto "
       "(ingest, but clone what chunks cannot hold). With seed and swap. "
       "Default: auto."},
      {"replace", nullptr, Group::kCommon,
       "Replace a TARGET_DIR that is not empty; the old one stays as "
       "TARGET_DIR.old-TRANSFER_ID. Default: refuse."},
      {"restart", nullptr, Group::kCommon,
       "Discard an unfinished pull of TARGET_DIR and start over. Default: "
       "resume it."},
      {"verify", nullptr, Group::kCommon,
       "Read the finished database back and compare it with the source's "
       "snapshot before the final rename."},
      {"snapshot", "new|latest|ID", Group::kAdvanced,
       "Which point in time to pull: new (that of now), latest (the one that "
       "other pulls with latest got within the source's --share-snapshots), or "
       "that of transfer ID. Default: new."},
      kFamilyOption,
      kBeginOption,
      kEndOption,
      kLanesOption,
      {"max-rate", "BYTES", Group::kCommon,
       "Write at most BYTES of SST data per second. SIGHUP reads it again "
       "from --config. Default: no limit."},
      {"compress", "auto|none|zstd[:LEVEL]", Group::kCommon,
       "Compress on the wire: auto (while the link is the bottleneck), none, "
       "or zstd (always; LEVEL 1 to 19, default 1). Default: auto."},
      kTlsCertOption,
      kTlsKeyOption,
      kTlsCaOption,
      kStallOption,
      {"wait-for-source", "DURATION", Group::kNetwork,
       "Wait this long for the source's first answer, also when a pull is "
       "resumed, then fail with DEAD_PEER. Default: 10s."},
      {"retry-for", "DURATION", Group::kNetwork,
       "Reconnect after a lost connection until there was no progress for this "
       "long, then fail with DEAD_PEER. Default: 10m."},
      {"deadline", "DURATION", Group::kLimits,
       "Fail with DEADLINE when the whole pull takes longer. Default: none."},
      kTtlOption,
      {"max-age", "DURATION", Group::kLimits,
       "Discard an unfinished pull whose snapshot is older, and start over. "
       "Default: resume it, however old."},
      {"chunk-bytes", "BYTES", Group::kAdvanced,
       "Size of an SST chunk, 64Ki to 4Gi. Default: 64M."},
      {"carry", "auto|never|only", Group::kAdvanced,
       "Send source files as they are: auto (where that is as good as "
       "rebuilding them), never, or only (every file, or refuse). Default: "
       "auto."},
      {"reuse", "DIR", Group::kAdvanced,
       "Link files of the source that the database in DIR has already, on the "
       "file system of TARGET_DIR. With --method clone. Default: TARGET_DIR, "
       "where it is to be replaced."},
      {"keep-identity", nullptr, Group::kAdvanced,
       "Give a clone the source's database id, for a clone that replaces its "
       "source. Default: an id of its own."},
      {"durability", "chunk|none", Group::kAdvanced,
       "When to sync: chunk (each chunk before it is recorded) or none (once, "
       "before the final rename). Default: chunk."},
      {"format-version", "N", Group::kAdvanced,
       "Write SST files with format_version N, 2 to 255. Default: the highest "
       "of the source's files that this machine can read."},
      kSnapshotOption,
      kWalDirOption,
      {"owner", "USER[:GROUP]", Group::kAdvanced,
       "Owner of the new database, by name or id. Default: that of the "
       "TARGET_DIR that it replaces or fills, else the user who runs pull."},
      {"permissions", "OCTAL", Group::kAdvanced,
       "Permissions of the new TARGET_DIR; its files get them without the "
       "execute bits. Default: those of the TARGET_DIR that it replaces or "
       "fills, else 0755 less the umask."},
      {"timeline", "FILE.csv", Group::kAdvanced,
       "Write a line of rates and queue lengths to FILE.csv every second."},
      kMetricsOption,
      {"metrics-file", "FILE.prom", Group::kOutput,
       "Write metrics to FILE.prom at the end, also of a pull that fails, for "
       "node_exporter's textfile collector. Default: none."},
  };
}

std::vector<OptionSpec> PullOptionSpecs() {
  std::vector<OptionSpec> specs = SeedOptionSpecs();
  const std::vector<OptionSpec> refresh = RefreshOptionSpecs();
  specs.insert(specs.end(), refresh.begin(), refresh.end());
  return specs;
}

// The options of pull that a plan depends on, or, for `listed` false, the
// others, which it takes so that the command line of a pull can be planned.
std::vector<OptionSpec> PlanOptionSpecs(bool listed) {
  static const std::set<std::string> for_plan = {
      "adopt",         "begin",    "carry",          "cf",
      "chunk-bytes",   "compare",  "deadline",       "end",
      "format-version", "lanes",   "method",         "mode",
      "snapshot-dir",  "source-id", "tls-ca",        "stall-timeout",
      "tls-cert",      "tls-key",  "visibility",     "wal-dir"};
  std::vector<OptionSpec> specs;
  if (listed) {
    specs.push_back({"summary", nullptr, Group::kCommon,
                     "Print totals only. Default: also a line for each column "
                     "family and for each file or key interval."});
  }
  for (const OptionSpec& spec : PullOptionSpecs()) {
    if ((for_plan.count(spec.name) > 0) == listed) {
      specs.push_back(spec);
    }
  }
  return specs;
}

std::vector<OptionSpec> VerifyOptionSpecs() {
  return {
      {"show", "N", Group::kCommon,
       "List the first N differences, 0 to 100000; all are counted. Default: "
       "10."},
      {"snapshot", "ID", Group::kCommon,
       "Read LEFT from the snapshot that it retains for transfer ID; the "
       "snapshot stays retained. Default: LEFT as it is now."},
      kFamilyOption,
      kBeginOption,
      kEndOption,
      {"lanes", "N", Group::kCommon,
       "Compare N ranges at the same time, 1 to 64. Default: 4."},
      kTlsCertOption,
      kTlsKeyOption,
      kTlsCaOption,
      kStallOption,
      kSnapshotOption,
      kWalDirOption,
  };
}

}  // namespace

const std::vector<OptionSpec>& CommonOptions() {
  static const std::vector<OptionSpec> options = {
      {"json", nullptr, Group::kCommon,
       "Print one JSON object, on every exit but 2."},
      {"config", "FILE", Group::kAdvanced,
       "Read options from FILE, operands by their names in lower case: TOML "
       "if FILE ends with .toml, else one \"name = value\" per line. The "
       "command line wins."},
      {"progress", "auto|always|never|json", Group::kOutput,
       "Progress on standard error: auto (one redrawn line on a terminal, "
       "otherwise a line per interval), always (redrawn), never, or json (an "
       "object per interval). Default: auto."},
      {"progress-interval", "DURATION", Group::kOutput,
       "Time between progress lines that are not redrawn. Default: 10s."},
      {"log-level", "error|warning|info|debug", Group::kOutput,
       "Least level of the log lines on standard error. Default: info."},
      {"log-format", "text|json", Group::kOutput,
       "Log lines as text, or as one JSON object per line: time, level, "
       "transfer_id, message. Default: text."},
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
      {"serve", "--db [NAME=]DIR [--db ...] [options]",
       "Serve databases to pull, plan and verify",
       "Serves databases over the network. A database may be closed, a "
       "checkpoint, or open and written by another process; serve never writes "
       "to it. Checks and lists the databases, then prints \"listening on "
       "HOST:PORT\" on standard output. SIGINT or SIGTERM ends it with exit "
       "code 0.",
       ServeOptionSpecs(), {},
       {{"Serve one database to this machine, for instance for an ssh tunnel",
         "sstferry serve --db users=/data/users"},
        {"Serve two databases to the network over TLS",
         "sstferry serve --db /data/users --db /data/orders --listen "
         "0.0.0.0:7420 --tls-cert source.pem --tls-key source.key --tls-ca "
         "ca.pem"}}},
      {"pull", "SOURCE TARGET_DIR [options]",
       "Copy a database into a directory, or update a replica",
       "Copies a snapshot of the database SOURCE into TARGET_DIR, which appears "
       "whole or not at all. The same command resumes an interrupted pull. "
       "Runs at the target. SOURCE may be up to 8 URLs with commas between.",
       PullOptionSpecs(), {"source", "target"},
       {{"Seed a replica and compare it with the source's snapshot",
         "sstferry pull sst://db1/users /data/users --verify"},
        {"Update a replica by a new database that replaces the directory",
         "sstferry pull sst://db1/users /data/users --mode refresh "
         "--visibility swap --before-swap 'systemctl stop app' --after-swap "
         "'systemctl start app'"},
        {"Clone a database from two replicas at once",
         "sstferry pull --method clone sst://db2/users,sst://db3/users "
         "/data/users"},
        {"Copy one column family of a local database at 50 MB per second",
         "sstferry pull /data/users /copy/users --cf default --max-rate "
         "50M"}}},
      {"verify", "LEFT RIGHT [options]",
       "Compare two databases entry by entry",
       "Compares the databases LEFT and RIGHT entry by entry, each as it is at "
       "one moment. Ends with DIFFERENT if they differ. Ends with "
       "CHANGED_SINCE if one side is a directory that was pulled from the "
       "other at an older sequence.",
       VerifyOptionSpecs(), {"left", "right"},
       {{"Compare a replica with its source",
         "sstferry verify sst://db1/users /data/users"}}},
      {"plan", "SOURCE [TARGET_DIR] [options]",
       "Show what pull would do, and why",
       "Prints what pull would do with the same options, and why: column "
       "families, ranges, sizes, disk space. Takes all options of pull; those "
       "that change nothing here are not listed. If SOURCE is sst://HOST[:PORT] "
       "without a NAME, lists the databases that are served there.",
       PlanOptionSpecs(true), {"source", "target"},
       {{"Show what a pull would move, and what would stop it",
         "sstferry plan sst://db1/users /data/users --summary"},
        {"List the names that a host serves", "sstferry plan sst://db1"}},
       PlanOptionSpecs(false)},
      {"ls", "sst://HOST[:PORT][/NAME] [options]",
       "List the databases that a server serves",
       "Lists the databases that this side may read, with their size, sequence "
       "number and age (the time since they were last written to). Size and "
       "sequence are as of the last flush: WALs may hold more.",
       {kTlsCertOption, kTlsKeyOption, kTlsCaOption, kStallOption},
       {"source"},
       {{"List what a host serves", "sstferry ls sst://db1"}}},
      {"status", "SOURCE|TARGET_DIR [options]",
       "Show retained snapshots and unfinished pulls",
       "Shows which snapshots a database retains for pulls that may resume "
       "(sst://HOST[:PORT]: those of all databases that this side may read), "
       "and how far the pull into a directory has come, with the command to "
       "run next. Changes nothing.",
       {kTlsCertOption, kTlsKeyOption, kTlsCaOption, kStallOption,
        kSnapshotOption},
       {"place"},
       {{"Show how far a pull has come", "sstferry status /data/users"},
        {"Show what a host retains", "sstferry status sst://db1"}}},
      {"release", "SOURCE_DIR ID [options]",
       "Release a retained snapshot",
       "Releases the snapshot that the database directory SOURCE_DIR retains "
       "for transfer ID, as status shows it (8 digits or more). The pull that "
       "it was retained for then starts over. Ends with BUSY while a target is "
       "connected.",
       {kSnapshotOption}, {"source", "id"},
       {{"Release the snapshot of an abandoned pull",
         "sstferry release /data/users 3f9a1c22"}}},
      {"inspect", "FILE [options]",
       "Explain a journal or an SST file",
       "Explains a journal byte by byte (offset, bytes, meaning), or shows the "
       "properties of an SST file.",
       {}, {"file"},
       {{"Explain the journal of an unfinished pull",
         "sstferry inspect /data/users.sstferry/journal"}}},
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
