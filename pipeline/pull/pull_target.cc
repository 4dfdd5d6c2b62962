#include "pipeline/pull/pull_target.h"

#include "format/hex.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/database_files.h"

namespace sstferry {

bool PullTarget::FindOwnTransfer(TransferId* id) const {
  *id = TransferId();
  LastTransfer last;
  if (!ReadLastTransfer(dir(), &last)) {
    return !HoldsDatabase(dir());
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

void PullTarget::OpenStore(JournalFile* journal) {
  std::unique_ptr<ChunkStore> made = MakeStore(journal);
  std::lock_guard<std::mutex> lock(mu_);
  store_ = std::move(made);
  state()->store = store_.get();
}

void PullTarget::StopStore() {
  std::lock_guard<std::mutex> lock(mu_);
  if (store_ != nullptr) {
    store_->Stop();
  }
}

void PullTarget::CloseStore() {
  std::lock_guard<std::mutex> lock(mu_);
  state()->store = nullptr;
  store_.reset();
}

}  // namespace sstferry
