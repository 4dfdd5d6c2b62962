// Derives from a plan the options of a database that is filled with the plan's
// chunks.
#pragma once

#include <cstdint>
#include <string>

#include "format/release.h"
#include "pipeline/pull/plan_receiver.h"
#include "rocksdb/status.h"

namespace sstferry {

// Returns the RocksDB release of the application that will open the database.
// If the source has no OPTIONS that show it, returns the first release that can
// read the sent data.
RocksDbRelease ApplicationOf(const Plan& plan);

// Returns the highest format_version that both the application and the linked
// RocksDB can read.
uint32_t MaxFormatVersionOf(const Plan& plan);

// Returns the OPTIONS text of the plan's families (replica_options.h). Families
// with plain tables get block-based tables, like the chunks.
//   kCorrupt  the source's options are not lines of text
[[nodiscard]] rocksdb::Status OptionsTextOf(const Plan& plan,
                                            std::string* text);

}  // namespace sstferry
