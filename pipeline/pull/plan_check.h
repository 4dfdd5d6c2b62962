// Checks a source's plan beyond its shape: that it is about what was asked for,
// all of it.
#pragma once

#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/pull/source_session.h"
#include "rocksdb/comparator.h"
#include "rocksdb/status.h"

namespace sstferry {

// kCorrupt unless the families are those `asked` for, each once; when none is,
// all of them, `default` included.
[[nodiscard]] rocksdb::Status CheckFamilies(
    const Plan& plan, const std::vector<std::string>& asked);

// kCorrupt unless the parts of each family tile `interval`, in the order
// orders[Family::index]: without gaps, overlaps or a rest. Only then is what
// the parts hold all there is.
[[nodiscard]] rocksdb::Status CheckTiling(
    const Plan& plan, const KeyInterval& interval,
    const std::vector<const rocksdb::Comparator*>& orders);

}  // namespace sstferry
