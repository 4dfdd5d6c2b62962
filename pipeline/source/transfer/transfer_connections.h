// Who is connected for a transfer: its target's control connection, and a port
// for each lane.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/source/transfer/lane_port.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// Ownership: borrows a control channel from Join() to its Leave().
// Threads:   any.
class TransferConnections {
 public:
  TransferConnections(uint32_t lanes, std::string peer);

  // The first control connection.
  void Join(Channel* control);
  // Another one of the same target takes over: the one before is closed, and
  // so are the lanes that are not granted any more.
  void Replace(Channel* control, std::string peer, uint32_t lanes);
  // False when another has taken over from it.
  bool Leave(const Channel* control);
  bool IsControl(const Channel* control) const;
  bool has_control() const { return has_control_; }
  uint32_t lanes() const;  // granted
  std::string peer() const;

  // The place of a lane, which lives as long as this. kRefused for a lane
  // number not granted.
  [[nodiscard]] rocksdb::Status Attach(uint32_t lane, LanePort** port);
  // Closes all lanes that are attached, and parks none.
  void CloseLanes();
  // The same for good.
  void StopLanes();
  // Tells the target why, then stops its lanes.
  void End(const rocksdb::Status& status, const std::string& where);

 private:
  mutable std::mutex mu_;
  uint32_t lanes_;                         // under mu_
  std::string peer_;                       // under mu_
  Channel* control_ = nullptr;             // under mu_; null: nobody
  std::atomic<bool> has_control_{false};   // what control_ says
  const std::vector<std::unique_ptr<LanePort>> ports_;  // by lane number
};

}  // namespace sstferry
