// Answers what a target may ask a source without a transfer: what it serves, how
// large that is, which snapshots it retains and which requests wait.
#pragma once

#include "pipeline/source/server/session_host.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// Answers a ListRequest, StatusRequest, QueueRequest or FactsRequest on
// `channel`. Threads: any.
//   kRefused, kDenied  as SessionHost::find_database.
[[nodiscard]] rocksdb::Status AnswerQuestion(const SessionHost& host,
                                             const Frame& frame,
                                             Channel* channel);

}  // namespace sstferry
