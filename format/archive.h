// The objects of an archive, apart from the record of a set (archive_set.h):
// their names and the small ones' bytes. Normative text: format/FORMAT.md,
// "Archive". Each small object is a file of format/sealed_file.h.
//
//   ARCHIVE                                what the archive is
//   files/<hh>/<identity>-<bytes>-<set>    a table or blob file as it is
//   parts/<set>/<name>                     another file of a set
//   sets/<time>-<set>                      a set record
//   done/<time>-<set>                      the set is whole
//   intents/<set>                          a push that runs
//   marks/<mark>                           what a prune is going to delete
//   wal/<lineage>/<segment>                a segment of the log (archive_log.h)
//   CHECKED                                what the last check found
//
// A name says all that its reader needs: none is taken out of a record.
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

// Random, so that no two pushes ever write under the same name.
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

// The last second of the year 9999: times of names sort as their digits do.
inline constexpr uint64_t kMaxArchiveSeconds = 253'402'300'799;

// "20261124T030000Z", in UTC. REQUIRES: at most kMaxArchiveSeconds.
std::string ArchiveTimeText(uint64_t seconds);
// Parses exactly what ArchiveTimeText() makes.
[[nodiscard]] bool ParseArchiveTime(const rocksdb::Slice& text,
                                    uint64_t* seconds);

// A set, by its time of the store's clock. Later sets are greater.
struct SetName {
  uint64_t seconds = 0;
  SetId id{};
  friend auto operator<=>(const SetName&, const SetName&) = default;
};
// "20261124T030000Z-0123456789abcdef".
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

// Where a file of a database lies. A shared one is named by what it is, and by
// the set that uploaded it; sets after that one use it again. Another one is
// named by its kind and number, and only its own set uses it.
struct ArchiveKey {
  SetId set{};  // that uploaded it
  bool is_shared = false;
  Digest128 identity;  // if it is shared
  uint64_t bytes = 0;
  CloneFileKind kind = CloneFileKind::kTable;  // if it is not
  uint64_t number = 0;
  friend bool operator==(const ArchiveKey&, const ArchiveKey&) = default;
};
// "files/0a/0a..-4711-01..", or "parts/01../MANIFEST-000005".
std::string ArchiveKeyText(const ArchiveKey& key);
// Parses exactly what ArchiveKeyText() makes.
[[nodiscard]] bool ParseArchiveKey(const rocksdb::Slice& text,
                                   ArchiveKey* key);

// A segment of the log. A lineage is one unbroken log that one follower wrote,
// from its start to its end; its id is that of the set it begins with, or a
// random one where it continues an earlier lineage. Segments of a lineage count
// on from those that it continues.
struct LogKey {
  SetId lineage{};
  uint64_t number = 0;  // from 1
  // Any time from begin to end can be restored by this segment and those before
  // it: the follower had all that the source wrote up to then, but for some
  // milliseconds. Microseconds since 1970 of the follower's clock. Both 0: it
  // was behind all the time, and only sequence numbers can be restored.
  uint64_t begin_micros = 0;
  uint64_t end_micros = 0;
  friend auto operator<=>(const LogKey&, const LogKey&) = default;
};
inline constexpr uint64_t kMaxLogNumber = 0xffff'ffff;
inline constexpr uint64_t kMaxLogMicros = kMaxArchiveSeconds * 1'000'000;
// "wal/01../0000002a-0006..-0006..".
std::string LogKeyText(const LogKey& key);
// Parses exactly what LogKeyText() makes.
[[nodiscard]] bool ParseLogKey(const rocksdb::Slice& text, LogKey* key);

// --- the small objects -------------------------------------------------------

inline constexpr uint32_t kArchiveFormat = 1;
inline constexpr uint64_t kMinGraceSeconds = 3600;
inline constexpr uint64_t kMaxGraceSeconds = 366ull * 86400;
inline constexpr uint32_t kMaxArchiveTextBytes = 1024;
// The most bytes of each small object, with its seal.
inline constexpr uint64_t kMaxArchiveHeadBytes = 64u << 10;
inline constexpr uint64_t kMaxIntentBytes = 4u << 20;
inline constexpr uint64_t kMaxMarkBytes = 16u << 20;
inline constexpr uint64_t kMaxDoneBytes = 4u << 10;
inline constexpr uint32_t kMaxIntentSets = 1u << 16;
inline constexpr uint32_t kMaxMarkSets = 1u << 16;
inline constexpr uint32_t kMaxMarkKeys = 1u << 17;
inline constexpr uint32_t kMaxMarkSegments = 1u << 17;

// ARCHIVE. Written once, by `archive init`.
struct ArchiveHead {
  static constexpr char kName[] = "archive";

  uint32_t format = kArchiveFormat;
  TransferId archive_id{};  // random
  uint64_t created_seconds = 0;
  // `archive init` found this out about the store.
  bool has_if_absent = false;           // one of many puts of a key wins
  bool refuses_old_signatures = false;  // of more than 15 minutes
  // A prune may delete what no set has named for this time.
  uint64_t grace_seconds = 0;
  friend bool operator==(const ArchiveHead&, const ArchiveHead&) = default;
};
void EncodeArchiveHead(const ArchiveHead& head, std::string* out);
//   kIncompatible  of another format
[[nodiscard]] rocksdb::Status DecodeArchiveHead(const rocksdb::Slice& object,
                                                ArchiveHead* head);

// An upload that runs: what has its name, and what it uses of other sets, is no
// orphan.
struct ArchiveIntent {
  static constexpr char kName[] = "intent";

  uint64_t begun_seconds = 0;  // of the store's clock
  uint64_t renewed_seconds = 0;
  std::string host;  // for people
  // It may use what these uploaded, and what their records name.
  std::vector<SetId> uses;
  friend bool operator==(const ArchiveIntent&, const ArchiveIntent&) = default;
};
void EncodeArchiveIntent(const ArchiveIntent& intent, std::string* out);
[[nodiscard]] rocksdb::Status DecodeArchiveIntent(const rocksdb::Slice& object,
                                                  ArchiveIntent* intent);

struct MarkedSet {
  SetName name;
  // It was whole when it was marked: what was not, and is so now, stays.
  bool was_done = false;
  friend bool operator==(const MarkedSet&, const MarkedSet&) = default;
};

// Names what a later run of prune deletes.
struct ArchiveMark {
  static constexpr char kName[] = "mark";

  uint64_t marked_seconds = 0;  // of the store's clock
  std::vector<MarkedSet> sets;
  std::vector<ArchiveKey> keys;
  std::vector<LogKey> segments;
  friend bool operator==(const ArchiveMark&, const ArchiveMark&) = default;
};
// REQUIRES: at most kMaxMarkSets, kMaxMarkKeys and kMaxMarkSegments.
void EncodeArchiveMark(const ArchiveMark& mark, std::string* out);
[[nodiscard]] rocksdb::Status DecodeArchiveMark(const rocksdb::Slice& object,
                                                ArchiveMark* mark);

// done/...: everything that a set names was there after the set itself was.
struct ArchiveDone {
  static constexpr char kName[] = "done";

  Digest128 set;  // of the bytes of the set record
  friend bool operator==(const ArchiveDone&, const ArchiveDone&) = default;
};
// CHECKED: put by each check that may. It only tells people, and the next check,
// which objects were found amiss: one that was not read since stays so.
inline constexpr uint64_t kMaxCheckedBytes = 4u << 20;
inline constexpr uint32_t kMaxFoundFaults = 1u << 12;
struct FoundFault {
  std::string key;      // of an object
  std::string problem;  // what is amiss
  uint64_t seconds = 0; // since when
  friend bool operator==(const FoundFault&, const FoundFault&) = default;
};
struct ArchiveChecked {
  static constexpr char kName[] = "checked";

  uint64_t checked_seconds = 0;  // of the store's clock
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
