// Chooses the set of an archive that a restore uses.
#pragma once

#include <string>

#include "format/archive_set.h"
#include "pipeline/archive/archive.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Reads the record of the set that `which` names (SourceAddress::set).
// Considers only committed sets. "latest" is the set whose push began last, by
// the store's clock. If several pushes began in the same second, chooses the
// set with the greatest RocksDB sequence number. If these numbers are equal,
// too, chooses the set with the greatest name.
//   kRefused  there is no such set: the message names the newest set. Or the
//             set is not sealed with the archive's key, or such a set is newer
//             than a set with the label `which`
//   kCorrupt  the record of the set is damaged. Or `which` is a label, and the
//             record of a newer set, which may have this label, is damaged. An
//             older set would have older data without notice, so it is not used
//             instead
[[nodiscard]] rocksdb::Status ChooseSet(const Archive& archive,
                                        const std::string& which,
                                        ArchiveSet* set);

// Changes the address of a directory with an archive to an address in this
// archive. For example, DIR@SET becomes set SET of the archive in DIR, unless a
// directory DIR@SET exists. Leaves other addresses unchanged.
void FindArchive(SourceAddress* address);

}  // namespace sstferry
