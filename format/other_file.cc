#include "format/other_file.h"

#include <algorithm>
#include <set>

#include "format/end_state.h"
#include "format/printable.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Suffixes of RocksDB's numbered files.
constexpr std::string_view kNumbered[] = {".sst", ".ldb", ".blob", ".log"};
// Prefixes before a file number.
constexpr std::string_view kBeforeNumber[] = {
    "MANIFEST-", "OPTIONS-", "METADB-", "COMPACTION_PROGRESS-"};
constexpr std::string_view kWholeNames[] = {"CURRENT", "IDENTITY", "LOCK",
                                            "LOG"};
// RocksDB adds the first suffix to the name of a file that it is still writing.
// It adds the second suffix to the name of a file that it will delete.
constexpr std::string_view kTemporary[] = {".dbtmp", ".trash"};

// Converts without the locale, so that the result does not depend on the
// environment.
char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  return lower;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool BeginsWithNumber(std::string_view text) {
  return !text.empty() && IsDigit(text.front());
}

constexpr std::string_view kOurs[] = {"sstferry.health", "sstferry.files",
                                      "sstferry.old",    "sstferry.follow",
                                      "sstferry.followed", "sstferry.audit",
                                      "last_transfer.json"};

// Returns true for names that an operator might mistake for those of database
// files: 000012.sst, app.log, current, MANIFEST-old.
bool LooksLikeDatabaseFile(const std::string& lower) {
  for (const std::string_view whole : kWholeNames) {
    const std::string is = LowerCase(whole);
    if (lower == is || lower.starts_with(is + ".")) return true;
  }
  for (const std::string_view prefix : kBeforeNumber) {
    if (lower.starts_with(LowerCase(prefix))) return true;
  }
  for (const std::string_view suffix : kNumbered) {
    if (lower.ends_with(suffix)) return true;
  }
  for (const std::string_view suffix : kTemporary) {
    if (lower.ends_with(suffix)) return true;
  }
  return lower == "archive" || lower == "lost" ||
         lower.starts_with("sstferry.") ||
         lower.starts_with("last_transfer.json");
}

bool IsInAlphabet(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || IsDigit(c) ||
         c == '.' || c == '_' || c == '-';
}

}  // namespace

const char* KeptBackName(KeptBack why) {
  switch (why) {
    case KeptBack::kNo:
      return "";
    case KeptBack::kKind:
      return "is not a regular file";
    case KeptBack::kName:
      return "has a name that begins with a dot, is longer than 128 bytes, has "
             "a character other than A-Z a-z 0-9 . _ -, or resembles a "
             "database file's name";
    case KeptBack::kSecret:
      return "is a core dump or a key, judging by its name";
    case KeptBack::kSize:
      return "is larger than 16 MiB, or all such files together are larger "
             "than 64 MiB";
    case KeptBack::kAccount:
      return "belongs to another account than the directory";
  }
  return "unknown";
}

bool IsDatabaseFileName(std::string_view name) {
  for (const std::string_view whole : kWholeNames) {
    if (name == whole) return true;
  }
  for (const std::string_view prefix : kBeforeNumber) {
    if (name.starts_with(prefix) &&
        BeginsWithNumber(name.substr(prefix.size()))) {
      return true;
    }
  }
  for (const std::string_view suffix : kTemporary) {
    if (name.ends_with(suffix)) return true;
  }
  const size_t digits = static_cast<size_t>(
      std::find_if_not(name.begin(), name.end(), IsDigit) - name.begin());
  for (const std::string_view suffix : kNumbered) {
    if (digits > 0 && name.substr(digits) == suffix) return true;
  }
  std::string_view whole = name;
  if (whole.ends_with(".tmp")) {
    whole.remove_suffix(4);
  }
  return name.starts_with("LOG.old.") || name.ends_with("_LOG") ||
         name.find("_LOG.old.") != std::string_view::npos ||
         std::find(std::begin(kOurs), std::end(kOurs), whole) !=
             std::end(kOurs);
}

KeptBack JudgeOtherName(std::string_view name) {
  if (name.empty() || name.size() > kMaxOtherNameBytes ||
      name.front() == '.' ||
      !std::all_of(name.begin(), name.end(), IsInAlphabet)) {
    return KeptBack::kName;
  }
  const std::string lower = LowerCase(name);
  if (LooksLikeDatabaseFile(lower)) {
    return KeptBack::kName;
  }
  return lower.starts_with("core") || lower.ends_with(".pem") ||
                 lower.ends_with(".key")
             ? KeptBack::kSecret
             : KeptBack::kNo;
}

Status CheckOtherFiles(const std::vector<OtherFile>& files) {
  std::set<std::string> names;
  uint64_t bytes = 0;
  for (const OtherFile& file : files) {
    if (file.kept_back != KeptBack::kNo) {
      continue;
    }
    if (!MayBeCopied(file.name)) {
      return MakeStatus(
          EndState::kCorrupt,
          "other files: expected names of files that may be copied, found '" +
              Printable(file.name.substr(0, kMaxOtherNameBytes)) + "'");
    }
    if (!names.insert(LowerCase(file.name)).second) {
      return MakeStatus(EndState::kCorrupt,
                        "other files: expected each name once, found " +
                            file.name + " again");
    }
    if (file.bytes > kMaxOtherFileBytes ||
        (bytes += file.bytes) > kMaxOtherFilesBytes) {
      return MakeStatus(EndState::kCorrupt,
                        "other files: expected at most " +
                            std::to_string(kMaxOtherFileBytes) +
                            " bytes each and " +
                            std::to_string(kMaxOtherFilesBytes) +
                            " in all, found more with " + file.name);
    }
  }
  return Status::OK();
}

}  // namespace sstferry
