// Identities of table and blob files, and a digest of all that a database
// holds. Both sides of a clone compute them, each of its own files: a target
// has a file already if one of its own has the same identity, and it is current
// if its content is the same. FORMAT.md, "Identities", is normative.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "format/digest.h"
#include "format/rocksdb/manifest_state.h"

namespace sstferry {

// Who made a table, as its properties tell. Empty or 0: not known.
struct TableOrigin {
  std::string database_id;
  std::string session_id;
  uint64_t number = 0;
  Digest128 properties{};  // of all of them; all zero: the table has none
};

// By the unique id in the MANIFEST, else by the origin; with the size, both
// sequence numbers and the creation time, because one external file may be
// ingested twice. A table that has neither (RocksDB before 6.29 wrote none) is
// told by its checksum in the MANIFEST, its properties and its bounds. Then
// *is_weak is true: another table may have the same identity, and only equal
// bytes prove that two are the same.
Digest128 TableIdentity(const ManifestFile& file, const TableOrigin& origin,
                        bool* is_weak);

// Returns false if a table with this origin is not the file that the MANIFEST
// tells: RocksDB makes the unique id of the origin. True: it is, or neither is
// known.
bool MayBeFile(const ManifestFile& file, const TableOrigin& origin);

// A blob file has no id: by its number, amounts and the time of its last write.
// All zero: that time is not known.
Digest128 BlobIdentity(const ManifestBlobFile& file, uint64_t modified_ns);

// Adds the families and files of a MANIFEST: what they hold, in which order
// RocksDB reads them, and nothing that an open or a close changes. False: a
// file has no identity in `identities` (by number).
[[nodiscard]] bool AddContent(const ManifestState& state,
                              const std::map<uint64_t, Digest128>& identities,
                              Digest128Stream* content);

}  // namespace sstferry
