#include "format/archive_set.h"

#include <zstd.h>

#include "format/archive_fields.h"
#include "format/end_state.h"
#include "format/part.h"
#include "format/sealed_file.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr char kSetMagic[] = "SFASETS1";
constexpr int kZstdLevel = 3;

Status BadSetRecord(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "set: " + what);
}

// Decompresses one zstd frame that contains its content size and fills `frame`.
Status Decompress(const Slice& frame, std::string* raw) {
  const uint64_t bytes = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes == ZSTD_CONTENTSIZE_ERROR ||
      bytes > kMaxSetRawBytes) {
    return BadSetRecord("expected a zstd frame with a content of at most " +
                  std::to_string(kMaxSetRawBytes) + " bytes, found none");
  }
  const size_t whole = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (ZSTD_isError(whole) != 0 || whole != frame.size()) {
    return BadSetRecord("expected one zstd frame of " +
                  std::to_string(frame.size()) +
                  " bytes, found a damaged one or bytes after it");
  }
  // Rejects a content size that is impossible for the frame before allocating
  // it. zstd needs at least 4 bytes for each 128 KiB of content.
  constexpr uint64_t kMostRatio = 64u << 10;
  if (bytes / kMostRatio > frame.size()) {
    return BadSetRecord("expected at most " + std::to_string(kMostRatio) +
                  " bytes for each compressed byte, found " +
                  std::to_string(bytes) + " for " +
                  std::to_string(frame.size()));
  }
  raw->resize(bytes);
  const size_t found =
      ZSTD_decompress(raw->data(), raw->size(), frame.data(), frame.size());
  return ZSTD_isError(found) == 0 && found == bytes
             ? Status::OK()
             : BadSetRecord("zstd frame: expected " + std::to_string(bytes) +
                      " bytes, found a damaged frame");
}

// Checks rules that the field list cannot express: the files must form one
// database.
Status CheckSet(const SetName& name, const ArchiveSet& set) {
  if (set.name != name) {
    return BadSetRecord("expected the record of " + SetNameText(name) +
                  ", found the record of " + SetNameText(set.name));
  }
  std::vector<CloneFile> files;
  files.reserve(set.files.size());
  for (const ArchivedFile& file : set.files) {
    files.push_back(file.file);
    const ArchiveKey& key = file.key;
    const bool good =
        key.is_shared ? key.identity == file.file.identity &&
                            key.bytes == file.file.bytes
                      : key.set == name.id && key.kind == file.file.kind &&
                            key.number == file.file.number;
    if (!set.is_sealed && file.salt != SealSalt()) {
      return BadSetRecord(CloneFileName(file.file) +
                          ": expected no salt, because the set is not sealed, "
                          "found one");
    }
    if (!good) {
      return BadSetRecord("expected the key of " + CloneFileName(file.file) +
                    ", found " + ArchiveKeyText(key));
    }
  }
  if (!set.is_sealed &&
      (set.key_id != SealKeyId() || set.seal != Sha256Digest())) {
    return BadSetRecord("expected an unsealed set, found a seal");
  }
  RETURN_IF_ERROR(CheckCloneFiles(files));
  std::vector<Part> units;
  RETURN_IF_ERROR(CutIntoUnits(files, set.unit_bytes, &units));
  std::vector<size_t> counts(files.size());
  for (const Part& unit : units) {
    ++counts[unit.file];
  }
  for (size_t i = 0; i < files.size(); ++i) {
    if (set.files[i].units.size() != counts[i]) {
      return BadSetRecord(CloneFileName(files[i]) + ": expected digests of " +
                    std::to_string(counts[i]) + " units, found " +
                    std::to_string(set.files[i].units.size()));
    }
  }
  return Status::OK();
}

}  // namespace

uint64_t ArchiveSet::bytes() const {
  uint64_t sum = 0;
  for (const ArchivedFile& file : files) {
    sum += file.file.bytes;
  }
  return sum;
}

template <typename A, FieldsOf<ArchivedFile> M>
void Fields(A& a, M& m) {
  Fields(a, m.file);
  Fields(a, m.key);
  a.Id("sha256", m.sha256);
  a.List("units", m.units, kMaxParts, 16,
         [](auto& archive, auto& item) { archive.Digest("unit", item); });
  a.Id("salt", m.salt);
}

template <typename A, FieldsOf<SetLog> M>
void Fields(A& a, M& m) {
  a.Id("lineage", m.lineage);
  Number(a, "segment", m.segment, kMaxLogNumber);
  Number(a, "moment_micros", m.moment_micros, kMaxLogMicros);
}

template <typename A, FieldsOf<ArchiveSet> M>
void Fields(A& a, M& m) {
  Fields(a, m.name);
  a.Text("label", m.label, kMaxArchiveTextBytes);
  a.Text("software", m.software, kMaxArchiveTextBytes);
  a.Text("host", m.host, kMaxArchiveTextBytes);
  a.Bytes("database_id", m.database_id, kMaxIdentifierBytes);
  Number(a, "sequence", m.sequence);
  a.Text("application", m.application, kMaxArchiveTextBytes);
  a.Text("needs", m.needs, kMaxArchiveTextBytes);
  a.Text("needs_because", m.needs_because, kMaxArchiveTextBytes);
  a.Digest("content", m.content);
  FamilyNames(a, "families", m.families);
  a.List("notes", m.notes, kMaxNotes, 4, [](auto& archive, auto& item) {
    archive.Text("note", item, kMaxNoteBytes);
  });
  Number(a, "unit_bytes", m.unit_bytes, kMaxChunkBytes, kMinChunkBytes);
  a.List("files", m.files, kMaxParts,
         kCloneFileBytes + kArchiveKeyBytes + 32 + 4 + 16,
         [](auto& archive, auto& item) { Fields(archive, item); });
  Fields(a, m.log);
  a.Bool("is_sealed", m.is_sealed);
  a.Id("key_id", m.key_id);
  a.Id("seal", m.seal);
  // Records of older releases end here. Such a record must be encoded without
  // the later fields, because its seal does not cover them.
  if (a.HasMore(m.host_seconds != 0 || m.repairs != SetId())) {
    Number(a, "host_seconds", m.host_seconds, kMaxArchiveSeconds);
    a.Id("repairs", m.repairs);
    a.Check("host_seconds", m.host_seconds != 0 || m.repairs != SetId(),
            "expected a time, or the id of a repaired set in the field "
            "repairs, found neither");
  }
}

std::string EncodeArchiveSetRecord(const ArchiveSet& set) {
  std::string raw;
  Encode(set, &raw);
  return raw;
}

Status EncodeArchiveSet(const ArchiveSet& set, std::string* out) {
  const std::string raw = EncodeArchiveSetRecord(set);
  std::string frame(ZSTD_compressBound(raw.size()), '\0');
  const size_t bytes = ZSTD_compress(frame.data(), frame.size(), raw.data(),
                                     raw.size(), kZstdLevel);
  if (ZSTD_isError(bytes) != 0) {
    return MakeStatus(EndState::kInternal,
                      std::string("set: cannot be compressed: ") +
                          ZSTD_getErrorName(bytes));
  }
  frame.resize(bytes);
  if (raw.size() > kMaxSetRawBytes || bytes > kMaxSetBytes) {
    return MakeStatus(EndState::kRefused,
                      "set: the database is too large for one set: expected "
                      "a record of its files of at most " +
                          std::to_string(kMaxSetRawBytes) + " bytes (" +
                          std::to_string(kMaxSetBytes) +
                          " compressed), found " + std::to_string(raw.size()) +
                          " (" + std::to_string(bytes) + " compressed)");
  }
  SealFile(kSetMagic, frame, out);
  return Status::OK();
}

Status DecodeArchiveSet(const Slice& object, const SetName& name,
                        ArchiveSet* set) {
  *set = ArchiveSet();
  Slice frame;
  RETURN_IF_ERROR(
      UnsealFile("set", kSetMagic, kMaxSetBytes, object, &frame));
  std::string raw;
  RETURN_IF_ERROR(Decompress(frame, &raw));
  return DecodeArchiveSetRecord(raw, name, set);
}

Status DecodeArchiveSetRecord(const Slice& record, const SetName& name,
                              ArchiveSet* set) {
  *set = ArchiveSet();
  RETURN_IF_ERROR(Decode(record, set));
  return CheckSet(name, *set);
}

}  // namespace sstferry
