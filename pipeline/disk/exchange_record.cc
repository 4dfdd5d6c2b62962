#include "pipeline/disk/exchange_record.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "format/end_state.h"
#include "pipeline/base/last_transfer.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr char kAdopted[] = "adopted";
constexpr char kByRefresh[] = "refresh";
constexpr char kHasAfterSwap[] = "after_swap";

// Returns true for 32 hex digits. Nothing else is accepted, because the id
// becomes part of a directory's name.
bool IsTransferId(const std::string& text) {
  return text.size() == 32 &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string ExchangeRecord::Encode() const {
  return transfer_id + "\n" + new_identity + "\n" + old_identity + "\n" +
         (adopts_old   ? std::string(kAdopted) + "\n"
          : by_refresh ? std::string(kByRefresh) + "\n"
          : has_after_swap ? std::string(kHasAfterSwap) + "\n"
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
  has_after_swap = has_more && more == kHasAfterSwap;
  return whole && IsTransferId(transfer_id) &&
         (!has_more ||
          ((adopts_old || by_refresh || has_after_swap) &&
           !std::getline(lines, more)));
}

Status FindInode(const std::string& path, std::string* inode) {
  inode->clear();
  struct stat info;
  if (lstat(path.c_str(), &info) == 0) {
    *inode = std::to_string(info.st_ino);
    return Status::OK();
  }
  return errno == ENOENT || errno == ENOTDIR
             ? Status::OK()
             : MakeStatus(EndState::kInternal,
                          "cannot find out if " + path + " exists: " +
                              std::strerror(errno));
}

Status FindExchanged(const ExchangeRecord& record, const std::string& dir,
                     Exchanged* found) {
  *found = Exchanged::kNothing;
  std::string inode;
  RETURN_IF_ERROR(FindInode(dir, &inode));
  if (inode.empty()) {
    return Status::OK();
  }
  *found = Exchanged::kAnother;
  bool has_record = false;
  LastTransfer last;
  RETURN_IF_ERROR(FindLastTransfer(dir, &has_record, &last));
  const bool is_named = has_record && last.transfer_id == record.transfer_id;
  if (is_named && inode == record.new_identity) {
    *found = Exchanged::kNew;
  } else if (!is_named && inode == record.old_identity) {
    *found = Exchanged::kOld;
  }
  return Status::OK();
}

}  // namespace sstferry
