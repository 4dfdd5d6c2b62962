#include "format/clone_file.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "format/end_state.h"
#include "format/file_name.h"
#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr char kIdentityName[] = "IDENTITY";

// Prefix and suffix of the name of a numbered file.
struct Naming {
  CloneFileKind kind;
  const char* prefix;
  const char* suffix;
};
constexpr Naming kNamings[] = {
    {CloneFileKind::kTable, "", ".sst"},
    {CloneFileKind::kBlob, "", ".blob"},
    {CloneFileKind::kWal, "", ".log"},
    {CloneFileKind::kManifest, "MANIFEST-", ""},
    {CloneFileKind::kOptions, "OPTIONS-", ""},
};

// Maximum number of digits of a file number. Databases do not reach such
// numbers, and they still fit into the buffer of NumberedName().
constexpr size_t kMaxDigits = 19;

bool ParseNumber(const std::string& digits, uint64_t* number) {
  const bool good =
      !digits.empty() && digits.size() <= kMaxDigits &&
      std::all_of(digits.begin(), digits.end(),
                  [](char c) { return c >= '0' && c <= '9'; });
  *number = good ? std::strtoull(digits.c_str(), nullptr, 10) : 0;
  return good;
}

// Returns the maximum size of a file of this kind. Tables, blob files and WALs
// are read in pieces, so their size is not limited.
uint64_t MaxBytes(CloneFileKind kind) {
  switch (kind) {
    case CloneFileKind::kManifest:
      return kMaxManifestFileBytes;
    case CloneFileKind::kOptions:
      return kMaxOptionsFileBytes;
    case CloneFileKind::kIdentity:
      return kMaxIdentityBytes;
    default:
      return UINT64_MAX;
  }
}

Status BadSet(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "files of the clone: " + what);
}

}  // namespace

std::string CloneFileName(const CloneFile& file) {
  for (const Naming& naming : kNamings) {
    if (naming.kind == file.kind) {
      return naming.prefix + NumberedName(file.number, naming.suffix);
    }
  }
  return kIdentityName;
}

bool ParseCloneFileName(const std::string& name, CloneFile* file) {
  if (name == kIdentityName) {
    *file = CloneFile{CloneFileKind::kIdentity};
    return true;
  }
  for (const Naming& naming : kNamings) {
    const std::string prefix = naming.prefix;
    const std::string suffix = naming.suffix;
    if (name.size() <= prefix.size() + suffix.size() ||
        !name.starts_with(prefix) || !name.ends_with(suffix)) {
      continue;
    }
    const std::string digits = name.substr(
        prefix.size(), name.size() - prefix.size() - suffix.size());
    uint64_t number = 0;
    if (ParseNumber(digits, &number)) {
      *file = CloneFile{naming.kind, number};
      return true;
    }
  }
  return false;
}

namespace {

// Returns the offset of the table's tail, or the file's size if the table has
// no unit for its tail.
uint64_t TailBegin(const CloneFile& file, uint64_t unit_bytes) {
  if (file.kind != CloneFileKind::kTable ||
      file.bytes < kMinTailedTableBytes || unit_bytes == kUntailedUnitBytes) {
    return file.bytes;
  }
  uint64_t begin = file.bytes - file.bytes / kCloneTailShare;
  begin -= begin % kCloneTailAlignment;
  return file.bytes - begin <= unit_bytes ? begin : file.bytes;
}

}  // namespace

Status CutIntoUnits(const std::vector<CloneFile>& files, uint64_t unit_bytes,
                    std::vector<Part>* units) {
  units->clear();
  for (size_t i = 0; i < files.size(); ++i) {
    const uint64_t bytes = files[i].bytes;
    const uint64_t tail = TailBegin(files[i], unit_bytes);
    const uint64_t count = tail / unit_bytes + (tail % unit_bytes != 0) +
                           (tail < bytes ? 1 : 0);
    if (count > kMaxParts - units->size()) {
      return MakeStatus(EndState::kRefused,
                        "clone: the database has too many files: they need "
                        "more than " +
                            std::to_string(kMaxParts) + " units of " +
                            std::to_string(unit_bytes) + " bytes");
    }
    const auto add = [&](uint64_t begin, uint64_t end) {
      Part unit;
      unit.id = static_cast<uint32_t>(units->size());
      unit.kind = PartKind::kUnit;
      unit.file = static_cast<uint32_t>(i);
      unit.offset = begin;
      unit.bytes = end - begin;
      units->push_back(std::move(unit));
    };
    for (uint64_t at = 0; at < tail; at += unit_bytes) {
      add(at, std::min(at + unit_bytes, tail));
    }
    if (tail < bytes) {
      add(tail, bytes);
    }
  }
  return Status::OK();
}

Status CheckCloneFiles(const std::vector<CloneFile>& files) {
  // RocksDB numbers all files with one counter, but a WAL may have the number
  // of another file (clone_file.h).
  std::set<std::pair<bool, uint64_t>> numbers;
  std::set<CloneFileKind> once;
  for (const CloneFile& file : files) {
    const bool single = file.kind == CloneFileKind::kManifest ||
                        file.kind == CloneFileKind::kOptions ||
                        file.kind == CloneFileKind::kIdentity;
    if (single && !once.insert(file.kind).second) {
      return BadSet("expected one file of this kind, found a second one, " +
                 CloneFileName(file));
    }
    if (file.bytes > MaxBytes(file.kind)) {
      return BadSet(CloneFileName(file) + ": expected at most " +
                    std::to_string(MaxBytes(file.kind)) + " bytes, found " +
                    std::to_string(file.bytes));
    }
    if (file.records_end > file.bytes) {
      return BadSet(CloneFileName(file) +
                 ": expected records that end within its " +
                 std::to_string(file.bytes) + " bytes, found " +
                 std::to_string(file.records_end));
    }
    const bool numbered = file.kind != CloneFileKind::kIdentity;
    if (file.number > kMaxFileNumber || numbered != (file.number != 0)) {
      return BadSet("expected a number of 1 to " +
                    std::to_string(kMaxFileNumber) + ", found " +
                    CloneFileName(file));
    }
    const bool is_wal = file.kind == CloneFileKind::kWal;
    if (numbered && !numbers.insert({is_wal, file.number}).second) {
      return BadSet("expected each file number once, found the number of " +
                 CloneFileName(file) + " twice");
    }
  }
  return once.count(CloneFileKind::kManifest) != 0
             ? Status::OK()
             : BadSet("expected a MANIFEST, found none");
}

}  // namespace sstferry
