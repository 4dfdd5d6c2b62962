// Record that a source stores at a target after a pull or refresh. At the next
// refresh the source gets the record back and uses it to find keys that may
// have changed. The target stores its bytes unchanged in the file
// `sstferry.source`. Normative text: format/FORMAT.md, "Source records".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/limits.h"
#include "format/types.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr char kSourceRecordName[] = "sstferry.source";
inline constexpr char kSourceRecordMagic[9] = "SFSOURC1";

struct SourceRecordFamily {
  std::string name;
  // The source's application uses SingleDelete, so a put must not overwrite
  // another put.
  bool single_deletes = false;
  // All files were searched for SingleDeletes.
  bool searched = false;
  // `keys` has the keys of all entries that the snapshot replayed from WALs.
  bool knows_keys = false;
  // Digests of the family's table files, except those that the snapshot
  // flushed.
  std::vector<Digest128> files;
  std::vector<std::string> keys;
  friend bool operator==(const SourceRecordFamily&,
                         const SourceRecordFamily&) = default;
};

struct SourceRecord {
  static constexpr char kName[] = "source record";

  std::vector<SourceRecordFamily> families;
  friend bool operator==(const SourceRecord&, const SourceRecord&) = default;
};

// Appends the record. If it would be too large, omits keys, then files.
void EncodeSourceRecord(SourceRecord record, std::string* out);
// Decodes a record. Corruption: not exactly one complete record.
[[nodiscard]] rocksdb::Status DecodeSourceRecord(const rocksdb::Slice& bytes,
                                                 SourceRecord* record);

// Encode and decode the target's file: the record and the id of its transfer.
// REQUIRES: at most kMaxSourceRecordBytes.
void EncodeSourceRecordFile(const TransferId& transfer_id,
                            const rocksdb::Slice& record, std::string* out);
[[nodiscard]] rocksdb::Status DecodeSourceRecordFile(
    const rocksdb::Slice& file, TransferId* transfer_id, std::string* record);

}  // namespace sstferry
