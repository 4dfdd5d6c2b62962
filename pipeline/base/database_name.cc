#include "pipeline/base/database_name.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/printable.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr char kOldMark[] = ".old-";

bool IsNameByte(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

// Returns true for names like "users.old-20261125T020003Z", possibly followed
// by more text.
bool IsOldDirectory(const std::string& component) {
  const size_t mark = component.rfind(kOldMark);
  if (mark == std::string::npos) {
    return false;
  }
  const std::string time = component.substr(mark + std::strlen(kOldMark));
  constexpr size_t kDateDigits = 8;
  constexpr size_t kTimeBytes = 16;
  return time.size() >= kTimeBytes && time[kDateDigits] == 'T' &&
         time[kTimeBytes - 1] == 'Z' &&
         std::all_of(time.begin(), time.begin() + kDateDigits,
                     [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<std::string> ComponentsOf(const std::string& name) {
  std::vector<std::string> components;
  size_t begin = 0;
  for (;;) {
    const size_t slash = name.find('/', begin);
    components.push_back(name.substr(begin, slash - begin));
    if (slash == std::string::npos) {
      return components;
    }
    begin = slash + 1;
  }
}

bool IsValidDatabaseName(const std::string& name) {
  if (name.empty() || name.size() > kMaxDatabaseNameBytes) {
    return false;
  }
  const std::vector<std::string> components = ComponentsOf(name);
  return components.size() <= kMaxDatabaseNameComponents &&
         std::all_of(components.begin(), components.end(),
                     [](const std::string& one) {
                       return !one.empty() && one != "." && one != ".." &&
                              std::all_of(one.begin(), one.end(), IsNameByte);
                     });
}

bool IsReservedComponent(const std::string& component) {
  return component.find(".sstferry") != std::string::npos ||
         component.starts_with("sstferry.") || IsOldDirectory(component);
}

std::string DateInName(uint64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return std::string(text.data());
}

std::string OldDirectorySuffix(uint64_t seconds) {
  return kOldMark + DateInName(seconds);
}

Status CheckReplicaName(const std::string& name) {
  const auto refused = [&name](const std::string& why) {
    return MakeStatus(EndState::kRefused, "database '" + Printable(name) +
                                              "' of the source: " + why);
  };
  if (!IsValidDatabaseName(name)) {
    return refused(std::string("expected a name of ") + kDatabaseNameGrammar);
  }
  for (const std::string& component : ComponentsOf(name)) {
    if (IsReservedComponent(component)) {
      return refused("expected no component that sstferry reserves for its own "
                     "files, found " + component);
    }
  }
  return Status::OK();
}

}  // namespace sstferry
