#include "pipeline/options/seen_options.h"

#include <cstdlib>

#include "format/limits.h"
#include "pipeline/base/open_file.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr char kOptionsPrefix[] = "OPTIONS-";
constexpr int kOptionsListings = 5;

bool ParseName(const std::string& name, uint64_t* number) {
  const size_t prefix = sizeof(kOptionsPrefix) - 1;
  if (name.rfind(kOptionsPrefix, 0) != 0 || name.size() == prefix ||
      name.find_first_not_of("0123456789", prefix) != std::string::npos) {
    return false;
  }
  *number = strtoull(name.c_str() + prefix, nullptr, 10);
  return true;
}

}  // namespace

Status SeenOptions::Look() {
  for (int listings = 0; listings < kOptionsListings; ++listings) {
    bool listed = false;
    RETURN_IF_ERROR(ReadNewer(&listed));
    if (!listed || !name_.empty()) {
      return Status::OK();
    }
  }
  return Status::TryAgain("all OPTIONS files in " + directory_ +
                          " were replaced before they were read");
}

Status SeenOptions::ReadNewer(bool* listed) {
  std::vector<std::string> names;
  Status status = ListDirectory(directory_, &names);
  std::map<uint64_t, std::string> newer;
  for (const std::string& name : names) {
    uint64_t number = 0;
    if (ParseName(name, &number) && (name_.empty() || number > number_)) {
      newer[number] = name;
    }
  }
  *listed = !newer.empty();
  for (const auto& [number, name] : newer) {
    bool found = false;
    std::string text;
    if (status.ok()) {
      status = ReadForeign(directory_ + "/" + name, kMaxOptionsFileBytes,
                             &found, &text);
    }
    if (!status.ok() || !found) {
      continue;  // the owner has replaced the file
    }
    name_ = name;
    number_ = number;
    for (auto& [family, section] : FamilySections(text)) {
      sections_[family] = std::move(section);
    }
    newest_ = OptionsText(text);
    if (newest_.HasDatabase()) {
      database_ = newest_;
    }
    text_ = std::move(text);
  }
  return status;
}

std::string SeenOptions::TextFor(
    const std::vector<std::string>& families) const {
  std::string text = text_;
  for (const std::string& family : families) {
    const auto section = sections_.find(family);
    if (!newest_.HasFamily(family) && section != sections_.end()) {
      text += "\n" + section->second;
    }
  }
  return text;
}

std::vector<std::string> SeenOptions::MissingOf(
    const std::vector<std::string>& families) const {
  std::vector<std::string> missing;
  for (const std::string& family : families) {
    if (sections_.count(family) == 0) {
      missing.push_back(family);
    }
  }
  return missing;
}

}  // namespace sstferry
