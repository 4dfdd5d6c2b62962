// Field lists that several objects of an archive share (format/fields.h).
#pragma once

#include "format/archive.h"
#include "format/message_fields.h"

namespace sstferry {

inline constexpr size_t kArchiveKeyBytes = sizeof(SetId) + 1 + 16 + 8 + 1 + 8;

template <typename A, FieldsOf<SetName> M>
void Fields(A& a, M& m) {
  Number(a, "seconds", m.seconds, kMaxArchiveSeconds);
  a.Id("id", m.id);
}

template <typename A, FieldsOf<ArchiveKey> M>
void Fields(A& a, M& m) {
  a.Id("set", m.set);
  a.Bool("is_shared", m.is_shared);
  a.Digest("identity", m.identity);
  Number(a, "bytes", m.bytes);
  a.Enum("kind", m.kind, kMaxCloneFileKind, CloneFileKindName);
  Number(a, "number", m.number);
}

}  // namespace sstferry
