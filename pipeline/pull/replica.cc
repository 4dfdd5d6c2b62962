#include "pipeline/pull/replica.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "format/hex.h"
#include "format/limits.h"
#include "pipeline/base/standby_files.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/pull/closed_files.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Maximum number of times that WALs are listed and read. A flush of the
// application may delete a WAL after it was listed.
constexpr int kTriesBetweenFlushes = 5;

Status Refused(const PullOptions& options, const std::string& what,
               const std::string& next = "") {
  return MakeStatus(EndState::kRefused,
                    "target " + options.target_dir + what, next);
}

// Returns the key that KeyToText() has converted to `text`.
std::string KeyOfText(const std::string& text) {
  if (!text.starts_with("0x")) {
    return text;
  }
  std::string key;
  for (size_t i = 2; i + 1 < text.size(); i += 2) {
    key += static_cast<char>(HexByte(text[i], text[i + 1]).value_or(0));
  }
  return key;
}

// Returns true if `held` includes everything in `asked`, in each of the orders.
bool IsWithin(const SelectionText& asked, const SelectionText& held,
              const std::vector<const rocksdb::Comparator*>& orders) {
  const auto has = [&held](const std::string& family) {
    return std::find(held.families.begin(), held.families.end(), family) !=
           held.families.end();
  };
  const bool families =
      held.families.empty() ||
      (!asked.families.empty() &&
       std::all_of(asked.families.begin(), asked.families.end(), has));
  const auto compare = [](const rocksdb::Comparator* order,
                          const std::optional<std::string>& a,
                          const std::optional<std::string>& b) {
    return order->Compare(KeyOfText(*a), KeyOfText(*b));
  };
  const auto holds_keys = [&](const rocksdb::Comparator* order) {
    return (!held.begin ||
            (asked.begin && compare(order, asked.begin, held.begin) >= 0)) &&
           (!held.end ||
            (asked.end && compare(order, asked.end, held.end) <= 0));
  };
  return families && std::all_of(orders.begin(), orders.end(), holds_keys);
}

std::string TargetCommand(const PullOptions& options) {
  return std::string("sstferry ") + PullModeName(options.mode) + " " +
         ShellWord(options.source.ToString()) + " " +
         ShellWord(options.target_dir);
}

Status OfAnother(const PullOptions& options, const std::string& known,
                 const std::string& source_database_id) {
  return Refused(options, " was pulled from another source (database " + known +
                              "; now " + options.source.ToString() +
                              ", database " + source_database_id +
                              "); --adopt replaces all of its data");
}

// Sets *sequence to the last sequence number of the database in `dir`, which
// may be open.
//   kCorrupt   the MANIFEST is damaged or missing
//   kRefused, kInternal  CURRENT, the MANIFEST or a WAL cannot be read
Status ReadOwnSequence(rocksdb::FileSystem* file_system,
                       const std::string& dir, uint64_t* sequence) {
  bool has_read = false;
  uint64_t newest = 0;
  for (int i = 0; !has_read && i < kTriesBetweenFlushes; ++i) {
    WalFacts wals;
    has_read = ReadWalFacts(file_system, dir, /*oldest=*/0, &wals);
    newest = wals.newest_sequence();
  }
  // Read the MANIFEST after the WALs. If a flush has deleted a WAL meanwhile,
  // the MANIFEST already has the sequence number of its entries.
  ManifestReader manifest;
  RETURN_IF_ERROR(ReadManifest(file_system, dir, &manifest, /*found=*/nullptr,
                               EndState::kInternal));
  if (!has_read) {
    return MakeStatus(EndState::kInternal,
                      "a WAL in " + dir + " cannot be read");
  }
  *sequence = std::max(manifest.state().last_sequence, newest);
  return Status::OK();
}

}  // namespace

std::string InPlaceCommand(const PullOptions& options) {
  return TargetCommand(options) + SelectionWords(TextOf(options.selection)) +
         " --method ingest";
}

Status CheckNotMore(const PullOptions& options, const LastTransfer& last,
                    const std::vector<const rocksdb::Comparator*>& orders) {
  const SelectionText asked = TextOf(options.selection);
  // Refuse a complete pull if the replica was adopted in parts, because the
  // parts may only look complete.
  const bool is_more = asked.is_all() && last.holds_more;
  if (options.adopt || (IsWithin(asked, last.holds, orders) && !is_more)) {
    return Status::OK();
  }
  const std::string held = SelectionWords(last.holds);
  return Refused(options,
                 " was pulled " + (held.empty() ? "in parts" : "with" + held) +
                     ", and this command asks for more, which needs --adopt",
                 held.empty() ? "" : TargetCommand(options) + held);
}

SelectionText HeldAfterRefresh(
    const PullOptions& options, const LastTransfer& last,
    const std::vector<const rocksdb::Comparator*>& orders) {
  const SelectionText asked = TextOf(options.selection);
  if (last.transfer_id.empty() || asked.is_all()) {
    return asked;
  }
  if (IsWithin(asked, last.holds, orders)) {
    return last.holds;
  }
  SelectionText both = last.holds;
  if (both.families.empty() || asked.families.empty()) {
    both.families.clear();
  } else {
    std::set<std::string> all(both.families.begin(), both.families.end());
    all.insert(asked.families.begin(), asked.families.end());
    both.families.assign(all.begin(), all.end());
  }
  if (both.begin != asked.begin) both.begin.reset();
  if (both.end != asked.end) both.end.reset();
  return both;
}

bool HoldsMoreAfterRefresh(const PullOptions& options,
                           const LastTransfer& last) {
  const bool held_more = last.transfer_id.empty() || last.holds_more;
  return held_more && !TextOf(options.selection).is_all();
}

Status CheckReplica(const PullOptions& options,
                    const std::string& source_database_id, bool* found,
                    Replica* replica) {
  std::error_code error;
  *found = std::filesystem::is_directory(options.target_dir, error) &&
           !std::filesystem::is_empty(options.target_dir, error);
  *replica = Replica();
  if (!*found) {
    return Status::OK();  // Workspace refuses a file
  }
  LastTransfer last;
  const bool remembers =
      ReadLastTransfer(options.target_dir, &last) && last.is_copy();
  if (!remembers && !options.adopt) {
    return Refused(options,
                   (last.promoted_at.empty()
                        ? std::string(" has no record of the source it was "
                                      "pulled from (no ") +
                              kLastTransferName + " names it)"
                        : " was promoted at " + last.promoted_at +
                              ", and is no copy since") +
                       "; --adopt replaces all of its data");
  }
  if (remembers && !source_database_id.empty() && !options.adopt &&
      last.source_database_id != source_database_id) {
    return OfAnother(options, last.source_database_id, source_database_id);
  }
  const SelectionText asked = TextOf(options.selection);
  if (!asked.is_all() && (asked != last.holds || last.holds_more)) {
    return Refused(options,
                   " may hold more than the column families and keys that the "
                   "pull asks for, and an exchange would remove the rest",
                   !last.holds_more
                       ? TargetCommand(options) + SelectionWords(last.holds)
                   : options.mode == PullMode::kRefresh
                       ? InPlaceCommand(options)
                       : "");
  }
  // Every order gives the same result here, because the pull asks for all data
  // or for the selection of the record.
  RETURN_IF_ERROR(
      CheckNotMore(options, last, {rocksdb::BytewiseComparator()}));
  replica->sequence = last.snapshot_sequence.value_or(0);
  replica->families = last.column_families;
  return CheckExchangeable(
      options.target_dir,
      options.mode == PullMode::kRefresh ? InPlaceCommand(options) : "");
}

Status CheckNoStandby(const PullOptions& options) {
  return IsStandby(options.target_dir)
             ? Refused(options,
                       " is a standby, which only its follower makes current",
                       MendStandbyCommand(options.source.ToString(),
                                          options.target_dir) +
                           AccessWords(options, options.source))
             : Status::OK();
}

Status CheckNotNewer(const PullOptions& options, const LastTransfer& last,
                     uint64_t own, uint64_t sequence) {
  if (options.adopt || !HasMoreWrites(last, own, sequence)) {
    return Status::OK();
  }
  return Refused(
      options, std::string(" is newer than its source: an application ") +
               (last.ingesting ? "or an interrupted refresh " : "") +
               "has written to it, from sequence " +
               std::to_string(*last.target_sequence) +
               " to " + std::to_string(own) + ", since the last transfer, and "
               "its source " + options.source.ToString() +
               " went only from sequence " +
               std::to_string(*last.snapshot_sequence) + " to " +
               std::to_string(sequence) +
               "; if TARGET_DIR has replaced the source, disable this job; " +
               (last.ingesting ? "the interrupted refresh in place can be run "
                                 "again; "
                               : "") +
               "--adopt replaces all of its data");
}

Status CheckSourceNotOlder(rocksdb::FileSystem* file_system,
                           const PullOptions& options, uint64_t sequence) {
  const std::string& dir = options.target_dir;
  bool found = false;
  LastTransfer last;
  Status read = options.adopt ? Status::OK()
                              : FindLastTransfer(dir, &found, &last);
  std::error_code error;
  if (read.ok() &&
      (!found || !last.target_sequence ||
       std::filesystem::symlink_status(dir + "/CURRENT", error).type() ==
           std::filesystem::file_type::not_found)) {
    return Status::OK();
  }
  uint64_t own = 0;
  read = read.ok() ? ReadOwnSequence(file_system, dir, &own) : read;
  if (EndStateOf(read) == EndState::kCorrupt) {
    return Status::OK();  // an exchange also repairs it
  }
  if (!read.ok()) {
    return Refused(options,
                   ": cannot find out if an application has written to it "
                   "since its last transfer: " + SentenceOf(read) +
                       "; --adopt replaces all of its data");
  }
  return CheckNotNewer(options, last, own, sequence);
}

Status ChooseSourceId(const PullOptions& options,
                      std::string* source_database_id) {
  const std::string& given = options.source_id;
  if (source_database_id->empty()) {
    *source_database_id = given;
  }
  if (!given.empty() && given != *source_database_id) {
    return MakeStatus(EndState::kRefused,
                      "source id: expected " + *source_database_id +
                          ", the id of " + options.source.ToString() +
                          ", found " + given +
                          "; leave out --source-id, which is for a source "
                          "without an id");
  }
  if (source_database_id->empty() && options.mode != PullMode::kPull) {
    return MakeStatus(EndState::kRefused,
                      "source " + options.source.ToString() +
                          " has no database id (no IDENTITY) by which the "
                          "target can recognize it later; give it one with "
                          "--source-id");
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
