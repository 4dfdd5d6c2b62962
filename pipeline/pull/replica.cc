#include "pipeline/pull/replica.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "format/hex.h"
#include "format/limits.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/database_files.h"

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

// Returns true if the pull asks for at least what TARGET_DIR holds: the
// exchange replaces the whole directory.
bool HoldsWhatIsAsked(const Selection& asked, const LastTransfer& last) {
  return IsWhole(asked) ||
         (Sorted(asked.families) == Sorted(last.asked_families) &&
          TextOf(asked.interval.begin) == last.begin &&
          TextOf(asked.interval.end) == last.end);
}

Status OfAnother(const PullOptions& options, const std::string& known,
                 const std::string& source_database_id) {
  return Refused(options, " was pulled from another source (database " + known +
                              "; now " + options.source.ToString() +
                              ", database " + source_database_id +
                              "); --adopt replaces all it holds");
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
    return Status::OK();  // Workspace refuses anything but a directory
  }
  LastTransfer last;
  const bool remembers = ReadLastTransfer(options.target_dir, &last) &&
                         !last.source_database_id.empty();
  if (!remembers && !options.adopt) {
    return Refused(options,
                   " does not remember which source it was pulled from (no " +
                       std::string(kLastTransferName) + " names it); "
                       "--adopt replaces all it holds");
  }
  if (remembers && !source_database_id.empty() && !options.adopt &&
      last.source_database_id != source_database_id) {
    return OfAnother(options, last.source_database_id, source_database_id);
  }
  if (!HoldsWhatIsAsked(options.selection, last)) {
    return Refused(options,
                   " may hold more than the column families and keys that the "
                   "pull asks for, and an exchange would remove the rest; ask "
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
                          "; leave out --source-id, which is for a source "
                          "without an id");
  }
  if (source_database_id->empty() && options.mode != PullMode::kPull) {
    return MakeStatus(EndState::kRefused,
                      "source " + options.source.ToString() +
                          " has no database id (no IDENTITY) by which the "
                          "target could remember it; --source-id gives it "
                          "one");
  }
  return Status::OK();
}

bool FindOwnTransfer(const std::string& dir, TransferId* id) {
  *id = TransferId();
  LastTransfer last;
  if (!ReadLastTransfer(dir, &last)) {
    return !HoldsDatabase(dir);
  }
  bool is_id = last.transfer_id.size() == 2 * id->size();
  for (size_t i = 0; is_id && i < id->size(); ++i) {
    const auto byte =
        HexByte(last.transfer_id[2 * i], last.transfer_id[2 * i + 1]);
    is_id = byte.has_value();
    (*id)[i] = byte.value_or(0);
  }
  return is_id;
}

}  // namespace sstferry
