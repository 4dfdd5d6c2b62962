// Input: a byte that chooses an archive's object or a name, then the bytes of
// the object, of its payload, or of the name.
#include <cstdlib>
#include <string>

#include "format/archive.h"
#include "format/archive_log.h"
#include "format/archive_set.h"
#include "format/sealed_file.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

void Need(bool holds) {
  if (!holds) {
    abort();  // the decoded value encodes to other bytes
  }
}

std::string Sealed(const char* magic, const Slice& payload) {
  std::string object;
  SealFile(magic, payload, &object);
  return object;
}

template <typename Record>
void TryRecord(const char* magic, const Slice& bytes,
               Status (*decode)(const Slice&, Record*),
               void (*encode)(const Record&, std::string*)) {
  Record record;
  decode(bytes, &record).PermitUncheckedError();
  const std::string object = Sealed(magic, bytes);
  if (decode(object, &record).ok()) {
    std::string again;
    encode(record, &again);
    Need(again == object);
  }
}

// Decodes the bytes as a record, and as the payload of an uncompressed record,
// because a changed zstd frame is rarely valid.
void TrySet(const Slice& bytes) {
  const SetName name{1'795'000'000, SetId{1, 2, 3, 4, 5, 6, 7, 8}};
  ArchiveSet set;
  DecodeArchiveSet(bytes, name, &set).PermitUncheckedError();
  DecodeArchiveSet(Sealed("SFASETS1", bytes), name, &set)
      .PermitUncheckedError();
  if (DecodeArchiveSetRecord(bytes, name, &set).ok()) {
    std::string object;
    Need(EncodeArchiveSet(set, &object).ok());
    ArchiveSet again;
    Need(DecodeArchiveSet(object, name, &again).ok());
    Need(again == set);
  }
}

// Decodes the bytes as a segment's head, and as the payload of one.
void TrySegment(const Slice& bytes) {
  const LogKey key{SetId{1, 2, 3, 4, 5, 6, 7, 8}, 42, 1'795'000'000'000'001,
                   1'795'000'010'000'002};
  for (const std::string& object :
       {bytes.ToString(), Sealed("SFALOGS1", bytes)}) {
    LogHead head;
    if (DecodeLogHead(object, key, &head).ok()) {
      Need(LogHeadBytes(object) == object.size());
      Need(head.end().wal_number >= head.begin.wal_number);
      std::string again;
      EncodeLogHead(head, &again);
      Need(again == object);
    }
  }
}

void TryNames(const Slice& text) {
  ArchiveKey key;
  if (ParseArchiveKey(text, &key)) {
    Need(ArchiveKeyText(key) == text);
  }
  LogKey segment;
  if (ParseLogKey(text, &segment)) {
    Need(LogKeyText(segment) == text);
  }
  SetName name;
  if (ParseSetName(text, &name)) {
    Need(SetNameText(name) == text);
  }
}

void TryAny(uint8_t kind, const Slice& bytes) {
  switch (kind % 7) {
    case 0:
      TryRecord<ArchiveHead>("SFARCHV1", bytes, DecodeArchiveHead,
                             EncodeArchiveHead);
      break;
    case 1:
      TryRecord<ArchiveIntent>("SFAINTE1", bytes, DecodeArchiveIntent,
                               EncodeArchiveIntent);
      break;
    case 2:
      TryRecord<ArchiveMark>("SFAMARK1", bytes, DecodeArchiveMark,
                             EncodeArchiveMark);
      break;
    case 3:
      TryRecord<ArchiveChecked>("SFACHEK1", bytes, DecodeArchiveChecked,
                                EncodeArchiveChecked);
      TryRecord<ArchiveDone>("SFADONE1", bytes, DecodeArchiveDone,
                             EncodeArchiveDone);
      break;
    case 4:
      TrySet(bytes);
      break;
    case 6:
      TrySegment(bytes);
      break;
    default:
      TryNames(bytes);
  }
}

}  // namespace
}  // namespace sstferry

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) {
    sstferry::TryAny(data[0],
                     rocksdb::Slice(reinterpret_cast<const char*>(data) + 1,
                                    size - 1));
  }
  return 0;
}
