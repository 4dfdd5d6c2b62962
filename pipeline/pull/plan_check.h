// Checks that a source's plan covers the request completely.
#pragma once

#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/pull/source_session.h"
#include "rocksdb/comparator.h"
#include "rocksdb/status.h"

namespace sstferry {

// Returns kCorrupt unless the plan has exactly the families in `asked`, each
// once. If `asked` is empty, requires only that each family appears once, and
// `default` among them.
[[nodiscard]] rocksdb::Status CheckFamilies(
    const Plan& plan, const std::vector<std::string>& asked);

// Returns kCorrupt unless the parts of each family cover `interval` completely,
// without gaps or overlaps. The parts must be sorted by the comparator
// orders[Family::index]. If all this is true, the parts contain all entries.
[[nodiscard]] rocksdb::Status CheckTiling(
    const Plan& plan, const KeyInterval& interval,
    const std::vector<const rocksdb::Comparator*>& orders);

}  // namespace sstferry
