// Fields of the messages of any connection and of the control connection, in
// wire order, with their limits. Normative text: format/FORMAT.md, "Messages";
// keep both in step.
#pragma once

#include "format/fields.h"
#include "format/limits.h"
#include "format/messages.h"

namespace sstferry {

inline constexpr size_t kReceivedPartBytes = 4 + 4 * 8;
inline constexpr size_t kCloneFileBytes = 1 + 3 * 8 + 16 + 1 + 8;

inline const char* ConnectionKindName(ConnectionKind kind) {
  return kind == ConnectionKind::kControl ? "control" : "lane";
}
inline const char* PurposeName(Purpose purpose) {
  switch (purpose) {
    case Purpose::kPull:
      return "pull";
    case Purpose::kPlan:
      return "plan";
    case Purpose::kVerify:
      return "verify";
  }
  return "unknown";
}
inline const char* WireCompressionName(WireCompression compression) {
  switch (compression) {
    case WireCompression::kNone:
      return "none";
    case WireCompression::kAuto:
      return "auto";
    case WireCompression::kZstd:
      return "zstd";
  }
  return "unknown";
}
inline const char* SnapshotUseName(SnapshotUse use) {
  switch (use) {
    case SnapshotUse::kNew:
      return "new";
    case SnapshotUse::kResume:
      return "resume";
    case SnapshotUse::kShare:
      return "share";
    case SnapshotUse::kInstead:
      return "instead";
    case SnapshotUse::kLatest:
      return "latest";
  }
  return "unknown";
}
inline const char* TransferModeName(TransferMode mode) {
  switch (mode) {
    case TransferMode::kSeed:
      return "seed";
    case TransferMode::kRefresh:
      return "refresh";
    case TransferMode::kClone:
      return "clone";
  }
  return "unknown";
}
inline const char* PartNeedName(PartNeed need) {
  switch (need) {
    case PartNeed::kSend:
      return "send";
    case PartNeed::kCompare:
      return "compare";
  }
  return "unknown";
}
inline const char* PartKindName(PartKind kind) {
  switch (kind) {
    case PartKind::kRebuilt:
      return "rebuilt";
    case PartKind::kUnit:
      return "unit";
    case PartKind::kDelta:
      return "delta";
  }
  return "unknown";
}
inline const char* CloneFileKindName(CloneFileKind kind) {
  switch (kind) {
    case CloneFileKind::kTable:
      return "table";
    case CloneFileKind::kBlob:
      return "blob";
    case CloneFileKind::kWal:
      return "wal";
    case CloneFileKind::kManifest:
      return "manifest";
    case CloneFileKind::kOptions:
      return "options";
    case CloneFileKind::kIdentity:
      return "identity";
  }
  return "unknown";
}
inline const char* PlanActionName(PlanAction action) {
  switch (action) {
    case PlanAction::kRebuild:
      return "rebuild";
    case PlanAction::kDelta:
      return "delta";
  }
  return "unknown";
}

// --- parts -------------------------------------------------------------------

template <typename A, FieldsOf<NamedValue> M>
void Fields(A& a, M& m) {
  a.Bytes("name", m.name, kMaxIdentifierBytes);
  a.Bytes("value", m.value, kMaxOptionValueBytes);
}

template <typename A, typename List>
void NamedValues(A& a, const char* name, List& list) {
  a.List(name, list, kMaxOptionCount, 8,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<KeyInterval> M>
void Fields(A& a, M& m) {
  a.OptionalBytes("begin", m.begin, kMaxKeyBytes);
  a.OptionalBytes("end", m.end, kMaxKeyBytes);
}

template <typename A, FieldsOf<Totals> M>
void Fields(A& a, M& m) {
  Number(a, "chunks", m.chunks);
  Number(a, "entries", m.entries);
  Number(a, "key_value_bytes", m.key_value_bytes);
  Number(a, "sst_bytes", m.sst_bytes);
}

template <typename A, FieldsOf<Part> M>
void Fields(A& a, M& m) {
  Number(a, "id", m.id, kMaxParts - 1);
  a.Enum("kind", m.kind, kMaxPartKind, PartKindName);
  a.Enum("need", m.need, kMaxPartNeed, PartNeedName);
  Number(a, "family", m.family, kMaxFamilies - 1);
  Fields(a, m.interval);
  Number(a, "file", m.file, kMaxParts - 1);
  Number(a, "offset", m.offset);
  Number(a, "bytes", m.bytes);
}

template <typename A, FieldsOf<PlanItem> M>
void Fields(A& a, M& m) {
  Number(a, "family", m.family, kMaxFamilies - 1);
  Fields(a, m.interval);
  a.Bytes("file", m.file, kMaxIdentifierBytes);
  Number(a, "bytes", m.bytes);
  a.Enum("action", m.action, kMaxPlanAction, PlanActionName);
  a.Text("reason", m.reason, kMaxMessageTextBytes);
}

template <typename A, FieldsOf<ReceivedPart> M>
void Fields(A& a, M& m) {
  Number(a, "part_id", m.part_id, kMaxParts - 1);
  Fields(a, m.totals);
}

template <typename A, FieldsOf<CloneFile> M>
void Fields(A& a, M& m) {
  a.Enum("kind", m.kind, kMaxCloneFileKind, CloneFileKindName);
  Number(a, "number", m.number);
  Number(a, "bytes", m.bytes);
  Number(a, "records_end", m.records_end);
  a.Digest("identity", m.identity);
  a.Bool("identity_is_weak", m.identity_is_weak);
  Number(a, "modified_ns", m.modified_ns, kMaxModifiedNs);
}

template <typename A, FieldsOf<RetainedSnapshot> M>
void Fields(A& a, M& m) {
  a.Id("transfer_id", m.transfer_id);
  a.Bytes("database", m.database, kMaxDatabaseNameBytes);
  Number(a, "snapshot_sequence", m.snapshot_sequence);
  Number(a, "age_seconds", m.age_seconds);
  Number(a, "ttl_left_seconds", m.ttl_left_seconds);
  Number(a, "readers", m.readers);
  Number(a, "pinned_bytes", m.pinned_bytes);
  a.Text("target", m.target, kMaxTargetTextBytes);
}

template <typename A, FieldsOf<FollowerState> M>
void Fields(A& a, M& m) {
  a.Bytes("database", m.database, kMaxDatabaseNameBytes);
  a.Text("target", m.target, kMaxTargetTextBytes);
  Number(a, "behind_bytes", m.behind_bytes);
  Number(a, "behind_millis", m.behind_millis);
  Number(a, "held_bytes", m.held_bytes);
  Number(a, "cuts", m.cuts);
  a.Enum("cut", m.cut, kMaxSourceCutReason, CutReasonName);
}

// --- any connection ----------------------------------------------------------

template <typename A, FieldsOf<Hello> M>
void Fields(A& a, M& m) {
  Number(a, "oldest_version", m.oldest_version, 0xffff, 1);
  Number(a, "newest_version", m.newest_version, 0xffff, 1);
  a.Check("oldest_version", m.oldest_version <= m.newest_version,
          "expected at most newest_version, found more");
  Number(a, "features", m.features);
  a.Enum("kind", m.kind, 1, ConnectionKindName);
  a.Id("transfer_id", m.transfer_id);
  Number(a, "lane", m.lane, kMaxLanes - 1);
  a.Bytes("software", m.software, kMaxIdentifierBytes);
  a.Bytes("rocksdb_version", m.rocksdb_version, kMaxIdentifierBytes);
  Number(a, "max_format_version", m.max_format_version);
}

template <typename A, FieldsOf<HelloAck> M>
void Fields(A& a, M& m) {
  Number(a, "version", m.version, 0xffff, 1);
  Number(a, "features", m.features);
  a.Bytes("software", m.software, kMaxIdentifierBytes);
  a.Bytes("rocksdb_version", m.rocksdb_version, kMaxIdentifierBytes);
}

template <typename A, FieldsOf<End> M>
void Fields(A& a, M& m) {
  a.Enum("state", m.state, kMaxEndState, EndStateName);
  a.Text("message", m.message, kMaxMessageTextBytes);
  a.Text("where", m.where, kMaxMessageTextBytes);
}

// --- control connection ------------------------------------------------------

template <typename A, typename List>
void DatabaseNames(A& a, const char* name, List& list) {
  a.List(name, list, kMaxServedDatabases, 4, [](auto& archive, auto& item) {
    archive.Bytes("name", item, kMaxDatabaseNameBytes);
  });
}

template <typename A, FieldsOf<ListRequest> M>
void Fields(A& a, M& m) {
  DatabaseNames(a, "known", m.known);
}

template <typename A, FieldsOf<ListReply> M>
void Fields(A& a, M& m) {
  DatabaseNames(a, "names", m.names);
  Number(a, "file_system", m.file_system);
  a.Bool("is_complete", m.is_complete);
}

template <typename A, FieldsOf<PinRequest> M>
void Fields(A& a, M& m) {
  DatabaseNames(a, "names", m.names);
}

template <typename A, FieldsOf<PinnedDatabase> M>
void Fields(A& a, M& m) {
  Number(a, "begin_micros", m.begin_micros);
  Number(a, "end_micros", m.end_micros);
  Number(a, "taken_seconds", m.taken_seconds);
  a.Text("problem", m.problem, kMaxPinProblemBytes);
}

template <typename A, FieldsOf<PinReply> M>
void Fields(A& a, M& m) {
  a.Id("id", m.id);
  a.List("databases", m.databases, kMaxServedDatabases, 28,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<PinEnd> M>
void Fields(A& a, M& m) {
  a.Id("id", m.id);
  a.Bytes("database", m.database, kMaxDatabaseNameBytes);
}

template <typename A, typename List>
void FamilyNames(A& a, const char* name, List& list) {
  a.List(name, list, kMaxFamilies, 4, [](auto& archive, auto& item) {
    archive.Bytes("name", item, kMaxFamilyNameBytes);
  });
}

template <typename A, FieldsOf<OpenRequest> M>
void Fields(A& a, M& m) {
  a.Bytes("database", m.database, kMaxDatabaseNameBytes);
  a.Enum("purpose", m.purpose, 2, PurposeName);
  FamilyNames(a, "families", m.families);
  Fields(a, m.interval);
  Number(a, "lanes", m.lanes, kMaxLanes);
  Number(a, "chunk_bytes", m.chunk_bytes, kMaxChunkBytes);
  a.Bytes("application", m.application, kMaxIdentifierBytes);
  Number(a, "max_rate_bytes_per_sec", m.max_rate_bytes_per_sec);
  a.Bool("full_rate", m.full_rate);
  a.Enum("compression", m.compression, 2, WireCompressionName);
  Number(a, "compression_level", m.compression_level, kMaxCompressionLevel);
  a.Enum("snapshot_use", m.snapshot_use, 4, SnapshotUseName);
  a.Id("named_transfer", m.named_transfer);
  a.Enum("mode", m.mode, 2, TransferModeName);
  FamilyNames(a, "replica_families", m.replica_families);
  Number(a, "waited_seconds", m.waited_seconds);
  a.Id("newer_than", m.newer_than);
  a.Text("target", m.target, kMaxTargetTextBytes);
}

template <typename A, FieldsOf<Busy> M>
void Fields(A& a, M& m) {
  Number(a, "retry_after_millis", m.retry_after_millis, kMaxRetryAfterMillis,
         kMinRetryAfterMillis);
}

template <typename A, FieldsOf<Place> M>
void Fields(A& a, M& m) {
  a.Digest("id", m.id);
  a.Bool("is_own", m.is_own);
}

template <typename A, FieldsOf<OtherFile> M>
void Fields(A& a, M& m) {
  a.Bytes("name", m.name, kMaxFileNameBytes);
  Number(a, "bytes", m.bytes);
  a.Enum("kept_back", m.kept_back, kMaxKeptBack, KeptBackName);
}

template <typename A, FieldsOf<Opened> M>
void Fields(A& a, M& m) {
  a.Id("transfer_id", m.transfer_id);
  a.Bytes("source_database_id", m.source_database_id, kMaxIdentifierBytes);
  Number(a, "snapshot_sequence", m.snapshot_sequence);
  Number(a, "lanes", m.lanes, kMaxLanes);
  Number(a, "family_count", m.family_count, kMaxFamilies);
  NamedValues(a, "database_options", m.database_options);
  a.List("notes", m.notes, kMaxNotes, 4, [](auto& archive, auto& item) {
    archive.Text("note", item, kMaxNoteBytes);
  });
  Number(a, "snapshot_micros", m.snapshot_micros);
  Number(a, "plan_micros", m.plan_micros);
  a.Bool("resumed", m.resumed);
  Number(a, "lease_seconds", m.lease_seconds);
  a.List("places", m.places, kMaxPlaces, 17,
         [](auto& archive, auto& item) { Fields(archive, item); });
  Number(a, "taken_seconds", m.taken_seconds);
  a.Bytes("application", m.application, kMaxIdentifierBytes);
  a.Bytes("written_by", m.written_by, kMaxIdentifierBytes);
  a.Bytes("opens_since", m.opens_since, kMaxIdentifierBytes);
  a.Text("opens_because", m.opens_because, kMaxIdentifierBytes);
  Number(a, "unlogged_since_seconds", m.unlogged_since_seconds);
  a.List("other_files", m.other_files, kMaxOtherFiles, 13,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<OtherFileRequest> M>
void Fields(A& a, M& m) {
  a.Bytes("name", m.name, kMaxOtherNameBytes);
  Number(a, "offset", m.offset, kMaxOtherFileBytes);
}

template <typename A, FieldsOf<OtherFilePart> M>
void Fields(A& a, M& m) {
  a.Text("problem", m.problem, kMaxMessageTextBytes);
  Number(a, "file_bytes", m.file_bytes, kMaxOtherFileBytes);
  a.Digest("content", m.content);
  a.Bool("is_private", m.is_private);
  a.Bytes("bytes", m.bytes, kMaxOtherPartBytes);
}

template <typename A, FieldsOf<FamilyDescription> M>
void Fields(A& a, M& m) {
  a.Bytes("name", m.name, kMaxFamilyNameBytes);
  a.Bytes("comparator", m.comparator, kMaxIdentifierBytes);
  a.Bytes("merge_operator", m.merge_operator, kMaxIdentifierBytes);
  a.Bytes("table_factory", m.table_factory, kMaxIdentifierBytes);
  NamedValues(a, "options", m.options);
  NamedValues(a, "table_options", m.table_options);
}

template <typename A, FieldsOf<Family> M>
void Fields(A& a, M& m) {
  Number(a, "index", m.index, kMaxFamilies - 1);
  Fields(a, m.description);
  Number(a, "format_version", m.format_version);
  Number(a, "estimated_entries", m.estimated_entries);
  Number(a, "estimated_bytes", m.estimated_bytes);
  Number(a, "source_files", m.source_files);
}

template <typename A, FieldsOf<Parts> M>
void Fields(A& a, M& m) {
  a.List("parts", m.parts, kMaxParts, 32,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<PlanItems> M>
void Fields(A& a, M& m) {
  a.List("items", m.items, kMaxParts, 23,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<CloneSet> M>
void Fields(A& a, M& m) {
  Number(a, "unit_bytes", m.unit_bytes, kMaxChunkBytes, kMinChunkBytes);
  Number(a, "file_count", m.file_count, kMaxParts);
  a.Digest("content", m.content);
}

template <typename A, FieldsOf<CloneFiles> M>
void Fields(A& a, M& m) {
  a.List("files", m.files, kMaxParts, kCloneFileBytes,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<PlanEnd> M>
void Fields(A& a, M& m) {
  Number(a, "part_count", m.part_count, kMaxParts);
  Number(a, "estimated_bytes", m.estimated_bytes);
}

template <typename A, FieldsOf<Ping> M>
void Fields(A& a, M& m) {
  Number(a, "token", m.token);
}

template <typename A, FieldsOf<Stats> M>
void Fields(A& a, M& m) {
  Number(a, "entries", m.entries);
  Number(a, "sst_bytes", m.sst_bytes);
  Number(a, "wire_bytes", m.wire_bytes);
  Number(a, "read_build_micros", m.read_build_micros);
  Number(a, "send_wait_micros", m.send_wait_micros);
  Number(a, "idle_micros", m.idle_micros);
  Number(a, "read_bytes", m.read_bytes);
  Number(a, "send_blocked_micros", m.send_blocked_micros);
  Number(a, "held_cpu_micros", m.held_cpu_micros);
  Number(a, "held_io_micros", m.held_io_micros);
  Number(a, "held_latency_micros", m.held_latency_micros);
}

template <typename A, FieldsOf<Compress> M>
void Fields(A& a, M& m) {
  a.Bool("on", m.on);
}

template <typename A, FieldsOf<Received> M>
void Fields(A& a, M& m) {
  a.List("parts", m.parts, kMaxParts, kReceivedPartBytes,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<StatusRequest> M>
void Fields(A& a, M& m) {
  a.Bytes("database", m.database, kMaxDatabaseNameBytes);
}

template <typename A, FieldsOf<StatusReply> M>
void Fields(A& a, M& m) {
  a.List("snapshots", m.snapshots, kMaxRetainedSnapshots, 60,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.List("followers", m.followers, kMaxReportedFollowers, 41,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<FactsRequest> M>
void Fields(A& a, M& m) {
  a.Bytes("database", m.database, kMaxDatabaseNameBytes);
  FamilyNames(a, "families", m.families);
  a.Bool("for_pull", m.for_pull);
  a.Bytes("application", m.application, kMaxIdentifierBytes);
}

template <typename A, FieldsOf<FactsReply> M>
void Fields(A& a, M& m) {
  Number(a, "families", m.families);
  Number(a, "files", m.files);
  Number(a, "bytes", m.bytes);
  Number(a, "sequence", m.sequence);
  Number(a, "age_seconds", m.age_seconds);
  Number(a, "chunk_bytes", m.chunk_bytes);
  a.Bytes("database_id", m.database_id, kMaxIdentifierBytes);
  a.Text("problem", m.problem, kMaxMessageTextBytes);
  a.Text("no_clone", m.no_clone, kMaxMessageTextBytes);
}

template <typename A, FieldsOf<FollowPosition> M>
void Fields(A& a, M& m) {
  a.Bytes("database_id", m.database_id, kMaxIdentifierBytes);
  Number(a, "manifest_number", m.manifest_number);
  Number(a, "cut_bytes", m.cut_bytes);
  Number(a, "manifest_bytes", m.manifest_bytes);
  a.Digest("manifest", m.manifest);
  Number(a, "wal_number", m.wal_number);
  Number(a, "wal_bytes", m.wal_bytes);
  a.Digest("wal", m.wal);
}

template <typename A, FieldsOf<FollowJudged> M>
void Fields(A& a, M& m) {
  Number(a, "judged_bytes", m.manifest_bytes);
  a.Digest("judged", m.manifest);
}

template <typename A, FieldsOf<FollowRequest> M>
void Fields(A& a, M& m) {
  a.Bytes("database", m.database, kMaxDatabaseNameBytes);
  Fields(a, m.position);
  a.Bool("exact_filters", m.exact_filters);
  Number(a, "wait_millis", m.wait_millis, kMaxFollowWaitMillis);
  a.Text("target", m.target, kMaxTargetTextBytes);
}

template <typename A, FieldsOf<WalBytes> M>
void Fields(A& a, M& m) {
  Number(a, "wal_number", m.wal_number, kMaxFileNumber, 1);
  Number(a, "offset_bytes", m.offset_bytes);
  a.Bytes("bytes", m.bytes, kMaxFollowBytes);
}

template <typename A, FieldsOf<FollowEnd> M>
void Fields(A& a, M& m) {
  a.Enum("cut", m.cut, kMaxSourceCutReason, CutReasonName);
  a.Text("note", m.note, kMaxMessageTextBytes);
  Number(a, "last_sequence", m.last_sequence);
  Number(a, "read_micros", m.read_micros);
  Number(a, "more_bytes", m.more_bytes);
  a.Bool("source_closed", m.source_closed);
  a.Enum("source_process", m.source_process, kMaxSourceProcess,
         SourceProcessName);
  Fields(a, m.judged);
  a.Digest("wal", m.wal);
}

template <typename A, FieldsOf<Finish> M>
void Fields(A& a, M& m) {
  a.List("families", m.families, kMaxFamilies, 32,
         [](auto& archive, auto& item) { Fields(archive, item); });
  Fields(a, m.stats);
}

}  // namespace sstferry
