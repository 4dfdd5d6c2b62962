#include "pipeline/disk/exchange_record.h"

#include <sys/stat.h>

#include <sstream>

namespace sstferry {
namespace {

constexpr char kAdopted[] = "adopted";
constexpr char kByRefresh[] = "refresh";

// Returns true for 32 hex digits. Checked because the id becomes part of a
// directory's name.
bool IsTransferId(const std::string& text) {
  return text.size() == 32 &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string ExchangeRecord::Encode() const {
  return transfer_id + "\n" + new_identity + "\n" + old_identity + "\n" +
         (adopts_old   ? std::string(kAdopted) + "\n"
          : by_refresh ? std::string(kByRefresh) + "\n"
                       : "");
}

bool ExchangeRecord::DecodeFrom(const std::string& text) {
  std::istringstream lines(text);
  std::string more;
  const bool whole = std::getline(lines, transfer_id) &&
                     std::getline(lines, new_identity) &&
                     std::getline(lines, old_identity);
  const bool has_more = whole && static_cast<bool>(std::getline(lines, more));
  adopts_old = has_more && more == kAdopted;
  by_refresh = has_more && more == kByRefresh;
  return whole && IsTransferId(transfer_id) &&
         (!has_more ||
          ((adopts_old || by_refresh) && !std::getline(lines, more)));
}

std::string IdentityOf(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return "";
  }
  return std::to_string(info.st_ino);
}

}  // namespace sstferry
