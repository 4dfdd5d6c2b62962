// Identities of table and blob files, and a digest of a database's contents.
// The source and the target of a clone compute them from their own files. If
// the target has a file with the same identity, it need not receive the file.
// If both sides have the same content digest, the target is current. Normative
// text: format/FORMAT.md, "Identities".
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "format/digest.h"
#include "format/rocksdb/manifest_state.h"

namespace sstferry {

// The origin of a table according to its properties. Empty or 0: unknown.
struct TableOrigin {
  std::string database_id;
  std::string session_id;
  uint64_t number = 0;
  Digest128 properties{};  // digest of all properties; all zero: no properties
};

// Returns an identity that is computed from the table's unique id in the
// MANIFEST or, without one, from the table's origin. It also depends on the
// size, both sequence numbers and the creation time, because one external file
// may be ingested twice. Tables of RocksDB before 6.29 have neither id nor
// origin. For such a table, the identity depends on its checksum in the
// MANIFEST, its properties and its bounds, and *is_weak is true: another table
// may have the same identity, so only a comparison of bytes proves that two
// tables are equal.
Digest128 TableIdentity(const ManifestFile& file, const TableOrigin& origin,
                        bool* is_weak);

// Returns false if the file in the MANIFEST is not the table with this origin.
// RocksDB derives the unique id from the origin, so the two must match. Returns
// true if they match, or if the id or the origin is unknown.
bool MayBeFile(const ManifestFile& file, const TableOrigin& origin);

// Returns the identity of a blob file. Blob files have no id, so it is computed
// from the file's number, count, size and modification time. Returns zeros if
// the modification time is unknown. Sets *is_weak to true for a time in whole
// seconds. Images and packages give all their files one such time, and some
// file systems store only whole seconds.
Digest128 BlobIdentity(const ManifestBlobFile& file, uint64_t modified_ns,
                       bool* is_weak);

// Adds the families and files of a MANIFEST to a digest. It covers the contents
// of the files and the order in which RocksDB reads them, but nothing that
// opening or closing the database changes. Returns false if the number of a
// file is not in `identities`.
[[nodiscard]] bool AddContent(const ManifestState& state,
                              const std::map<uint64_t, Digest128>& identities,
                              Digest128Stream* content);

}  // namespace sstferry
