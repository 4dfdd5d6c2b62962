#include "format/source_record.h"

#include "format/message_fields.h"
#include "format/sealed_record.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kDigestBytes = 16;
constexpr size_t kLeastKeyBytes = 4;

struct SourceRecordFile {
  static constexpr char kName[] = "source record";

  TransferId transfer_id{};
  std::string record;
};

size_t EncodedSize(const SourceRecord& record) {
  size_t bytes = 8;
  for (const SourceRecordFamily& family : record.families) {
    bytes += 16 + family.name.size() + kDigestBytes * family.files.size();
    for (const std::string& key : family.keys) {
      bytes += kLeastKeyBytes + key.size();
    }
  }
  return bytes;
}

}  // namespace

template <typename A, FieldsOf<SourceRecordFamily> M>
void Fields(A& a, M& m) {
  a.Bytes("name", m.name, kMaxFamilyNameBytes);
  a.Bool("single_deletes", m.single_deletes);
  a.Bool("searched", m.searched);
  a.Bool("knows_keys", m.knows_keys);
  a.List("files", m.files, kMaxSourceRecordBytes / kDigestBytes, kDigestBytes,
         [](auto& archive, auto& item) { archive.Digest("file", item); });
  a.List("keys", m.keys, kMaxSourceRecordBytes / kLeastKeyBytes,
         kLeastKeyBytes, [](auto& archive, auto& item) {
           archive.Bytes("key", item, kMaxKeyBytes);
         });
}

template <typename A, FieldsOf<SourceRecord> M>
void Fields(A& a, M& m) {
  a.List("families", m.families, kMaxFamilies, 15,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<SourceRecordFile> M>
void Fields(A& a, M& m) {
  a.Id("transfer_id", m.transfer_id);
  a.Bytes("record", m.record, kMaxSourceRecordBytes);
}

void EncodeSourceRecord(SourceRecord record, std::string* out) {
  if (EncodedSize(record) > kMaxSourceRecordBytes) {
    for (SourceRecordFamily& family : record.families) {
      family.keys.clear();
      family.knows_keys = false;
    }
  }
  if (EncodedSize(record) > kMaxSourceRecordBytes) {
    for (SourceRecordFamily& family : record.families) {
      family.files.clear();
    }
  }
  if (EncodedSize(record) <= kMaxSourceRecordBytes) {
    Encode(record, out);
  }
}

Status DecodeSourceRecord(const Slice& bytes, SourceRecord* record) {
  *record = SourceRecord();
  return Decode(bytes, record);
}

void EncodeSourceRecordFile(const TransferId& transfer_id, const Slice& record,
                            std::string* out) {
  SealRecord(kSourceRecordMagic,
             SourceRecordFile{transfer_id, record.ToString()}, out);
}

Status DecodeSourceRecordFile(const Slice& file, TransferId* transfer_id,
                              std::string* record) {
  SourceRecordFile decoded;
  const Status status = UnsealRecord(
      kSourceRecordMagic, kMaxSourceRecordBytes + 64, file, &decoded);
  *transfer_id = decoded.transfer_id;
  *record = std::move(decoded.record);
  return status;
}

}  // namespace sstferry
