#include "pipeline/refresh/table_changes.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "pipeline/pull/refresh_records.h"

namespace sstferry {
namespace {

auto FieldsOf(const RecordedTable& table) {
  return std::tie(table.id.high, table.id.low, table.smallest, table.largest,
                  table.bytes, table.smallest_sequence, table.largest_sequence);
}

bool TableLess(const RecordedTable& a, const RecordedTable& b) {
  return FieldsOf(a) < FieldsOf(b);
}

// Returns the spans of tables that are in only one of two lists. A list may
// contain a table several times.
std::vector<ChangedSpan> Differences(std::vector<RecordedTable> then,
                                     std::vector<RecordedTable> now) {
  std::sort(then.begin(), then.end(), TableLess);
  std::sort(now.begin(), now.end(), TableLess);
  std::vector<RecordedTable> gone;
  std::vector<RecordedTable> added;
  std::set_difference(then.begin(), then.end(), now.begin(), now.end(),
                      std::back_inserter(gone), TableLess);
  std::set_difference(now.begin(), now.end(), then.begin(), then.end(),
                      std::back_inserter(added), TableLess);
  std::vector<ChangedSpan> changed;
  for (RecordedTable& table : gone) {
    changed.push_back({std::move(table.smallest), std::move(table.largest)});
  }
  for (RecordedTable& table : added) {
    changed.push_back({std::move(table.smallest), std::move(table.largest),
                       table.id});
  }
  return changed;
}

}  // namespace

void FindTableChanges(rocksdb::DB* db, std::vector<TableChanges>* families) {
  std::vector<TracedFamily> traced;
  std::vector<TableChanges*> asked;  // by index of `traced`
  for (TableChanges& family : *families) {
    family.changed = Differences(family.then, NamedTables(family.now));
    if (!family.changed.empty() && family.family->keeps_entries) {
      traced.push_back({family.family->name,
                        family.family->handle->GetComparator(), &family.then,
                        &family.now, &family.chunks});
      asked.push_back(&family);
    }
  }
  if (!traced.empty()) {
    TraceTables(db->GetFileSystem(), db->GetName(), &traced);
  }
  for (size_t i = 0; i < traced.size(); ++i) {
    if (traced[i].is_known) {
      asked[i]->changed = std::move(traced[i].changed);
    }
  }
  for (TableChanges& family : *families) {
    for (KeySpan& span : NamelessSpans(family.now)) {
      family.changed.push_back(
          {std::move(span.smallest), std::move(span.largest)});
    }
  }
}

}  // namespace sstferry
