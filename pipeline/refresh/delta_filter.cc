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

// 6 more bits reduce false positives to about a tenth.
constexpr double kMoreBits = 6;

// Returns the policy (such as bloomfilter:10:false) with more bits; null if it
// is not one of RocksDB's.
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

// Uses the application's policy in the last level, and the policy with more
// bits elsewhere. All policies of RocksDB can read each other's filters.
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
