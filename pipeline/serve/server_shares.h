// Resources that all transfers of a server share: the rate limit, the space for
// spooled chunks, and the function that makes the planners of refreshes.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "pipeline/parts/part_store.h"
#include "pipeline/serve/refresh_at_source.h"
#include "pipeline/wire/token_bucket.h"

namespace sstferry {

// The shared resources of a server. Must outlive its transfers.
//
// Threads: any.
class ServerShares {
 public:
  // `rate` limits the bytes that are sent per second; 0: no limit. If
  // `full_rate` is true, no transfer slows down for the source's application.
  // Chunks that several targets share are stored in files (spools), which may
  // use `spool_bytes` and a quarter of the file descriptors. If `make_refresh`
  // is null, refreshes in place are refused.
  explicit ServerShares(uint64_t rate, uint64_t spool_bytes = 0,
                        RefreshFactory make_refresh = nullptr,
                        bool full_rate = false)
      : wire_bucket_(rate),
        spool_budget_(std::make_shared<SpoolBudget>(spool_bytes,
                                                    QuarterOfDescriptors())),
        make_refresh_(std::move(make_refresh)),
        full_rate_(full_rate) {}

  TokenBucket* wire_bucket() { return &wire_bucket_; }
  const std::shared_ptr<SpoolBudget>& spool_budget() { return spool_budget_; }

  bool full_rate() const { return full_rate_; }
  const RefreshFactory& make_refresh() const { return make_refresh_; }

 private:
  static uint64_t QuarterOfDescriptors() {
    rlimit limit{};
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 4 : 0;
  }

  TokenBucket wire_bucket_;
  const std::shared_ptr<SpoolBudget> spool_budget_;
  const RefreshFactory make_refresh_;
  const bool full_rate_;
};

}  // namespace sstferry
