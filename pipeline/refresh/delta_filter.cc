#include "pipeline/refresh/delta_filter.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include "rocksdb/convenience.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"

namespace sstferry {
namespace {

using rocksdb::FilterPolicy;
using Policy = std::shared_ptr<const FilterPolicy>;

// With 6 more bits per key, a filter has about a tenth of the false positives.
constexpr double kMoreBits = 6;

// Returns a policy like `own` (for example, bloomfilter:10:false) with more
// bits per key. Returns null if RocksDB does not define the policy.
Policy WithMoreBits(const FilterPolicy& own) {
  const std::string id = own.GetId();
  const size_t colon = id.find(':');
  const std::string name = id.substr(0, colon);
  if (colon == std::string::npos ||
      (name != "bloomfilter" && name != "ribbonfilter")) {
    return nullptr;
  }
  char* rest = nullptr;
  const double bits = std::strtod(id.c_str() + colon + 1, &rest);
  Policy more;
  const rocksdb::Status status =
      std::isfinite(bits) && bits >= 1
          ? FilterPolicy::CreateFromString(
                rocksdb::ConfigOptions(),
                name + ":" + std::to_string(bits + kMoreBits) + rest, &more)
          : rocksdb::Status::NotSupported();
  return status.ok() ? more : nullptr;
}

// Uses the application's policy for the last level, and a policy with more bits
// per key for other levels. Every filter policy of RocksDB can read filters
// that another policy of RocksDB wrote.
class DeltaFilter : public FilterPolicy {
 public:
  DeltaFilter(Policy own, Policy above)
      : own_(std::move(own)), above_(std::move(above)) {}

  const char* Name() const override { return own_->Name(); }
  const char* CompatibilityName() const override {
    return own_->CompatibilityName();
  }
  rocksdb::FilterBitsBuilder* GetBuilderWithContext(
      const rocksdb::FilterBuildingContext& context) const override {
    return (context.is_bottommost ? own_ : above_)
        ->GetBuilderWithContext(context);
  }
  rocksdb::FilterBitsReader* GetFilterBitsReader(
      const rocksdb::Slice& contents) const override {
    return own_->GetFilterBitsReader(contents);
  }

 private:
  const Policy own_;
  const Policy above_;
};

}  // namespace

void UseDeltaFilters(const rocksdb::ColumnFamilyOptions& family,
                     rocksdb::ColumnFamilyOptions* options) {
  using rocksdb::BlockBasedTableOptions;
  if (family.table_factory == nullptr || options->table_factory == nullptr) {
    return;
  }
  const auto* const own =
      family.table_factory->GetOptions<BlockBasedTableOptions>();
  const auto* const shape =
      options->table_factory->GetOptions<BlockBasedTableOptions>();
  if (own == nullptr || shape == nullptr || own->filter_policy == nullptr) {
    return;
  }
  BlockBasedTableOptions table = *shape;
  const Policy more = WithMoreBits(*own->filter_policy);
  table.filter_policy =
      more == nullptr
          ? own->filter_policy
          : std::make_shared<DeltaFilter>(own->filter_policy, more);
  options->table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
}

}  // namespace sstferry
