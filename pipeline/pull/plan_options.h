// Returns the options that a plan gives to a database that is filled with its
// chunks.
#pragma once

#include <cstdint>
#include <string>

#include "format/release.h"
#include "pipeline/pull/plan_receiver.h"
#include "rocksdb/status.h"

namespace sstferry {

// Returns the release of the application that will open the database. If the
// source has no OPTIONS that show it: the first release that reads the sent
// data.
RocksDbRelease ApplicationOf(const Plan& plan);

// Returns the highest format_version that both the application and the linked
// RocksDB can read.
uint32_t MaxFormatVersionOf(const Plan& plan);

// Returns the OPTIONS text of the plan's families (replica_options.h). Families
// with plain tables get block-based ones, like the chunks.
//   kCorrupt  the source's options are not lines of text
[[nodiscard]] rocksdb::Status OptionsTextOf(const Plan& plan,
                                            std::string* text);

}  // namespace sstferry
