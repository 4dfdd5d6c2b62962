#include "pipeline/base/last_transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "pipeline/base/standby_record.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using rocksdb::Status;

// Maximum size of the record. A summary with kMaxFamilies families is much
// smaller.
constexpr size_t kMaxSummaryBytes = 16u << 20;

// Members of the record.
constexpr char kIngesting[] = "ingesting";
constexpr char kStartSequence[] = "last_sequence";
constexpr char kStartTable[] = "last_table";

const json* Member(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nullptr : &*found;
}

std::optional<std::string> Text(const json& object, const char* name) {
  const json* member = Member(object, name);
  return member != nullptr && member->is_string()
             ? std::optional(member->get<std::string>())
             : std::nullopt;
}

std::optional<uint64_t> Number(const json& object, const char* name) {
  const json* member = Member(object, name);
  return member != nullptr && member->is_number_unsigned()
             ? std::optional(member->get<uint64_t>())
             : std::nullopt;
}

std::vector<std::string> Texts(const json& object, const char* name) {
  std::vector<std::string> texts;
  const json* member = Member(object, name);
  if (member == nullptr || !member->is_array()) {
    return texts;
  }
  for (const json& text : *member) {
    if (text.is_string()) {
      texts.push_back(text.get<std::string>());
    }
  }
  return texts;
}

SelectionText SelectionOf(const json& object, const char* name) {
  SelectionText selection;
  if (const json* member = Member(object, name)) {
    selection.families = Texts(*member, "column_families");
    selection.begin = Text(*member, "begin");
    selection.end = Text(*member, "end");
  }
  return selection;
}

// Opens the directory that the operator specified. Resolves its path first, and
// then follows no symbolic link that another process puts into the path.
Descriptor OpenResolved(const std::string& directory) {
  if (directory.starts_with("/proc/self/fd/")) {
    return OpenDirectory(directory);
  }
  std::error_code error;
  const std::string real =
      std::filesystem::canonical(directory, error).string();
  if (error) {
    errno = error.value();
    return Descriptor();
  }
  return OpenDirectory(real);
}

Status Unreadable(const std::string& path, int error) {
  const bool is_denied = error == EACCES || error == EPERM;
  return MakeStatus(
      is_denied ? EndState::kDenied : EndState::kInternal,
      "cannot read " + path + ": " + std::strerror(error) +
          (is_denied ? "; run as the owner of that directory, or as root"
                     : ""));
}

// Parses the text of a record, which the caller will change and write again. If
// `text` is not a record, the result is not a JSON object.
ordered_json ParseRecord(const std::string& text) {
  return ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string DumpRecord(const ordered_json& object) {
  return object.dump(2, ' ', false,
                     ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Status ReadRecord(const std::string& path, size_t bytes, bool* found,
                  std::string* text) {
  text->clear();
  *found = false;
  struct stat link;
  if (lstat(path.c_str(), &link) != 0 &&
      (errno == ENOENT || errno == ENOTDIR)) {
    return Status::OK();  // the usual case: no record
  }
  const size_t slash = path.rfind('/');
  const Descriptor directory = OpenResolved(path.substr(0, slash));
  if (!directory.is_open()) {
    // After other errors, such as EACCES, the record may exist.
    *found = errno != ENOENT && errno != ENOTDIR;
    return *found ? Unreadable(path, errno) : Status::OK();
  }
  const Descriptor file =
      OpenIn(directory.get(), path.substr(slash + 1), O_RDONLY);
  const int error = errno;
  if (!file.is_open() && (error == ENOENT || error == ENOTDIR)) {
    return Status::OK();
  }
  *found = true;
  if (!file.is_open() && (error == ELOOP || error == ENXIO)) {
    return Status::OK();  // a symbolic link, or a socket
  }
  if (!file.is_open()) {
    return Unreadable(path, error);
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0) {
    return Unreadable(path, errno);
  }
  if (S_ISREG(info.st_mode)) {
    text->resize(std::min<size_t>(static_cast<size_t>(info.st_size), bytes));
  }
  size_t have = 0;
  while (have < text->size()) {
    const ssize_t done = pread(file.get(), text->data() + have,
                               text->size() - have, static_cast<off_t>(have));
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done < 0) {
      const int failed = errno;
      text->clear();
      return Unreadable(path, failed);
    }
    if (done == 0) {
      text->clear();  // the file was truncated meanwhile
      break;
    }
    have += static_cast<size_t>(done);
  }
  return Status::OK();
}

std::string ReadStart(const std::string& path, size_t bytes) {
  bool found = false;
  std::string start;
  ReadRecord(path, bytes, &found, &start).PermitUncheckedError();
  return start;
}

SelectionText TextOf(const Selection& selection) {
  const auto text = [](const std::optional<std::string>& key) {
    return key ? std::optional(KeyToText(*key)) : std::nullopt;
  };
  SelectionText recorded;
  recorded.families = selection.families;
  std::sort(recorded.families.begin(), recorded.families.end());
  recorded.begin = text(selection.interval.begin);
  recorded.end = text(selection.interval.end);
  return recorded;
}

bool HasMoreWrites(const LastTransfer& last, uint64_t own, uint64_t source) {
  if (!last.snapshot_sequence || !last.target_sequence ||
      own <= *last.target_sequence) {
    return false;
  }
  const uint64_t here = own - *last.target_sequence;
  const uint64_t there = source - std::min(source, *last.snapshot_sequence);
  return here > there;
}

std::optional<ReplicaMoment> MomentOf(const LastTransfer& last) {
  ReplicaMoment moment;
  if (!ParseRfc3339(last.snapshot_taken_at, &moment.seconds)) {
    return std::nullopt;
  }
  uint64_t finished = 0;
  // The first 19 characters are the time without the fraction of a second.
  if (ParseRfc3339(last.finished_at.substr(0, 19) + "Z", &finished)) {
    moment.source_ahead_seconds =
        moment.seconds - std::min(moment.seconds, finished);
  }
  moment.seconds -= moment.source_ahead_seconds;
  return moment;
}

std::string LastTransferText(const Summary& summary,
                             const SelectionText& holds, bool holds_more,
                             const LastTransfer& before) {
  const std::string text = SummaryToJson(summary, summary.mode);
  const bool holds_asked = holds == TextOf(summary.selection);
  if (holds_asked && !holds_more) {
    return text + "\n";
  }
  const auto bound = [](const std::optional<std::string>& key) {
    return key ? ordered_json(*key) : ordered_json();
  };
  ordered_json object = ordered_json::parse(text);
  object["holds"] = {{"column_families", holds.families},
                     {"begin", bound(holds.begin)},
                     {"end", bound(holds.end)}};
  object["holds_more"] = holds_more;
  if (!holds_asked) {
    object["snapshot_taken_at"] = nullptr;
    object["snapshot_taken_seconds"] = nullptr;
    if (const std::optional<ReplicaMoment> moment = MomentOf(before)) {
      object["snapshot_taken_at"] = Rfc3339(moment->seconds);
      object["snapshot_taken_seconds"] = moment->seconds;
    }
  }
  return DumpRecord(object);
}

Status FormatSequences(const std::string& directory, const LastTransfer& last,
                       std::string* text) {
  text->clear();
  bool found = false;
  std::string before;
  RETURN_IF_ERROR(ReadRecord(directory + "/" + kLastTransferName,
                             kMaxSummaryBytes, &found, &before));
  ordered_json object = ParseRecord(before);
  if (!object.is_object()) {
    return Status::OK();
  }
  object["target_sequence"] = nullptr;
  if (last.target_sequence) {
    object["target_sequence"] = *last.target_sequence;
  }
  object.erase(kIngesting);
  if (last.ingesting) {
    object[kIngesting] = {{kStartSequence, last.ingesting->sequence},
                          {kStartTable, last.ingesting->table_number}};
  }
  *text = DumpRecord(object);
  return Status::OK();
}

std::string PromotedTransferText(const std::string& directory,
                                 uint64_t sequence, uint64_t moment_micros) {
  ordered_json object = ParseRecord(
      ReadStart(directory + "/" + kLastTransferName, kMaxSummaryBytes));
  if (!object.is_object()) {
    object = ordered_json::object();
  }
  const std::string now = Rfc3339(static_cast<uint64_t>(std::time(nullptr)));
  const uint64_t moment_seconds = moment_micros / 1'000'000;
  object["promoted"] = {{"at", now},
                        {"cut_sequence", object["snapshot_sequence"]},
                        {"cut_finished_at", object["finished_at"]}};
  object["command"] = "promote";
  object["finished_at"] = now;
  object["snapshot_sequence"] = sequence;
  object["snapshot_taken_at"] = nullptr;
  object["snapshot_taken_seconds"] = nullptr;
  if (moment_seconds != 0) {
    object["snapshot_taken_at"] = Rfc3339(moment_seconds);
    object["snapshot_taken_seconds"] = moment_seconds;
  }
  return DumpRecord(object);
}

std::string SelectionWords(const SelectionText& selection) {
  std::string words;
  for (const std::string& family : selection.families) {
    words += " --cf " + ShellWord(family);
  }
  if (selection.begin.has_value()) {
    words += " --begin " + ShellWord(*selection.begin);
  }
  if (selection.end.has_value()) {
    words += " --end " + ShellWord(*selection.end);
  }
  return words;
}

bool ReadLastTransfer(const std::string& directory, LastTransfer* out) {
  bool found = false;
  FindLastTransfer(directory, &found, out).PermitUncheckedError();
  return found;
}

Status FindLastTransfer(const std::string& directory, bool* found,
                        LastTransfer* out) {
  *out = LastTransfer();
  bool exists = false;
  std::string text;  // stays empty after an error
  const Status status = ReadRecord(directory + "/" + kLastTransferName,
                                   kMaxSummaryBytes, &exists, &text);
  const json object =
      json::parse(text, nullptr, /*allow_exceptions=*/false);
  out->transfer_id = Text(object, "transfer_id").value_or("");
  out->source = Text(object, "source").value_or("");
  out->finished_at = Text(object, "finished_at").value_or("");
  // Ignore a promotion that was killed before it wrote CURRENT: the directory
  // is still a standby.
  const json* const promoted = Member(object, "promoted");
  if (promoted != nullptr && !IsStandby(directory)) {
    out->promoted_at = Text(*promoted, "at").value_or("");
  }
  out->source_database_id = Text(object, "source_database_id").value_or("");
  out->snapshot_sequence = Number(object, "snapshot_sequence");
  out->target_sequence = Number(object, "target_sequence");
  if (const json* const begun = Member(object, kIngesting)) {
    // If the sequence number is unknown, uses the highest one. Then all numbers
    // count as an application's writes.
    out->ingesting = IngestionStart{
        Number(*begun, kStartSequence).value_or(UINT64_MAX),
        Number(*begun, kStartTable).value_or(0)};
  }
  out->snapshot_taken_at = Text(object, "snapshot_taken_at").value_or("");
  out->method = Text(object, "method").value_or("");
  if (!out->target_sequence && out->method == "clone") {
    out->target_sequence = out->snapshot_sequence;
  }
  out->column_families = Texts(object, "column_families");
  out->asked = SelectionOf(object, "selection");
  out->holds = Member(object, "holds") != nullptr
                   ? SelectionOf(object, "holds")
                   : out->asked;
  const json* const more = Member(object, "holds_more");
  out->holds_more =
      more != nullptr && !(more->is_boolean() && !more->get<bool>());
  const json* verified = Member(object, "verified");
  out->verified = verified != nullptr && verified->is_boolean() &&
                  verified->get<bool>();
  *found = !out->transfer_id.empty();
  return status;
}

}  // namespace sstferry
