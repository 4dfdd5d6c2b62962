// The connections of a transfer: the control connection of its target, and the
// connections of its lanes.
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

// Tracks the connections of one transfer.
//
// Ownership: borrows a control channel from Join() or Replace() until Leave()
//            is called for it.
// Threads:   any.
class TransferConnections {
 public:
  TransferConnections(uint32_t lanes, std::string peer);

  // Sets the first control connection.
  void Join(Channel* control);
  // Closes the control connection and replaces it by `control`, another
  // connection of the same target. If `control` is null, no control connection
  // remains. Closes the lanes that are no longer granted: lane `lanes` and
  // higher ones.
  void Replace(Channel* control, std::string peer, uint32_t lanes);
  // Tells the target why the source stops serving it (`status`), and closes its
  // lanes. The target may connect again. Does nothing if no target is
  // connected. Also does nothing if the target connected less than `after` ago,
  // because the lane that complains may have waited on an earlier connection.
  void Detach(const rocksdb::Status& status, const std::string& where,
              std::chrono::milliseconds after);
  // Returns why Detach() closed the lanes of the connected target. Returns OK
  // if they were not closed.
  rocksdb::Status detached() const;
  // Removes the connection `control`, which closes. Returns false if another
  // connection has replaced it.
  bool Leave(const Channel* control);
  bool IsControl(const Channel* control) const;
  bool has_control() const { return has_control_; }
  uint32_t lanes() const;  // number of granted lanes
  std::string peer() const;

  // Sets *port to the port of a lane, which is valid as long as this object.
  // Returns kRefused if the target was not granted a lane with this number.
  [[nodiscard]] rocksdb::Status Attach(uint32_t lane, LanePort** port);
  // Closes all attached lanes. The target may connect them again.
  void CloseLanes();
  // Closes all lanes. The target cannot connect them again.
  void StopLanes();
  // Sends an End frame with the end state `status` to the target, and then
  // stops all lanes.
  void End(const rocksdb::Status& status, const std::string& where);

 private:
  mutable std::mutex mu_;
  uint32_t lanes_;                         // under mu_
  std::string peer_;                       // under mu_
  Channel* control_ = nullptr;             // under mu_; null: none
  Clock::time_point joined_;               // under mu_
  rocksdb::Status detached_;               // under mu_
  std::atomic<bool> has_control_{false};   // true: control_ is not null
  const std::vector<std::unique_ptr<LanePort>> ports_;  // by lane number
};

}  // namespace sstferry
