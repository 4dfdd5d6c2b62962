// Identities of table and blob files, and a digest of a database's contents.
// Each side of a clone computes them from its own files. The target need not
// receive a file if it has a file with the same identity, and it is current if
// its content digest equals the source's. FORMAT.md, "Identities", is
// normative.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "format/digest.h"
#include "format/rocksdb/manifest_state.h"

namespace sstferry {

// The origin of a table, from its properties. Empty or 0: unknown.
struct TableOrigin {
  std::string database_id;
  std::string session_id;
  uint64_t number = 0;
  Digest128 properties{};  // digest of all properties; all zero: no properties
};

// Returns an identity made of the unique id in the MANIFEST, or else of the
// origin; and of the size, both sequence numbers and the creation time, because
// one external file may be ingested twice. If a table has neither id nor origin
// (RocksDB before 6.29 wrote none), uses its checksum in the MANIFEST, its
// properties and its bounds instead. Then *is_weak is true: another table may
// have the same identity, and only a comparison of bytes proves that the two
// are equal.
Digest128 TableIdentity(const ManifestFile& file, const TableOrigin& origin,
                        bool* is_weak);

// Returns false if a table with this origin cannot be the file in the MANIFEST,
// because RocksDB derives the unique id from the origin. Returns true if it is
// the file, or if the id or the origin is unknown.
bool MayBeFile(const ManifestFile& file, const TableOrigin& origin);

// Returns the identity of a blob file. Blob files have no id, so this uses the
// file's number, counts and modification time. All zero: the modification time
// is unknown. *is_weak is true for a time in whole seconds, as for a table:
// images and packages give all their files one such time, and some file systems
// have no others.
Digest128 BlobIdentity(const ManifestBlobFile& file, uint64_t modified_ns,
                       bool* is_weak);

// Adds the families and files of a MANIFEST to a digest: the files' contents,
// and the order in which RocksDB reads them, but nothing that opening or
// closing the database changes. Returns false if a file has no identity in
// `identities` (by file number).
[[nodiscard]] bool AddContent(const ManifestState& state,
                              const std::map<uint64_t, Digest128>& identities,
                              Digest128Stream* content);

}  // namespace sstferry
