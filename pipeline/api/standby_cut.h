// Makes one cut of a standby: the pull of a clone from a source, which takes
// DIR's place in an exchange.
#pragma once

#include "pipeline/api/operation_parts.h"
#include "pipeline/follow/standby.h"
#include "pipeline/follow/standby_target.h"
#include "pipeline/pull/puller.h"
#include "sstferry/options.h"

namespace sstferry {

// Runs it; another thread may cancel it through `slot`. `options` are those of
// a pull from `source_name`, which is reached through `dialer`; what makes it a
// cut is set here. `audit`, unless null, ends before it; after it the
// caller begins what it has prepared.
[[nodiscard]] rocksdb::Status MakeStandbyCut(const PullOptions& options,
                                             const CutRequest& request,
                                             const std::string& source_name,
                                             Dialer* dialer, Standby* standby,
                                             WorkerSlot<Puller>* slot,
                                             Summary* summary,
                                             StandbyAudit* audit = nullptr);

}  // namespace sstferry
