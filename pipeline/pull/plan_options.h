// The options that a plan gives to a database that is filled with its chunks.
#pragma once

#include <cstdint>
#include <string>

#include "format/release.h"
#include "pipeline/pull/plan_receiver.h"
#include "rocksdb/status.h"

namespace sstferry {

// Returns the release of the application that will open the database. Where the
// source has no OPTIONS that tell: the first that reads what is sent.
RocksDbRelease ApplicationOf(const Plan& plan);

// Returns the highest format_version that the application and the linked
// RocksDB read.
uint32_t MaxFormatVersionOf(const Plan& plan);

// Writes the OPTIONS text of the plan's families (replica_options.h). Families
// of plain tables get block-based ones, which chunks are.
//   kCorrupt  the source's options are not lines of text
[[nodiscard]] rocksdb::Status OptionsTextOf(const Plan& plan,
                                            std::string* text);

}  // namespace sstferry
