#include "pipeline/serve/transfer_connections.h"

#include <utility>

#include "format/end_state.h"
#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::Status;

std::vector<std::unique_ptr<LanePort>> MakePorts() {
  std::vector<std::unique_ptr<LanePort>> ports(kMaxLanes);
  for (std::unique_ptr<LanePort>& port : ports) {
    port = std::make_unique<LanePort>();
  }
  return ports;
}

}  // namespace

TransferConnections::TransferConnections(uint32_t lanes, std::string peer)
    : lanes_(lanes), peer_(std::move(peer)), ports_(MakePorts()) {}

void TransferConnections::Join(Channel* control) {
  std::lock_guard<std::mutex> lock(mu_);
  control_ = control;
  joined_ = Clock::now();
  has_control_ = true;
}

void TransferConnections::Replace(Channel* control, std::string peer,
                                  uint32_t lanes) {
  std::lock_guard<std::mutex> lock(mu_);
  if (control_ != nullptr) {
    control_->Close();
  }
  control_ = control;
  joined_ = Clock::now();
  detached_ = Status::OK();
  has_control_ = control != nullptr;
  peer_ = std::move(peer);
  lanes_ = lanes;
  for (size_t lane = lanes_; lane < ports_.size(); ++lane) {
    ports_[lane]->Close();
  }
}

// Closes the lanes first. Another lane may wait for the same target at the same
// time. It must not detach the connection with which the target resumes.
void TransferConnections::Detach(const Status& status,
                                 const std::string& where,
                                 std::chrono::milliseconds after) {
  std::lock_guard<std::mutex> lock(mu_);
  if (control_ == nullptr || !detached_.ok() ||
      Clock::now() - joined_ < after) {
    return;
  }
  detached_ = status;
  CloseLanes();
  SendEnd(control_, status, where);
}

Status TransferConnections::detached() const {
  std::lock_guard<std::mutex> lock(mu_);
  return detached_;
}

bool TransferConnections::Leave(const Channel* control) {
  std::lock_guard<std::mutex> lock(mu_);
  if (control_ != control) {
    return false;
  }
  control_ = nullptr;
  has_control_ = false;
  return true;
}

bool TransferConnections::IsControl(const Channel* control) const {
  std::lock_guard<std::mutex> lock(mu_);
  return control_ == control;
}

uint32_t TransferConnections::lanes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return lanes_;
}

std::string TransferConnections::peer() const {
  std::lock_guard<std::mutex> lock(mu_);
  return peer_;
}

Status TransferConnections::Attach(uint32_t lane, LanePort** port) {
  std::lock_guard<std::mutex> lock(mu_);
  if (lane >= lanes_) {
    return MakeStatus(EndState::kRefused,
                      "lane: expected a lane number below " +
                          std::to_string(lanes_) + ", found " +
                          std::to_string(lane));
  }
  *port = ports_[lane].get();
  return Status::OK();
}

void TransferConnections::CloseLanes() {
  for (const std::unique_ptr<LanePort>& port : ports_) {
    port->Close();
  }
}

void TransferConnections::StopLanes() {
  for (const std::unique_ptr<LanePort>& port : ports_) {
    port->Stop();
  }
}

void TransferConnections::End(const Status& status, const std::string& where) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (control_ != nullptr) {
      SendEnd(control_, status, where);
    }
  }
  StopLanes();
}

}  // namespace sstferry
