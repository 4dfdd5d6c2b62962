#include "format/cover_file.h"

#include <algorithm>

#include "format/message_fields.h"
#include "format/sealed_file.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

template <typename A, FieldsOf<CoveredTable> M>
void Fields(A& a, M& m) {
  a.Digest("id", m.id);
  a.Bytes("smallest", m.smallest, kMaxKeyBytes);
  a.Bytes("largest", m.largest, kMaxKeyBytes);
  Number(a, "bytes", m.bytes);
  Number(a, "smallest_sequence", m.smallest_sequence);
  Number(a, "largest_sequence", m.largest_sequence);
  Number(a, "entries", m.entries);
  Number(a, "deletions", m.deletions);
  Number(a, "merge_operands", m.merge_operands);
  Number(a, "range_deletions", m.range_deletions);
  a.Bool("may_single_delete", m.may_single_delete);
}

template <typename A, FieldsOf<CoveredFamily> M>
void Fields(A& a, M& m) {
  a.Bytes("name", m.name, kMaxFamilyNameBytes);
  a.List("files", m.files, kMaxTargetFiles, 81,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<CoverFile> M>
void Fields(A& a, M& m) {
  a.Id("transfer_id", m.transfer_id);
  a.Bytes("source_database_id", m.source_database_id, kMaxIdentifierBytes);
  Number(a, "sequence", m.sequence);
  a.Bytes("target_database_id", m.target_database_id, kMaxIdentifierBytes);
  a.List("families", m.families, kMaxFamilies, 8,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.List("covers", m.covers, kMaxParts, 48,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.Check("covers",
          std::all_of(m.covers.begin(), m.covers.end(),
                      [&m](const Cover& cover) {
                        return cover.family < m.families.size();
                      }),
          "expected families that are listed, found another");
}

Status EncodeCoverFile(const CoverFile& covers, std::string* out) {
  std::string payload;
  EncodeFields(covers, &payload);
  if (payload.size() > kMaxCoverPayloadBytes) {
    return MakeStatus(EndState::kRefused,
                      "covers: expected at most " +
                          std::to_string(kMaxCoverPayloadBytes) +
                          " bytes, found " + std::to_string(payload.size()));
  }
  SealFile(kCoverMagic, payload, out);
  return Status::OK();
}

namespace {

// Whose replica it is, but no records: such a file does not tell how many
// entries its tables held, so nothing shows what their compactions lost.
Status DecodeOldCoverFile(const Slice& file, CoverFile* covers) {
  Slice payload;
  const Status status = UnsealFile("covers", kOldCoverMagic,
                                   kMaxCoverPayloadBytes, file, &payload);
  if (!status.ok()) {
    return status;
  }
  Decoder in("covers", payload);
  FieldDecoder a(&in);
  a.Id("transfer_id", covers->transfer_id);
  a.Bytes("source_database_id", covers->source_database_id,
          kMaxIdentifierBytes);
  bool mixed = false;  // a refresh by chunks was not finished
  uint64_t sequence_before = 0;
  a.Bool("mixed", mixed);
  Number(a, "sequence_old", sequence_before);
  Number(a, "sequence_new", covers->sequence);
  a.Bytes("target_database_id", covers->target_database_id,
          kMaxIdentifierBytes);
  in.Raw("the rest", in.remaining());
  return in.Finish();
}

}  // namespace

Status DecodeCoverFile(const Slice& file, CoverFile* covers) {
  *covers = CoverFile();
  if (file.starts_with(kOldCoverMagic)) {
    return DecodeOldCoverFile(file, covers);
  }
  Slice payload;
  const Status status =
      UnsealFile("covers", kCoverMagic, kMaxCoverPayloadBytes, file, &payload);
  return status.ok() ? DecodeFields("covers", payload, covers) : status;
}

}  // namespace sstferry
