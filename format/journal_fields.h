// Fields of all journal records in file order, with their limits. Normative
// text: format/FORMAT.md, "Journal"; keep both in step.
#pragma once

#include "format/journal.h"
#include "format/message_fields_lane.h"

namespace sstferry {

template <typename A, FieldsOf<JournalTransfer> M>
void Fields(A& a, M& m) {
  a.Id("transfer_id", m.transfer_id);
  a.Bytes("source", m.source, kMaxMessageTextBytes);
  a.Bytes("source_database_id", m.source_database_id, kMaxIdentifierBytes);
  Number(a, "snapshot_sequence", m.snapshot_sequence);
  a.Bytes("mode", m.mode, kMaxIdentifierBytes);
  FamilyNames(a, "families", m.families);
  Fields(a, m.interval);
  Number(a, "chunk_bytes", m.chunk_bytes, kMaxChunkBytes);
  a.Bytes("application", m.application, kMaxIdentifierBytes);
  a.Bool("durable", m.durable);
  a.Bytes("boot_id", m.boot_id, kMaxIdentifierBytes);
  a.Bytes("command_line", m.command_line, kMaxCommandLineBytes);
  a.Bool("verify", m.verify);
  a.Id("mends", m.mends);
}

template <typename A, FieldsOf<JournalPlan> M>
void Fields(A& a, M& m) {
  a.Enum("type", m.type, 0xff, FrameTypeName);
  Number(a, "reserved", m.reserved);
  a.Bytes("payload", m.payload, kMaxPayloadBytes);
}

template <typename A, FieldsOf<JournalChunk> M>
void Fields(A& a, M& m) {
  Fields(a, m.chunk);
  a.Enum("kind", m.kind, kMaxPartKind, PartKindName);
  a.Bytes("creating_database_id", m.creating_database_id, kMaxIdentifierBytes);
  a.Bytes("creating_session_id", m.creating_session_id, kMaxIdentifierBytes);
  Number(a, "original_file_number", m.original_file_number);
  a.Bool("unchecked", m.unchecked);
  if (m.kind == PartKind::kUnit) {
    a.Digest("content", m.content);
  } else if constexpr (!std::is_const_v<M>) {
    m.content = Digest128();  // a chunk that is not a unit lacks this field
  }
}

template <typename A, FieldsOf<JournalIngested> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  Number(a, "ordinal", m.ordinal);
}

template <typename A, FieldsOf<JournalTargetFiles> M>
void Fields(A& a, M& m) {
  a.Bytes("database_id", m.database_id, kMaxIdentifierBytes);
  a.Digest("files", m.files);
}

template <typename A, FieldsOf<JournalPartDone> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  Fields(a, m.totals);
}

template <typename A, FieldsOf<JournalComplete> M>
void Fields(A& a, M& m) {
  Fields(a, m.totals);
}

}  // namespace sstferry
