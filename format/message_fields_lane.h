// Fields of the messages of lane connections, in wire order, with their limits.
// Normative text: format/FORMAT.md, "Messages"; keep both in step.
#pragma once

#include "format/message_fields.h"

namespace sstferry {

template <typename A, FieldsOf<EntryDigest> M>
void Fields(A& a, M& m) {
  a.Bytes("key", m.key, kMaxKeyBytes);
  Number(a, "value_bytes", m.value_bytes);
  a.Digest("value", m.value);
}

template <typename A, FieldsOf<PartRequest> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  a.OptionalBytes("after", m.after, kMaxKeyBytes);
  Fields(a, m.received);
  Number(a, "open_bytes", m.open_bytes, kMaxChunkFileBytes);
  Number(a, "chunk_bytes", m.chunk_bytes, kMaxChunkBytes);
}

template <typename A, FieldsOf<ChunkAck> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  Number(a, "ordinal", m.ordinal);
}

template <typename A, FieldsOf<ChunkBegin> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  Number(a, "ordinal", m.ordinal);
  a.Enum("kind", m.kind, kMaxPartKind, PartKindName);
  Number(a, "file_bytes", m.file_bytes, kMaxChunkFileBytes);
  Number(a, "first_byte", m.first_byte, kMaxChunkFileBytes);
}

template <typename A, FieldsOf<ChunkEnd> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  Number(a, "ordinal", m.ordinal);
  Number(a, "file_bytes", m.file_bytes, kMaxChunkFileBytes);
  Number(a, "entries", m.entries);
  Number(a, "key_bytes", m.key_bytes);
  Number(a, "value_bytes", m.value_bytes);
  a.Bytes("smallest", m.smallest, kMaxKeyBytes);
  a.Bytes("largest", m.largest, kMaxKeyBytes);
  a.Digest("digest", m.digest);
}

template <typename A, FieldsOf<PartEnd> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  Fields(a, m.totals);
  a.Digest("chain", m.chain);
}

template <typename A, FieldsOf<DigestRequest> M>
void Fields(A& a, M& m) {
  Number(a, "family", m.family, kMaxFamilies - 1);
  Fields(a, m.interval);
}

template <typename A, FieldsOf<UnitDigestRequest> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
}

template <typename A, FieldsOf<FileDigestRequest> M>
void Fields(A& a, M& m) {
  Number(a, "file", m.file, kMaxParts - 1);
  Number(a, "offset", m.offset);
  Number(a, "bytes", m.bytes, kMaxFilePieceBytes);
}

template <typename A, FieldsOf<FileDigestReply> M>
void Fields(A& a, M& m) {
  a.Id("sha256", m.sha256);
  a.List("units", m.units, kMaxFilePieceUnits, 16,
         [](auto& archive, auto& item) { archive.Digest("unit", item); });
}

template <typename A, FieldsOf<DigestReply> M>
void Fields(A& a, M& m) {
  Number(a, "entries", m.entries);
  Number(a, "key_value_bytes", m.key_value_bytes);
  a.Digest("content", m.content);
}

template <typename A, FieldsOf<GroupRequest> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  Number(a, "group_entries", m.group_entries, kMaxGroupEntries);
}

template <typename A, FieldsOf<GroupReply> M>
void Fields(A& a, M& m) {
  Number(a, "entries", m.entries);
  Number(a, "key_value_bytes", m.key_value_bytes);
  a.Digest("content", m.content);
  a.List("groups", m.groups, kMaxGroups, 16,
         [](auto& archive, auto& item) { archive.Digest("group", item); });
}

template <typename A, FieldsOf<SiftRequest> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  a.List("groups", m.groups, kMaxGroups, 4, [](auto& archive, auto& item) {
    Number(archive, "group", item, kMaxGroups - 1);
  });
  a.Bytes("marks", m.marks, kMarkBytes * kMaxMarks);
}

template <typename A, FieldsOf<SiftReply> M>
void Fields(A& a, M& m) {
  a.Digest("common", m.common);
  a.List("others", m.others, kMaxMarks, 4, [](auto& archive, auto& item) {
    Number(archive, "other", item, kMaxMarks - 1);
  });
}

template <typename A, FieldsOf<GroupEntry> M>
void Fields(A& a, M& m) {
  Number(a, "shared_bytes", m.shared_bytes);
  a.Bytes("key", m.key, kMaxKeyBytes);
  a.Digest("digest", m.digest);
}

inline const char* DeltaBasisName(DeltaBasis basis) {
  switch (basis) {
    case DeltaBasis::kGroups:
      return "groups";
    case DeltaBasis::kEntries:
      return "entries";
    case DeltaBasis::kOutermost:
      return "outermost";
    case DeltaBasis::kSifted:
      return "sifted";
  }
  return "unknown";
}

template <typename A, FieldsOf<DeltaRequest> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  a.Bool("begins", m.begins);
  Fields(a, m.received);
  Fields(a, m.interval);
  a.Enum("basis", m.basis, kMaxDeltaBasis, DeltaBasisName);
  Number(a, "most_point_deletions", m.most_point_deletions);
  a.List("groups", m.groups, kMaxGroups, 4, [](auto& archive, auto& item) {
    Number(archive, "group", item, kMaxGroups - 1);
  });
  a.List("entries", m.entries, kMaxPayloadBytes / 21, 21,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.Bool("complete", m.complete);
}

template <typename A, FieldsOf<EntriesRequest> M>
void Fields(A& a, M& m) {
  Number(a, "family", m.family, kMaxFamilies - 1);
  Fields(a, m.interval);
  a.OptionalBytes("after", m.after, kMaxKeyBytes);
}

template <typename A, FieldsOf<EntriesReply> M>
void Fields(A& a, M& m) {
  a.List("entries", m.entries, kMaxPayloadBytes / 28, 28,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.Bool("complete", m.complete);
}

}  // namespace sstferry
