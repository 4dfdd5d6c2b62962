// Chooses the set of an archive that a restore is of.
#pragma once

#include <string>

#include "format/archive_set.h"
#include "pipeline/archive/archive.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Reads the record of the set that `which` names (SourceAddress::set), among
// those that count. "latest" is the set whose push began last by the store's
// clock; of several of one second, the one with the latest sequence of RocksDB
// and then, as two of one sequence hold the same, that with the greatest name.
//   kRefused  there is no such set: the message says which there are
//   kCorrupt  the set's record is damaged, or, for a label, that of a newer set,
//             which may have that label. An older set is not taken instead:
//             nobody would see that it is old
[[nodiscard]] rocksdb::Status ChooseSet(const Archive& archive,
                                        const std::string& which,
                                        ArchiveSet* set);

// Makes the address of an archive of a directory that is one: DIR, or, where
// there is no such directory, DIR@SET. Another address stays as it is.
void FindArchive(SourceAddress* address);

}  // namespace sstferry
