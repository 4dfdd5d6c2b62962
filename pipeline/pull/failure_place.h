// Says where an operation failed, as data and as text for logs and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace sstferry {

// The part of an operation in which a failure was noticed.
enum class FailedPart : uint8_t {
  kNone,            // nothing failed
  kTarget,
  kTargetDatabase,  // RocksDB reported it in the background
  kTargetLane,
  kSource,
  kVerify,
  kVerifyLane,
  kAfterSwap,       // the hook after an exchange
  kPlan,
  kStatus,
  kList,
};

struct FailurePlace {
  FailurePlace() = default;
  FailurePlace(FailedPart seen_by) : part(seen_by) {}  // NOLINT: implicit
  // Makes the place of one lane. REQUIRES: `part` has lanes.
  static FailurePlace Lane(FailedPart part, uint32_t lane) {
    FailurePlace place(part);
    place.lane = lane;
    return place;
  }
  static FailurePlace Source(std::string side, std::string address) {
    FailurePlace place(FailedPart::kSource);
    place.side = std::move(side);
    place.address = std::move(address);
    return place;
  }
  // Returns text such as "target lane 3" or "left source HOST:PORT"; empty for
  // kNone.
  std::string ToString() const;

  FailedPart part = FailedPart::kNone;
  uint32_t lane = 0;    // kTargetLane and kVerifyLane only
  std::string address;  // kSource only
  std::string side;     // "left" or "right" in a comparison; else empty
};

inline std::string FailurePlace::ToString() const {
  std::string text;
  switch (part) {
    case FailedPart::kNone:
      break;
    case FailedPart::kTarget:
    case FailedPart::kAfterSwap:
      text = "target";
      break;
    case FailedPart::kTargetDatabase:
      text = "target database";
      break;
    case FailedPart::kTargetLane:
      text = "target lane " + std::to_string(lane);
      break;
    case FailedPart::kSource:
      text = "source" + (address.empty() ? "" : " " + address);
      break;
    case FailedPart::kVerify:
      text = "verify";
      break;
    case FailedPart::kVerifyLane:
      text = "verify lane " + std::to_string(lane);
      break;
    case FailedPart::kPlan:
      text = "plan";
      break;
    case FailedPart::kStatus:
      text = "status";
      break;
    case FailedPart::kList:
      text = "ls";
      break;
  }
  return side.empty() ? text : side + " " + text;
}

}  // namespace sstferry
