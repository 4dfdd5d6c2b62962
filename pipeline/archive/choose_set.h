// Chooses the set of an archive to restore.
#pragma once

#include <string>

#include "format/archive_set.h"
#include "pipeline/archive/archive.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Reads the record of the set that `which` names (SourceAddress::set), among
// the sets that count. "latest" is the set whose push began last by the store's
// clock. If several began in one second, it is the one with the greatest
// sequence number of RocksDB, and among those (which have equal contents) the
// one with the greatest name.
//   kRefused  there is no such set: the message lists the sets
//   kCorrupt  the set's record is damaged, or `which` is a label and the record
//             of a newer set, which may have that label, is damaged. An older
//             set is not used instead, because nobody would notice its age
[[nodiscard]] rocksdb::Status ChooseSet(const Archive& archive,
                                        const std::string& which,
                                        ArchiveSet* set);

// Turns the address of a directory that is an archive into an archive's
// address: DIR, or DIR@SET if there is no directory of that name. Leaves other
// addresses unchanged.
void FindArchive(SourceAddress* address);

}  // namespace sstferry
