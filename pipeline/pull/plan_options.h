// Derives the options of a new database from the plan whose chunks fill the
// database.
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

// Returns the text of an OPTIONS file for the plan's families
// (replica_options.h). A family with plain tables gets block-based tables,
// because all chunks are block-based tables.
//   kCorrupt  the source's options are not lines of text
[[nodiscard]] rocksdb::Status OptionsTextOf(const Plan& plan,
                                            std::string* text);

}  // namespace sstferry
