// The connections of a transfer: its target's control connection, and one port
// for each lane.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/serve/lane_port.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// Keeps track of the connections of one transfer.
//
// Ownership: borrows a control channel from Join() or Replace() to its Leave().
// Threads:   any.
class TransferConnections {
 public:
  TransferConnections(uint32_t lanes, std::string peer);

  // Sets the first control connection.
  void Join(Channel* control);
  // Replaces the control connection by another connection of the same target;
  // null: by no connection. Closes the previous control connection, and the
  // lanes that are no longer granted.
  void Replace(Channel* control, std::string peer, uint32_t lanes);
  // Tells the target why the source stops serving it, and closes its lanes. The
  // target may connect again. Does nothing while no target is connected, or if
  // it connected less than `after` ago: a lane's wait on an earlier connection
  // proves nothing about this one.
  void Detach(const rocksdb::Status& status, const std::string& where,
              std::chrono::milliseconds after);
  // Returns why the connected target was detached; OK if it was not.
  rocksdb::Status detached() const;
  // Removes `control`. Returns false if another connection has replaced it.
  bool Leave(const Channel* control);
  bool IsControl(const Channel* control) const;
  bool has_control() const { return has_control_; }
  uint32_t lanes() const;  // granted
  std::string peer() const;

  // Returns the port of a lane, which is valid as long as this object. Returns
  // kRefused for a lane number that was not granted.
  [[nodiscard]] rocksdb::Status Attach(uint32_t lane, LanePort** port);
  // Closes all attached lanes.
  void CloseLanes();
  // Closes all lanes permanently.
  void StopLanes();
  // Sends the end state to the target, then stops its lanes.
  void End(const rocksdb::Status& status, const std::string& where);

 private:
  mutable std::mutex mu_;
  uint32_t lanes_;                         // under mu_
  std::string peer_;                       // under mu_
  Channel* control_ = nullptr;             // under mu_; null: none
  Clock::time_point joined_;               // under mu_
  rocksdb::Status detached_;               // under mu_
  std::atomic<bool> has_control_{false};   // control_ is not null
  const std::vector<std::unique_ptr<LanePort>> ports_;  // by lane number
};

}  // namespace sstferry
