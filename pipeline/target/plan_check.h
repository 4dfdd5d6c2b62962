// What only a side that knows the comparators can check of a source's plan.
#pragma once

#include <vector>

#include "format/messages.h"
#include "pipeline/target/source_session.h"
#include "rocksdb/comparator.h"
#include "rocksdb/status.h"

namespace sstferry {

// kCorrupt unless the ranges of each family tile `interval`, in the order
// orders[Family::index]: without gaps, overlaps or a rest. Only then is what
// the ranges hold all there is.
[[nodiscard]] rocksdb::Status CheckTiling(
    const SourcePlan& plan, const KeyInterval& interval,
    const std::vector<const rocksdb::Comparator*>& orders);

}  // namespace sstferry
