#include "tools/sstferry/options/commands.h"

#include <zstd.h>

#include "format/limits.h"
#include "format/message/messages.h"
#include "rocksdb/version.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

const OptionSpec kFamilyOption = {
    "cf", "NAME", "only this column family; repeat for more (default all)",
    true};
const OptionSpec kBeginOption = {
    "begin", "K",
    "first key, inclusive, in each named family's own order; 0x and an even\n"
    "number of hex digits is hex, all else text (default the first)"};
const OptionSpec kEndOption = {
    "end", "K", "end of the keys, exclusive; written as --begin (default none)"};
const OptionSpec kSnapshotOption = {
    "snapshot-dir", "DIR",
    "where the private snapshot of a source directory is linked; on the\n"
    "source's file system (default beside the source)"};
const OptionSpec kWalDirOption = {
    "wal-dir", "DIR",
    "where the WALs of a source directory are, whatever its OPTIONS say\n"
    "(default: where its OPTIONS and its MANIFEST tell)"};
const OptionSpec kStallOption = {
    "stall-timeout", "DURATION",
    "give up with TOO_SLOW when the other end is there, but a lane waited so\n"
    "long in vain; raise it for a pull with a --max-rate below 50K a lane\n"
    "(default 120s)"};
const OptionSpec kTtlOption = {
    "snapshot-ttl", "DURATION",
    "how long the snapshot of a pull that was cut is kept for it to go on,\n"
    "from 1s to 744h, counted while no target is connected; 0: not at all\n"
    "(default 1h)"};
const OptionSpec kTlsCertOption = {
    "tls-cert", "FILE",
    "this side's certificate and its intermediates, PEM; with --tls-key and\n"
    "--tls-ca every network connection is TLS 1.3 (default plain TCP)"};
const OptionSpec kTlsKeyOption = {
    "tls-key", "FILE", "its private key, PEM, without a passphrase"};
const OptionSpec kTlsCaOption = {
    "tls-ca", "FILE",
    "the CA certificates that may sign the other side's, PEM"};
const OptionSpec kLanesOption = {
    "lanes", "N", "ranges moved at the same time, 1 to 64 (default 4)"};

std::vector<OptionSpec> ServeOptionSpecs() {
  return {
      {"db", "[NAME=]DIR",
       "a database directory to serve, repeat for more; NAME is 1 to 64 of\n"
       "A-Z a-z 0-9 . _ - (default DIR's last component)",
       true},
      {"listen", "HOST:PORT",
       "where to accept connections; port 0 takes a free one\n"
       "(default 127.0.0.1:7420)"},
      {"max-lanes", "N",
       "lanes of one transfer, 1 to 64; a larger ask gets this many\n"
       "(default 16)"},
      {"max-rate", "BYTES",
       "wire bytes a second of all transfers together (default no limit)"},
      {"snapshot-dir", "DIR",
       "where private snapshots are linked; on the databases' file system\n"
       "(default beside each database)"},
      {"wal-dir", "NAME=DIR",
       "where the WALs of database NAME are, whatever its OPTIONS say; repeat\n"
       "for more",
       true},
      kTtlOption,
      {"min-free", "N%",
       "of the snapshots' file system, 0% to 99%: below it idle snapshots go,\n"
       "the oldest first, then the largest in use (default 5%)"},
      kStallOption,
      kTlsCertOption,
      kTlsKeyOption,
      kTlsCaOption,
      {"allow", "NAME=SUBJECT",
       "with TLS: database NAME only for certificates with the common name or\n"
       "DNS, IP, URI or e-mail name SUBJECT, exactly; repeat for more (default\n"
       "for a NAME without --allow: every certificate that --tls-ca accepts)",
       true},
      {"max-connections", "N",
       "connections at once, 1 to 65536; one pull has one and one per lane\n"
       "(default 1024)"},
      {"max-per-address", "N",
       "connections of one address at once, 1 to 65536 (default 256)"},
      {"once", nullptr,
       "end after the first transfer, with that transfer's exit code"},
      {"insecure", nullptr,
       "allow --listen beyond this machine without TLS; anyone who reaches the\n"
       "port can read the databases"},
  };
}

std::vector<OptionSpec> RefreshOptionSpecs() {
  return {
      {"mode", "seed|refresh",
       "seed: fill a TARGET_DIR that is empty or not there; refresh: make a\n"
       "replica of the same source current, or seed it (default seed)"},
      {"visibility", "all|chunk|swap",
       "of a refresh. all: what changed is staged, then seen all at once;\n"
       "chunk: key interval by key interval, as each arrives; swap: build a\n"
       "new database beside, exchange the directories while nobody has the\n"
       "target open, delete the old one (default all)"},
      {"compare", "files|digest|full",
       "what all and chunk take for changed. files: what other files back at\n"
       "the source than last time, and what cannot be proved to be unchanged\n"
       "and differs when both sides read it; digest: everything that\n"
       "differs when both sides read it; full: everything (default files)"},
      {"drop-missing", nullptr,
       "all and chunk: drop column families that are gone at the source; not\n"
       "with --cf, --begin or --end"},
      {"compact", "paced|none",
       "all and chunk: whether replaced intervals are compacted at the end\n"
       "(default paced)"},
      {"compact-rate", "BYTES",
       "a second, of what that compaction reads (default: no limit, since\n"
       "nobody else has the directory open)"},
      {"min-rate", "BYTES",
       "a second, that ingestion may go on at while the target is behind with\n"
       "its compactions (default 8M)"},
      {"min-free", "N%",
       "of TARGET_DIR's file system, 0% to 99%: a refresh begins no chunk that\n"
       "leaves less, waits up to a minute for room, then ends with NO_SPACE\n"
       "(default 5%)"},
      {"before-swap", "CMD",
       "for /bin/sh: stops what has TARGET_DIR open; then it is exchanged"},
      {"after-swap", "CMD",
       "for /bin/sh: starts that again; runs once whenever --before-swap was\n"
       "begun, exchanged or not"},
      {"adopt", nullptr,
       "refresh a TARGET_DIR that remembers another source, or none"},
      {"source-id", "ID",
       "what a target remembers a source by that has no IDENTITY"},
      {"delete-rate", "BYTES",
       "of the exchanged old database's files a second, while they are\n"
       "deleted (default 50M)"},
  };
}

std::vector<OptionSpec> SeedOptionSpecs() {
  return {
      {"replace", nullptr,
       "exchange a TARGET_DIR that is not empty; the old one stays beside it\n"
       "as TARGET_DIR.old-<transfer_id> (default: it is refused)"},
      {"restart", nullptr,
       "drop what an unfinished pull left in TARGET_DIR.sstferry (default: go\n"
       "on with it)"},
      kLanesOption,
      {"chunk-bytes", "BYTES",
       "size of an SST chunk before it is cut, 64Ki to 4Gi (default 64M)"},
      {"max-rate", "BYTES",
       "SST bytes a second that are written, before wire compression (default\n"
       "no limit); SIGHUP makes a pull read it again, and --log-level"},
      {"compress", "auto|none|zstd[:LEVEL]",
       "on the wire: auto, only while the link is what takes time; zstd,\n"
       "always, LEVEL 1 to 19 (default 1); what does not shrink goes as it\n"
       "is (default auto)"},
      kFamilyOption,
      kBeginOption,
      kEndOption,
      {"durability", "chunk|none",
       "chunk: each chunk is synced before it is recorded; none: everything\n"
       "is synced once before the final rename (default chunk)"},
      {"verify", nullptr,
       "read the finished database back and compare it with the source's\n"
       "snapshot before the rename"},
      {"format-version", "N",
       "format_version of the SST files, 2 to 255 (default the highest of the\n"
       "source's files that this machine can read)"},
      {"carry", "auto|never|only",
       "send files of the source as they are where that is as good as\n"
       "rebuilding them (auto), never, or all of them or nothing (only)\n"
       "(default auto)"},
      {"timeline", "FILE.csv", "write one line of rates and queues a second"},
      kSnapshotOption,
      kWalDirOption,
      kTtlOption,
      kStallOption,
      {"retry-for", "DURATION",
       "give up with DEAD_PEER after so long without progress; until then a\n"
       "lost connection is tried again (default 10m)"},
      {"deadline", "DURATION",
       "end with DEADLINE when the whole pull takes longer (default none)"},
      kTlsCertOption,
      kTlsKeyOption,
      kTlsCaOption,
  };
}

std::vector<OptionSpec> PullOptionSpecs() {
  std::vector<OptionSpec> specs = RefreshOptionSpecs();
  const std::vector<OptionSpec> seed = SeedOptionSpecs();
  specs.insert(specs.end(), seed.begin(), seed.end());
  return specs;
}

constexpr char kExitCodes[] =
    R"(Exit codes:
  0  OK
  1  failed, a person must act: REFUSED, INCOMPATIBLE, DENIED, NO_SPACE,
     CORRUPT, SOURCE_ERROR, INTERNAL
  2  wrong usage, nothing touched
  3  verify found DIFFERENT
  4  stopped for a reason that can pass, the same command goes on or starts
     anew: CANCELLED, DEADLINE, DEAD_PEER, TOO_SLOW, SNAPSHOT_GONE,
     CHANGED_SINCE
  5  BUSY, another process has the target
)";

constexpr char kUnits[] =
    R"(Units:
  BYTES      a whole number; K M G are powers of 1000, Ki Mi Gi of 1024
  DURATION   a whole number and ms, s, m or h
  DATABASE   a directory, or sst://HOST[:PORT]/NAME (port 7420; IPv6 as
             sst://[::1]:7420/NAME)
)";

void AppendOption(const OptionSpec& spec, std::string* out) {
  // Texts stand below the names, so that no line is longer than 80 columns.
  constexpr size_t kColumn = 6;
  std::string line = std::string("  --") + spec.name;
  if (spec.value != nullptr) {
    line += std::string(" ") + spec.value;
  }
  line += '\n';
  line.append(kColumn, ' ');
  for (const char* c = spec.help; *c != '\0'; ++c) {
    line += *c;
    if (*c == '\n') {
      line.append(kColumn, ' ');
    }
  }
  *out += line + "\n";
}

}  // namespace

const std::vector<OptionSpec>& CommonOptions() {
  static const std::vector<OptionSpec> options = {
      {"json", nullptr,
       "exactly one JSON object on standard output, on every exit but 2"},
      {"progress", "MODE",
       "auto: a line redrawn in place on a terminal, else a plain line per\n"
       "interval; always: redrawn in any case; never; json: one object a\n"
       "line (default auto)"},
      {"progress-interval", "DURATION",
       "time between plain or JSON lines (default 10s)"},
      {"log-level", "LEVEL",
       "error, warning, info or debug; logs go to standard error\n"
       "(default info)"},
      {"config", "FILE",
       "read options from lines \"name = value\", operands by their names in\n"
       "lower case; '#' begins a comment; the command line wins"},
      {"help", nullptr, "this text"},
      {"version", nullptr, "versions of sstferry, RocksDB, zstd, protocol"},
  };
  return options;
}

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"serve", "--db [NAME=]DIR [--db ...] [options]",
       "Serves databases to sstferry pull, plan and verify. A database may be\n"
       "closed, a checkpoint, or open and written by another process; it is\n"
       "never written to. Prints \"listening on HOST:PORT\". SIGINT or SIGTERM\n"
       "end it with exit code 0.",
       ServeOptionSpecs(), {}},
      {"pull", "SOURCE TARGET_DIR [options]",
       "Moves a snapshot of the DATABASE named SOURCE into the new directory\n"
       "TARGET_DIR, which appears whole or not at all.",
       PullOptionSpecs(), {"source", "target"}},
      {"verify", "LEFT RIGHT [options]",
       "Compares two DATABASEs, LEFT and RIGHT, entry by entry, each as it is\n"
       "at one moment. A difference is DIFFERENT; where a directory records\n"
       "that it was pulled from the other side's database, and at a sequence\n"
       "that this has gone past, it is CHANGED_SINCE.",
       {kFamilyOption, kBeginOption, kEndOption, kLanesOption,
        {"show", "N",
         "list the first N differences, 0 to 100000; all are counted\n"
         "(default 10)"},
        {"snapshot", "ID",
         "LEFT as the snapshot that is held there for the transfer ID, which\n"
         "stays held (default as it is now)"},
        kSnapshotOption, kWalDirOption, kStallOption, kTlsCertOption,
        kTlsKeyOption,
        kTlsCaOption},
       {"left", "right"}},
      {"plan", "SOURCE [TARGET_DIR] [options]",
       "Prints what pull would do and why: column families, ranges, sizes,\n"
       "disk needed. sst://HOST:PORT without NAME lists what is served there.\n"
       "Takes pull's options.",
       PullOptionSpecs(), {"source", "target"}},
      {"status", "SOURCE|TARGET_DIR [options]",
       "Of a DATABASE (or all that sst://HOST:PORT lets this side read): which\n"
       "snapshots are held there for pulls that may go on. Of a TARGET_DIR:\n"
       "complete, or how far an unfinished pull came, and what to type next.\n"
       "Of a directory that is both: both. Changes nothing.",
       {kSnapshotOption, kTlsCertOption, kTlsKeyOption, kTlsCaOption},
       {"place"}},
      {"release", "SOURCE_DIR ID [options]",
       "Lets the snapshot go that the database directory SOURCE_DIR holds for\n"
       "the transfer ID, as status shows it, or its first 8 digits or more. A\n"
       "pull that it was held for starts anew. BUSY while a target is connected.",
       {kSnapshotOption}, {"source", "id"}},
      {"inspect", "FILE [options]",
       "Explains a journal byte by byte (offset, bytes, meaning), or shows the\n"
       "properties of an SST file.",
       {}, {"file"}},
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

std::string CommandHelp(const Command& command) {
  std::string text = std::string("Usage: sstferry ") + command.name + " " +
                     command.synopsis + "\n\n" + command.about + "\n\n";
  if (!command.options.empty()) {
    text += "Options:\n";
    for (const OptionSpec& spec : command.options) {
      AppendOption(spec, &text);
    }
    text += "\n";
  }
  text += "Options of every command:\n";
  for (const OptionSpec& spec : CommonOptions()) {
    AppendOption(spec, &text);
  }
  return text + "\n" + kUnits + "\n" + kExitCodes;
}

std::string GeneralHelp() {
  std::string text =
      "sstferry moves a RocksDB database between machines as sorted SST files\n"
      "that are streamed while they are built, without stopping the source.\n\n"
      "Usage:\n";
  for (const Command& command : Commands()) {
    text += std::string("  sstferry ") + command.name + " " +
            command.synopsis + "\n";
  }
  text +=
      "\nsstferry COMMAND --help lists the options of a command; sstferry\n"
      "--version prints versions.\n\n";
  return text + kExitCodes;
}

std::string RocksdbVersion() { return rocksdb::GetRocksVersionAsString(); }

std::string VersionText() {
  return SoftwareVersion() + "\nRocksDB " + RocksdbVersion() + "\nzstd " +
         ZSTD_versionString() + "\nprotocol " +
         std::to_string(kProtocolVersion) + " (speaks " +
         std::to_string(kOldestProtocolVersion) + " to " +
         std::to_string(kProtocolVersion) + ")\n";
}

}  // namespace sstferry
