// Answers the questions that a target may ask a source without starting a
// transfer: which databases it serves, how large they are, which snapshots it
// retains, and who follows them.
#pragma once

#include "pipeline/serve/session_host.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// Answers a ListRequest, StatusRequest or FactsRequest on `channel`.
//
// Threads: any.
//   kRefused, kDenied  errors of SessionHost::find_database
[[nodiscard]] rocksdb::Status AnswerQuestion(const SessionHost& host,
                                             const Frame& frame,
                                             Channel* channel);

}  // namespace sstferry
