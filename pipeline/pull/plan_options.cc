#include "pipeline/pull/plan_options.h"

#include <algorithm>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/options_file.h"
#include "pipeline/options/replica_options.h"

namespace sstferry {

RocksDbRelease ApplicationOf(const Plan& plan) {
  RocksDbRelease release;
  return ParseRelease(plan.opened.application, &release) ||
                 ParseRelease(plan.opened.opens_since, &release)
             ? release
             : FirstWithFormat(kPortableTableFormatVersion);
}

uint32_t MaxFormatVersionOf(const Plan& plan) {
  return std::min(kMaxTableFormatVersion,
                  MaxFormatVersion(ApplicationOf(plan)));
}

rocksdb::Status OptionsTextOf(const Plan& plan, std::string* text) {
  DatabaseDescription description;
  if (!ParseRelease(plan.opened.written_by, &description.release)) {
    description.release = ApplicationOf(plan);
  }
  description.options = plan.opened.database_options;
  for (const Family& family : plan.families) {
    description.families.push_back(family.description);
    FamilyDescription& last = description.families.back();
    if (last.table_factory == "PlainTable") {
      last.table_factory = "BlockBasedTable";
      last.table_options = {{"format_version",
                             std::to_string(kPortableTableFormatVersion)}};
    }
  }
  std::string written;
  const rocksdb::Status status = WriteOptionsText(description, &written);
  *text = ReplicaOptionsText(written, ApplicationOf(plan));
  return status;
}

}  // namespace sstferry
