#include "pipeline/base/last_transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <nlohmann/json.hpp>

#include "sstferry/options.h"

namespace sstferry {
namespace {

using nlohmann::json;

// Far above the largest summary, with kMaxFamilies families.
constexpr size_t kMaxSummaryBytes = 16u << 20;

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

}  // namespace

std::string ReadStart(const std::string& path, size_t bytes) {
  // O_NONBLOCK: the open of a FIFO must not wait for a writer.
  const int file =
      open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat info;
  std::string start;
  if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
    start.resize(std::min<size_t>(static_cast<size_t>(info.st_size), bytes));
  }
  size_t have = 0;
  while (have < start.size()) {
    const ssize_t done =
        pread(file, start.data() + have, start.size() - have,
              static_cast<off_t>(have));
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done <= 0) {
      start.clear();
      break;
    }
    have += static_cast<size_t>(done);
  }
  if (file >= 0) {
    close(file);
  }
  return start;
}

std::string SelectionWords(const LastTransfer& last) {
  std::string words;
  for (const std::string& family : last.asked_families) {
    words += " --cf " + ShellWord(family);
  }
  if (last.begin.has_value()) {
    words += " --begin " + ShellWord(*last.begin);
  }
  if (last.end.has_value()) {
    words += " --end " + ShellWord(*last.end);
  }
  return words;
}

bool ReadLastTransfer(const std::string& directory, LastTransfer* out) {
  *out = LastTransfer();
  const json object = json::parse(
      ReadStart(directory + "/" + kLastTransferName, kMaxSummaryBytes),
      nullptr, /*allow_exceptions=*/false);
  out->transfer_id = Text(object, "transfer_id").value_or("");
  out->source = Text(object, "source").value_or("");
  out->finished_at = Text(object, "finished_at").value_or("");
  out->source_database_id = Text(object, "source_database_id").value_or("");
  out->snapshot_sequence = Number(object, "snapshot_sequence");
  out->snapshot_taken_at = Text(object, "snapshot_taken_at").value_or("");
  out->method = Text(object, "method").value_or("");
  out->column_families = Texts(object, "column_families");
  if (const json* asked = Member(object, "selection")) {
    out->asked_families = Texts(*asked, "column_families");
    out->begin = Text(*asked, "begin");
    out->end = Text(*asked, "end");
  }
  const json* verified = Member(object, "verified");
  out->verified = verified != nullptr && verified->is_boolean() &&
                  verified->get<bool>();
  return !out->transfer_id.empty();
}

}  // namespace sstferry
