#include "format/release.h"

#include <iterator>

namespace sstferry {
namespace {

constexpr uint32_t kMaxNumber = 9999;
constexpr uint32_t kOldestFormatVersion = 5;
constexpr uint32_t kOldestKeptFormatVersion = 2;
// Value for a format_version that no known release can read.
constexpr RocksDbRelease kNone{kMaxNumber, 0, 0};

}  // namespace

std::string ReleaseName(const RocksDbRelease& release) {
  if (!release.is_known()) {
    return "";
  }
  if (release == kNone) {
    return "(unknown)";
  }
  std::string name =
      std::to_string(release.major) + "." + std::to_string(release.minor);
  if (release.patch != 0) {
    name += "." + std::to_string(release.patch);
  }
  return name;
}

std::string ReleaseNumbers(const RocksDbRelease& release) {
  return std::to_string(release.major) + "." + std::to_string(release.minor) +
         "." + std::to_string(release.patch);
}

bool ParseRelease(const rocksdb::Slice& text, RocksDbRelease* release) {
  *release = RocksDbRelease();
  uint32_t* const numbers[] = {&release->major, &release->minor,
                               &release->patch};
  size_t at = 0;
  for (size_t i = 0; i < std::size(numbers); ++i) {
    const size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9' &&
           *numbers[i] <= kMaxNumber) {
      *numbers[i] = *numbers[i] * 10 + static_cast<uint32_t>(text[at++] - '0');
    }
    if (at == begin || *numbers[i] > kMaxNumber) {
      *release = RocksDbRelease();
      return false;
    }
    if (at == text.size()) {
      break;
    }
    const bool more = i + 1 < std::size(numbers);
    if (text[at] != '.' && (more || text[at] != '-')) {
      *release = RocksDbRelease();
      return false;
    }
    ++at;
  }
  return release->is_known();
}

RocksDbRelease FirstWithFormat(uint32_t format_version) {
  for (const RocksDbRelease& first :
       {RocksDbRelease{6, 6, 0}, RocksDbRelease{8, 6, 0},
        RocksDbRelease{10, 4, 0}, RocksDbRelease{11, 10, 0}}) {
    if (format_version <= MaxFormatVersion(first)) {
      return first;
    }
  }
  return kNone;
}

void Needs::Add(const RocksDbRelease& release, const std::string& what) {
  if (latest_.release < release) {
    latest_ = {release, what};
  }
}

void Needs::AddFormatVersion(uint32_t format_version) {
  has_old_formats_ |= format_version < kOldestKeptFormatVersion;
  if (format_version > kOldestFormatVersion) {
    Add(FirstWithFormat(format_version),
        "format_version " + std::to_string(format_version));
  }
}

void Needs::AddWalRecord(uint8_t type) {
  constexpr uint8_t kCompression = 9;
  constexpr uint8_t kFirstIgnorable = 128;
  const std::string what = "WAL records of type " + std::to_string(type);
  if (type == kCompression) {
    Add(kReadsCompressedWals, what);
  } else if (type > kCompression && type < kFirstIgnorable) {
    Add(kReadsTimestampRecords, what);
  } else if (type >= kFirstIgnorable) {
    Add(kIgnoresWalRecords, what);
  }
}

}  // namespace sstferry
