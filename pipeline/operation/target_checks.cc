#include "pipeline/operation/target_checks.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "format/end_state.h"
#include "pipeline/operation/method_choice.h"
#include "pipeline/operation/operation_parts.h"
#include "pipeline/options/compaction_style.h"
#include "pipeline/options/directories.h"
#include "pipeline/options/family_options.h"
#include "pipeline/target/disk/access.h"
#include "pipeline/target/disk/free_space.h"
#include "pipeline/target/disk/workspace.h"
#include "pipeline/target/memory/cover_record.h"
#include "pipeline/target/memory/replica.h"
#include "rocksdb/file_system.h"
#include "sstferry/transport.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

CheckSummary Ok(const char* name, const std::string& text) {
  return {name, true, text, ""};
}

// The messages of a pull end with what to do, behind a semicolon.
CheckSummary Problem(const char* name, const Status& status,
                     const std::string& otherwise) {
  const std::string message = MessageOf(status);
  const size_t end = message.rfind("; ");
  return end == std::string::npos
             ? CheckSummary{name, false, message, otherwise}
             : CheckSummary{name, false, message.substr(0, end),
                            message.substr(end + 2)};
}

bool HoldsSomething(const std::string& dir) {
  std::error_code error;
  return fs::is_directory(dir, error) && !fs::is_empty(dir, error);
}

// Links, mount points, the parent, and who has it open.
CheckSummary CheckDirectory(const PullOptions& options) {
  const bool in_place = RefreshesInPlace(options);
  const Status status = Workspace::LookAt(
      options.target_dir,
      IsSwap(options) ? Existing::kRefresh : Existing::kRefuse, in_place);
  if (!status.ok()) {
    return Problem("directory", status,
                   "name a directory in one that exists and that this user "
                   "may write");
  }
  const std::string& dir = options.target_dir;
  if (!HoldsSomething(dir)) {
    return Ok("directory", dir + " is absent or empty: the pull makes it");
  }
  for (const std::string& other : DirectoriesOf(dir)) {
    std::error_code error;
    if (!fs::equivalent(other, dir, error)) {
      return {"directory", false,
              dir + ": its OPTIONS name another directory, " + other,
              "seed a new TARGET_DIR whose files are all in it"};
    }
  }
  return Ok("directory", dir + (in_place ? " is refreshed where it is"
                                         : " is exchanged for a new one"));
}

CheckSummary CheckSource(const PullOptions& options, const Summary& summary) {
  bool found = false;
  const std::string& id = options.source_id.empty()
                              ? summary.source_database_id
                              : options.source_id;
  if (IsSwap(options)) {
    Replica replica;
    const Status status = CheckReplica(options, id, &found, &replica);
    return status.ok()
               ? Ok("source", "TARGET_DIR may be exchanged for this database")
               : Problem("source", status, "ask for what it was pulled with");
  }
  CoverFile covers;
  const Status status =
      ReadCovers(rocksdb::FileSystem::Default().get(), options.target_dir,
                 &found, &covers);
  if (options.adopt) {
    return Ok("source", "--adopt: whatever TARGET_DIR was pulled from");
  }
  return status.ok() && found && covers.source_database_id == id
             ? Ok("source", "TARGET_DIR was pulled from this database")
             : CheckSummary{"source", false,
                            !status.ok() || !found
                                ? "TARGET_DIR remembers no source"
                                : "TARGET_DIR was pulled from database " +
                                      covers.source_database_id +
                                      ", this is " + id,
                            "--adopt replaces all it holds nevertheless"};
}

CheckSummary CheckOwner(const PullOptions& options) {
  Access access;
  const Status status =
      RefreshesInPlace(options)
          ? ChooseFileAccess(options, options.target_dir, &access)
          : ChooseAccess(options, &access);
  if (!status.ok()) {
    return Problem("owner", status, "run the pull as that user or as root");
  }
  const auto id = [](uint32_t value, const char* as_made) {
    return value == Access::kAsMade ? as_made : std::to_string(value);
  };
  return Ok("owner", "this user may make what is needed: owner " +
                         id(access.owner, "is who pulls") + ", group " +
                         id(access.group, "is that of who pulls"));
}

// All of the larger method: which one is taken shows later.
uint64_t BytesOf(const PullOptions& options, const Summary& summary,
                 const SourcePlan* chunks, SpaceNeed* need) {
  if (chunks != nullptr) {
    std::vector<Range> ranges;
    for (const Range& range : chunks->ranges) {
      if (range.need != RangeNeed::kUnchanged) {
        ranges.push_back(range);
      }
    }
    const uint64_t reserve = need->reserve_bytes;
    *need = SpaceNeedOf(ranges, options.chunk_bytes, options.lanes);
    need->reserve_bytes = reserve;
  }
  for (const MethodSummary& method : summary.methods) {
    if (method.method == "clone" && summary.advised_method == "clone") {
      need->estimated_bytes = std::max(need->estimated_bytes, method.bytes);
    }
  }
  return need->bytes();
}

CheckSummary CheckSpace(const PullOptions& options, const Summary& summary,
                        const SourcePlan* chunks) {
  // The workspace lies beside TARGET_DIR.
  std::error_code error;
  const std::string parent =
      fs::absolute(Workspace::DirOf(options.target_dir), error)
          .parent_path()
          .string();
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  SpaceNeed need;
  if (options.mode == PullMode::kRefresh) {
    need.reserve_bytes = ReserveOf(parent, options.min_free_percent);
  }
  const uint64_t bytes = BytesOf(options, summary, chunks, &need);
  uint64_t free = 0;
  Status status = FreeBytes(disk, parent, &free);
  if (status.ok()) {
    status = CheckFreeSpace(disk, parent, need, /*keeps_old_copy=*/false);
  }
  return status.ok()
             ? Ok("space", "needs " + SpaceText(bytes) +
                               (need.reserve_bytes == 0
                                    ? ""
                                    : ", of which " +
                                          SpaceText(need.reserve_bytes) +
                                          " stay free (--min-free)") +
                               "; " + SpaceText(free) + " are free at " +
                               parent)
             : Problem("space", status,
                       "free as much, or name a TARGET_DIR on another disk");
}

CheckSummary CheckVersions(const Summary& summary, const SourcePlan* chunks) {
  const std::string text =
      "source: " + summary.source_versions.software + " with RocksDB " +
      summary.source_versions.rocksdb +
      "; here: " + summary.target_versions.software + " with RocksDB " +
      summary.target_versions.rocksdb;
  uint32_t newest = 0;
  if (chunks != nullptr) {
    for (const Family& family : chunks->families) {
      newest = std::max(newest, family.format_version);
    }
  }
  for (const MethodSummary& method : summary.methods) {
    if (method.method == "ingest" && !method.why_not.empty()) {
      return {"versions", false, text + "; as chunks: " + method.why_not,
              summary.advised_method == "clone"
                  ? "--method clone, or auto, which becomes one"
                  : "upgrade this side"};
    }
  }
  return Ok("versions",
            text + (newest == 0 ? ""
                                : "; tables of format_version " +
                                      std::to_string(newest)));
}

bool MayBecomeClone(const PullOptions& options) {
  return options.method != PullMethod::kIngest && WhyNoClone(options).empty();
}

CheckSummary CheckFamiliesHere(const PullOptions& options,
                               const SourcePlan& chunks) {
  for (const Family& family : chunks.families) {
    BuildLimits limits;
    limits.format_version = family.format_version;
    BuiltFamily built;
    const Status status =
        BuildFamily(family.description, options.registry, limits, &built);
    if (IsRefusedAsChunks(status) && MayBecomeClone(options)) {
      return Ok("families", "as chunks refused: " + MessageOf(status) +
                                "; --method auto clones");
    }
    if (!status.ok()) {
      return Problem("families", status,
                     IsRefusedAsChunks(status)
                         ? "--method clone moves it as it is"
                         : "an application that links the library can "
                           "register it");
    }
  }
  return Ok("families",
            chunks.families.size() == 1
                ? "the column family can be made here"
                : std::to_string(chunks.families.size()) +
                      " column families can be made here");
}

// What compactions the families have after the pull, and whether RocksDB can
// ingest into them until then.
CheckSummary CheckCompaction(const PullOptions& options,
                             const SourcePlan& chunks) {
  const bool in_place = RefreshesInPlace(options);
  const std::map<std::string, rocksdb::CompactionStyle> styles_here =
      StylesOf(options.target_dir);
  std::set<std::string> names;
  std::string first;
  size_t different = 0;
  for (const Family& family : chunks.families) {
    const std::string& name = family.description.name;
    const auto at_source = StyleOf(family.description.options);
    const auto here = styles_here.find(name);
    if (at_source) {
      names.insert(StyleName(*at_source));
    }
    if (here == styles_here.end()) {
      continue;
    }
    const Status status =
        in_place ? CheckIngestsOver(name, here->second) : Status::OK();
    if (!status.ok()) {
      return Problem("compaction", status, "");
    }
    if (at_source && *at_source != here->second && ++different == 1) {
      first = "column family '" + name + "' is " + StyleName(*at_source) +
              " at the source and " + StyleName(here->second) +
              " in TARGET_DIR, which " +
              (in_place ? "keeps its own" : "becomes as the source");
    }
  }
  if (different > 1) {
    first += "; " + std::to_string(different - 1) + " more differ";
  }
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "as at the source: " : ", ") + name;
  }
  return Ok("compaction", different > 0 ? first : text);
}

// What works today and will not, or should not: of the certificate and the key.
CheckSummary CheckConnection(const PullOptions& options) {
  if (options.source.is_directory()) {
    return Ok("connection", "none: the source is a directory");
  }
  if (options.tls.empty()) {
    return Ok("connection",
              "plain TCP: whoever sees it can read and change the data; TLS "
              "needs --tls-cert, --tls-key and --tls-ca on both sides");
  }
  const std::vector<std::string> warnings = TlsWarnings(options.tls);
  return warnings.empty()
             ? Ok("connection",
                  "TLS, with the certificates of both sides checked")
             : Problem("connection",
                       MakeStatus(EndState::kRefused, warnings.front()),
                       "renew it, or the pulls after that fail");
}

}  // namespace

std::vector<CheckSummary> CheckTarget(const PullOptions& options,
                                      const Summary& summary,
                                      const SourcePlan* chunks) {
  std::vector<CheckSummary> checks = {CheckDirectory(options)};
  if (options.mode == PullMode::kRefresh && HoldsSomething(options.target_dir)) {
    checks.push_back(CheckSource(options, summary));
  }
  checks.push_back(CheckOwner(options));
  checks.push_back(CheckSpace(options, summary, chunks));
  checks.push_back(CheckVersions(summary, chunks));
  if (chunks != nullptr) {
    checks.push_back(CheckFamiliesHere(options, *chunks));
    checks.push_back(CheckCompaction(options, *chunks));
  }
  checks.push_back(CheckConnection(options));
  return checks;
}

}  // namespace sstferry
