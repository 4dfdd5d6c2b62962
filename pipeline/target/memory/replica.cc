#include "pipeline/target/memory/replica.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "pipeline/base/last_transfer.h"
#include "pipeline/target/disk/database_files.h"

namespace sstferry {
namespace {

using rocksdb::Status;

Status Refused(const PullOptions& options, const std::string& what) {
  return MakeStatus(EndState::kRefused,
                    "target " + options.target_dir + what);
}

std::optional<std::string> TextOf(const std::optional<std::string>& key) {
  return key ? std::optional(KeyToText(*key)) : std::nullopt;
}

std::vector<std::string> Sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

bool IsWhole(const Selection& asked) {
  return asked.families.empty() && !asked.interval.begin &&
         !asked.interval.end;
}

// The whole directory is exchanged: it must not hold what is not asked for.
bool HoldsWhatIsAsked(const Selection& asked, const LastTransfer& last) {
  return IsWhole(asked) ||
         (Sorted(asked.families) == Sorted(last.asked_families) &&
          TextOf(asked.interval.begin) == last.begin &&
          TextOf(asked.interval.end) == last.end);
}

}  // namespace

Status CheckReplica(const PullOptions& options,
                    const std::string& source_database_id, bool* found,
                    Replica* replica) {
  std::error_code error;
  *found = std::filesystem::is_directory(options.target_dir, error) &&
           !std::filesystem::is_empty(options.target_dir, error);
  *replica = Replica();
  if (!*found) {
    return Status::OK();  // or something that Workspace refuses
  }
  LastTransfer last;
  const bool remembers = ReadLastTransfer(options.target_dir, &last) &&
                         !last.source_database_id.empty();
  if (!remembers && !options.adopt) {
    return Refused(options,
                   " does not remember which source it was pulled from (no " +
                       std::string(kLastTransferName) + " that says so); "
                       "--adopt replaces all it holds");
  }
  if (remembers && !source_database_id.empty() && !options.adopt &&
      last.source_database_id != source_database_id) {
    return Refused(options, " was pulled from another source (database " +
                                last.source_database_id + "; now " +
                                options.source.ToString() + ", database " +
                                source_database_id +
                                "); --adopt replaces all it holds");
  }
  if (!HoldsWhatIsAsked(options.selection, last)) {
    return Refused(options,
                   " may hold more than the column families and keys that are "
                   "asked for, and an exchange would take away the rest: ask "
                   "for all, or for what it was pulled with");
  }
  replica->sequence = last.snapshot_sequence.value_or(0);
  replica->families = last.column_families;
  return CheckExchangeable(options.target_dir);
}

Status ChooseSourceId(const PullOptions& options,
                      std::string* source_database_id) {
  const std::string& given = options.source_id;
  if (source_database_id->empty()) {
    *source_database_id = given;
  }
  if (!given.empty() && given != *source_database_id) {
    return MakeStatus(EndState::kRefused,
                      "source id: expected that of " +
                          options.source.ToString() + ", " +
                          *source_database_id + ", found " + given +
                          "; --source-id is for a source that has none");
  }
  if (source_database_id->empty() && options.mode == PullMode::kRefresh) {
    return MakeStatus(EndState::kRefused,
                      "source " + options.source.ToString() +
                          " has no database id (no IDENTITY) to remember it "
                          "by; --source-id gives it one");
  }
  return Status::OK();
}

}  // namespace sstferry
