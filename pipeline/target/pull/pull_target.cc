#include "pipeline/target/pull/pull_target.h"

namespace sstferry {

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
