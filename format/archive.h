// Names and contents of the objects of an archive, a store of backups ("sets").
// archive_set.h describes the record of a set. Each small object is a file in
// the format of format/sealed_file.h. Normative text: format/FORMAT.md,
// "Archive".
//
//   ARCHIVE                                identity of the archive
//   files/<hh>/<identity>-<bytes>-<set>    a table or blob file, unchanged
//   parts/<set>/<name>                     any other file of a set
//   sets/<time>-<set>                      a set record
//   done/<time>-<set>                      marks the set as committed
//   intents/<set>                          a running push
//   marks/<mark>                           names that a prune will delete
//   wal/<lineage>/<segment>                a segment of the log (archive_log.h)
//   CHECKED                                faults that the last check found
//
// Each name can be parsed into its fields (ArchiveKey, LogKey, ...). To open an
// object, code makes the name from these fields.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "format/clone_file.h"
#include "format/digest.h"
#include "format/types.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Random id of a set. Two pushes have different ids, so they never write
// objects with the same name.
using SetId = std::array<uint8_t, 8>;
std::string ToHex(const SetId& id);  // 16 digits

inline constexpr char kArchiveHeadKey[] = "ARCHIVE";
inline constexpr char kArchiveCheckedKey[] = "CHECKED";
inline constexpr char kArchiveFilesPrefix[] = "files/";
inline constexpr char kArchivePartsPrefix[] = "parts/";
inline constexpr char kArchiveSetsPrefix[] = "sets/";
inline constexpr char kArchiveDonePrefix[] = "done/";
inline constexpr char kArchiveIntentsPrefix[] = "intents/";
inline constexpr char kArchiveMarksPrefix[] = "marks/";
inline constexpr char kArchiveLogPrefix[] = "wal/";

inline constexpr uint32_t kMaxStoreKeyBytes = 512;
// Returns true if `key` has 1 to 512 bytes and consists of components separated
// by single slashes. A component has only A-Z a-z 0-9 _ . - and does not begin
// with a dot. Such a key cannot leave its directory ("..") and needs no
// encoding in a signed request.
bool IsStoreKey(const rocksdb::Slice& key);

// The last second of the year 9999. Up to this time, the year has four digits,
// so names sorted as text are also sorted by time.
inline constexpr uint64_t kMaxArchiveSeconds = 253'402'300'799;

// Returns the time in UTC as text: "20261124T030000Z". REQUIRES: `seconds` is
// at most kMaxArchiveSeconds.
std::string ArchiveTimeText(uint64_t seconds);
// Parses a text that ArchiveTimeText() can return. Returns false for other
// texts.
[[nodiscard]] bool ParseArchiveTime(const rocksdb::Slice& text,
                                    uint64_t* seconds);

// Name of a set: a time by the store's clock, and the set's id. A newer set has
// a greater name.
struct SetName {
  uint64_t seconds = 0;
  SetId id{};
  friend auto operator<=>(const SetName&, const SetName&) = default;
};
// Returns "20261124T030000Z-0123456789abcdef".
std::string SetNameText(const SetName& name);
[[nodiscard]] bool ParseSetName(const rocksdb::Slice& text, SetName* name);
inline std::string SetKey(const SetName& name) {
  return kArchiveSetsPrefix + SetNameText(name);
}
inline std::string DoneKey(const SetName& name) {
  return kArchiveDonePrefix + SetNameText(name);
}
inline std::string IntentKey(const SetId& id) {
  return kArchiveIntentsPrefix + ToHex(id);
}
inline std::string MarkKey(const SetId& id) {
  return kArchiveMarksPrefix + ToHex(id);
}
// Parses 16 lower-case hex digits.
[[nodiscard]] bool ParseSetId(const rocksdb::Slice& text, SetId* id);

// Key of the object that stores a database file. A shared file may be used by
// later sets, so its key contains its identity and the set that uploaded it.
// Any other file is used only by its own set. Its key contains this set and the
// file's kind and number.
struct ArchiveKey {
  SetId set{};  // the set that uploaded the file
  bool is_shared = false;
  Digest128 identity;  // only if shared
  uint64_t bytes = 0;
  CloneFileKind kind = CloneFileKind::kTable;  // only if not shared
  uint64_t number = 0;
  friend bool operator==(const ArchiveKey&, const ArchiveKey&) = default;
};
// Returns "files/0a/0a..-4711-01..", or "parts/01../MANIFEST-000005".
std::string ArchiveKeyText(const ArchiveKey& key);
// Parses a text that ArchiveKeyText() can return. Returns false for other
// texts.
[[nodiscard]] bool ParseArchiveKey(const rocksdb::Slice& text,
                                   ArchiveKey* key);

// Key of a segment of the log. A lineage is the unbroken log that one follower
// wrote. If a lineage begins with a set, it has the set's id. If it continues
// an earlier lineage, it has a random id, and its segment numbers continue
// those of the earlier lineage.
struct LogKey {
  SetId lineage{};
  uint64_t number = 0;  // the first segment of a log is 1
  // With this segment and all earlier ones, any time from begin_micros to
  // end_micros can be restored. The times are in microseconds since 1970, by
  // the follower's clock. Both are 0 if the follower always lagged the source
  // by more than some milliseconds. Then only a sequence number can be
  // restored.
  uint64_t begin_micros = 0;
  uint64_t end_micros = 0;
  friend auto operator<=>(const LogKey&, const LogKey&) = default;
};
inline constexpr uint64_t kMaxLogNumber = 0xffff'ffff;
inline constexpr uint64_t kMaxLogMicros = kMaxArchiveSeconds * 1'000'000;
// Returns "wal/01../0000002a-0006..-0006..".
std::string LogKeyText(const LogKey& key);
// Parses a text that LogKeyText() can return. Returns false for other texts.
[[nodiscard]] bool ParseLogKey(const rocksdb::Slice& text, LogKey* key);

// --- the small objects -------------------------------------------------------

inline constexpr uint32_t kArchiveFormat = 1;
inline constexpr uint64_t kMinGraceSeconds = 3600;
inline constexpr uint64_t kMaxGraceSeconds = 366ull * 86400;
inline constexpr uint32_t kMaxArchiveTextBytes = 1024;
// Maximum sizes of the small objects in bytes, including their seals.
inline constexpr uint64_t kMaxArchiveHeadBytes = 64u << 10;
inline constexpr uint64_t kMaxIntentBytes = 4u << 20;
inline constexpr uint64_t kMaxMarkBytes = 16u << 20;
inline constexpr uint64_t kMaxDoneBytes = 4u << 10;
inline constexpr uint32_t kMaxIntentSets = 1u << 16;
inline constexpr uint32_t kMaxMarkSets = 1u << 16;
inline constexpr uint32_t kMaxMarkKeys = 1u << 17;
inline constexpr uint32_t kMaxMarkSegments = 1u << 17;

// Object ARCHIVE. The command `archive init` writes it once.
struct ArchiveHead {
  static constexpr char kName[] = "archive";

  uint32_t format = kArchiveFormat;
  TransferId archive_id{};  // random
  uint64_t created_seconds = 0;
  // True if the store supports conditional puts, which succeed only if the key
  // is absent. If several clients put one key at the same time, one put
  // succeeds.
  bool has_if_absent = false;
  // True if the store rejects a request that was signed more than 15 minutes
  // ago.
  bool refuses_old_signatures = false;
  // Grace period of a prune: it may delete an object that no set has used for
  // this time.
  uint64_t grace_seconds = 0;
  friend bool operator==(const ArchiveHead&, const ArchiveHead&) = default;
};
void EncodeArchiveHead(const ArchiveHead& head, std::string* out);
// Decodes the object.
//   kIncompatible  the archive has another format
[[nodiscard]] rocksdb::Status DecodeArchiveHead(const rocksdb::Slice& object,
                                                ArchiveHead* head);

// States that a push is running. While this object exists, a prune does not
// treat the objects of the push as orphans. These are the objects whose names
// contain the push's set id, and the objects of other sets that the push uses.
struct ArchiveIntent {
  static constexpr char kName[] = "intent";

  uint64_t begun_seconds = 0;  // by the store's clock
  uint64_t renewed_seconds = 0;
  std::string host;  // for people only
  // Ids of earlier sets. The push may use the objects that these sets uploaded,
  // and the objects that the records of these sets name.
  std::vector<SetId> uses;
  friend bool operator==(const ArchiveIntent&, const ArchiveIntent&) = default;
};
void EncodeArchiveIntent(const ArchiveIntent& intent, std::string* out);
[[nodiscard]] rocksdb::Status DecodeArchiveIntent(const rocksdb::Slice& object,
                                                  ArchiveIntent* intent);

struct MarkedSet {
  SetName name;
  // True if the set was committed when a prune marked it. If a later prune
  // decides to keep the set, the prune changes this to false. A committed set
  // is deleted only if this is true.
  bool was_done = false;
  friend bool operator==(const MarkedSet&, const MarkedSet&) = default;
};

// Lists the objects that a later prune will delete.
struct ArchiveMark {
  static constexpr char kName[] = "mark";

  uint64_t marked_seconds = 0;  // by the store's clock
  std::vector<MarkedSet> sets;
  std::vector<ArchiveKey> keys;
  std::vector<LogKey> segments;
  friend bool operator==(const ArchiveMark&, const ArchiveMark&) = default;
};
// Appends a complete object. REQUIRES: at most kMaxMarkSets sets, kMaxMarkKeys
// keys and kMaxMarkSegments segments.
void EncodeArchiveMark(const ArchiveMark& mark, std::string* out);
[[nodiscard]] rocksdb::Status DecodeArchiveMark(const rocksdb::Slice& object,
                                                ArchiveMark* mark);

// Object done/..., which commits a set. A push writes it after the set record,
// when all objects that the record names exist.
struct ArchiveDone {
  static constexpr char kName[] = "done";

  Digest128 set;  // digest of the set record's bytes
  friend bool operator==(const ArchiveDone&, const ArchiveDone&) = default;
};
// Object CHECKED, a list of damaged objects. It is written by each check with
// write access, and by each repair that reads wrong bytes. A push does not
// reuse a listed object. A prune treats a set that uses a listed object as
// damaged. An object stays in the list until a check finds it undamaged, or
// until it is deleted.
inline constexpr uint64_t kMaxCheckedBytes = 4u << 20;
inline constexpr uint32_t kMaxFoundFaults = 1u << 12;
struct FoundFault {
  std::string key;      // key of the object
  std::string problem;  // description of the fault
  uint64_t seconds = 0; // when the fault was first found
  friend bool operator==(const FoundFault&, const FoundFault&) = default;
};
struct ArchiveChecked {
  static constexpr char kName[] = "checked";

  uint64_t checked_seconds = 0;  // by the store's clock
  std::vector<FoundFault> faults;
  friend bool operator==(const ArchiveChecked&,
                         const ArchiveChecked&) = default;
};
void EncodeArchiveChecked(const ArchiveChecked& checked, std::string* out);
[[nodiscard]] rocksdb::Status DecodeArchiveChecked(
    const rocksdb::Slice& object, ArchiveChecked* checked);

void EncodeArchiveDone(const ArchiveDone& done, std::string* out);
[[nodiscard]] rocksdb::Status DecodeArchiveDone(const rocksdb::Slice& object,
                                                ArchiveDone* done);

}  // namespace sstferry
