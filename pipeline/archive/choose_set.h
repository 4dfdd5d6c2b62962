// Chooses the set of an archive to restore.
#pragma once

#include <string>

#include "format/archive_set.h"
#include "pipeline/archive/archive.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Reads the record of the set that `which` names (SourceAddress::set).
// Considers only committed sets. "latest" is the set whose push began last by
// the store's clock. If several began in the same second, chooses the one with
// the greatest RocksDB sequence number. If their contents are equal, chooses
// the one with the greatest name.
//   kRefused  there is no such set: the message lists the sets
//   kCorrupt  the set's record is damaged, or `which` is a label and the
//             record of a newer set, which may have that label, is damaged. An
//             older set is not used instead: the user might not notice that
//             its data is older
[[nodiscard]] rocksdb::Status ChooseSet(const Archive& archive,
                                        const std::string& which,
                                        ArchiveSet* set);

// If the address is a directory that contains an archive (DIR, or DIR@SET if no
// directory DIR@SET exists), turns it into an archive's address. Leaves other
// addresses unchanged.
void FindArchive(SourceAddress* address);

}  // namespace sstferry
