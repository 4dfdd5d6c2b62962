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

inline constexpr size_t kLogKeyBytes = sizeof(SetId) + 3 * 8;

template <typename A, FieldsOf<LogKey> M>
void Fields(A& a, M& m) {
  a.Id("lineage", m.lineage);
  Number(a, "number", m.number, kMaxLogNumber, 1);
  Number(a, "begin_micros", m.begin_micros, kMaxLogMicros);
  Number(a, "end_micros", m.end_micros, kMaxLogMicros);
  a.Check("begin_micros",
          m.begin_micros <= m.end_micros &&
              (m.begin_micros == 0) == (m.end_micros == 0),
          "expected 0 together with end_micros, or a time up to end_micros, "
          "found another value");
}

}  // namespace sstferry
