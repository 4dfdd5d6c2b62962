// What lies at a TARGET_DIR and beside it, read without a change and without
// the workspace's lock: a pull may work there meanwhile.
#pragma once

#include <string>

#include "sstferry/status.h"

namespace sstferry {

// *is_target: a pull made TARGET_DIR, or its workspace. An error is one of
// reading, kInternal, or kRefused: the workspace is another user's.
[[nodiscard]] rocksdb::Status ReadTargetState(const std::string& target_dir,
                                              TargetState* state,
                                              bool* is_target);

}  // namespace sstferry
