#include "format/archive.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>

#include "format/archive_fields.h"
#include "format/end_state.h"
#include "format/hex.h"
#include "format/sealed_record.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr char kHeadMagic[] = "SFARCHV1";
constexpr char kIntentMagic[] = "SFAINTE1";
constexpr char kMarkMagic[] = "SFAMARK1";
constexpr char kCheckedMagic[] = "SFACHEK1";
constexpr char kDoneMagic[] = "SFADONE1";

constexpr size_t kTimeBytes = 16;
constexpr size_t kSetIdDigits = 16;
constexpr size_t kIdentityDigits = 32;

constexpr uint64_t kDaySeconds = 86400;
constexpr uint64_t kFirstDate = 19700101;

struct Date {
  unsigned year = 0;
  unsigned month = 0;
  unsigned day = 0;
};

// Constants for counting days from 1 March of the year 0. If a year begins in
// March, a leap day is its last day. Every 400 years of the Gregorian calendar
// have the same number of days.
constexpr uint64_t kDaysBefore1970 = 719'468;
constexpr uint64_t kDaysOf400Years = 146'097;

// Returns the date this many days after 1 January 1970.
Date DateOfDay(uint64_t day) {
  const uint64_t days = day + kDaysBefore1970;
  const uint64_t rest = days % kDaysOf400Years;
  const uint64_t year =
      (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
  const uint64_t of_year = rest - (365 * year + year / 4 - year / 100);
  const uint64_t month = (5 * of_year + 2) / 153;  // 0: March
  Date date;
  date.day = static_cast<unsigned>(of_year - (153 * month + 2) / 5 + 1);
  date.month = static_cast<unsigned>(month < 10 ? month + 3 : month - 9);
  date.year = static_cast<unsigned>(days / kDaysOf400Years * 400 + year +
                                    (date.month <= 2 ? 1 : 0));
  return date;
}

// Returns the day number of a date from 1970 on, the inverse of DateOfDay().
// For a date that does not exist, returns the number of another date.
uint64_t DayOfDate(const Date& date) {
  const uint64_t years = date.year - (date.month <= 2 ? 1 : 0);
  const uint64_t year = years % 400;
  const uint64_t month = (date.month + 9) % 12;
  const uint64_t of_year = (153 * month + 2) / 5 + date.day - 1;
  return years / 400 * kDaysOf400Years + year * 365 + year / 4 - year / 100 +
         of_year - kDaysBefore1970;
}

// Parses lower-case hex digits of exactly `out_bytes` bytes.
bool ParseHex(const Slice& digits, uint8_t* out, size_t out_bytes) {
  if (digits.size() != 2 * out_bytes) {
    return false;
  }
  for (size_t i = 0; i < out_bytes; ++i) {
    const auto byte = HexByte(digits[2 * i], digits[2 * i + 1]);
    if (!byte.has_value() || (digits[2 * i] >= 'A' && digits[2 * i] <= 'F') ||
        (digits[2 * i + 1] >= 'A' && digits[2 * i + 1] <= 'F')) {
      return false;
    }
    out[i] = *byte;
  }
  return true;
}

// Parses a decimal number that fills the whole text.
bool ParseDecimal(const std::string& digits, uint64_t* value) {
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, *value);
  return error == std::errc() && stop == end;
}

bool IsKeyByte(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

}  // namespace

bool IsStoreKey(const Slice& key) {
  if (key.empty() || key.size() > kMaxStoreKeyBytes) {
    return false;
  }
  char before = '/';
  for (size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    if (c == '/' ? before == '/'
                 : !IsKeyByte(c) || (c == '.' && before == '/')) {
      return false;
    }
    before = c;
  }
  return before != '/';
}

std::string ToHex(const SetId& id) {
  return ToHex(Slice(reinterpret_cast<const char*>(id.data()), id.size()));
}

bool ParseSetId(const Slice& text, SetId* id) {
  return ParseHex(text, id->data(), id->size());
}

std::string ArchiveTimeText(uint64_t seconds) {
  const Date date = DateOfDay(seconds / kDaySeconds);
  const uint64_t second = seconds % kDaySeconds;
  char text[64];
  snprintf(text, sizeof(text), "%04u%02u%02uT%02u%02u%02uZ", date.year,
           date.month, date.day, static_cast<unsigned>(second / 3600),
           static_cast<unsigned>(second / 60 % 60),
           static_cast<unsigned>(second % 60));
  return text;
}

bool ParseArchiveTime(const Slice& text, uint64_t* seconds) {
  if (text.size() != kTimeBytes) {
    return false;
  }
  const std::string digits = text.ToString();
  uint64_t date = 0;
  uint64_t clock = 0;
  if (!ParseDecimal(digits.substr(0, 8), &date) ||
      !ParseDecimal(digits.substr(9, 6), &clock) || date < kFirstDate) {
    return false;
  }
  const uint64_t day = DayOfDate({static_cast<unsigned>(date / 10000),
                                  static_cast<unsigned>(date / 100 % 100),
                                  static_cast<unsigned>(date % 100)});
  *seconds = day * kDaySeconds + clock / 10000 * 3600 + clock / 100 % 100 * 60 +
             clock % 100;
  // Rejects dates and times that do not exist, such as 31 February: their
  // canonical text is different.
  return *seconds <= kMaxArchiveSeconds && ArchiveTimeText(*seconds) == digits;
}

std::string SetNameText(const SetName& name) {
  return ArchiveTimeText(name.seconds) + "-" + ToHex(name.id);
}

bool ParseSetName(const Slice& text, SetName* name) {
  return text.size() == kTimeBytes + 1 + kSetIdDigits &&
         text[kTimeBytes] == '-' &&
         ParseArchiveTime(Slice(text.data(), kTimeBytes), &name->seconds) &&
         ParseSetId(Slice(text.data() + kTimeBytes + 1, kSetIdDigits),
                    &name->id);
}

std::string ArchiveKeyText(const ArchiveKey& key) {
  if (!key.is_shared) {
    return kArchivePartsPrefix + ToHex(key.set) + "/" +
           CloneFileName(CloneFile{key.kind, key.number});
  }
  const std::string identity = ToHex(key.identity);
  return kArchiveFilesPrefix + identity.substr(0, 2) + "/" + identity + "-" +
         std::to_string(key.bytes) + "-" + ToHex(key.set);
}

bool ParseArchiveKey(const Slice& text, ArchiveKey* key) {
  *key = ArchiveKey();
  const std::string name = text.ToString();
  if (text.starts_with(kArchivePartsPrefix)) {
    const size_t id = sizeof(kArchivePartsPrefix) - 1;
    CloneFile file;
    if (name.size() <= id + kSetIdDigits + 1 ||
        !ParseSetId(name.substr(id, kSetIdDigits), &key->set) ||
        !ParseCloneFileName(name.substr(id + kSetIdDigits + 1), &file)) {
      return false;
    }
    key->kind = file.kind;
    key->number = file.number;
  } else if (text.starts_with(kArchiveFilesPrefix)) {
    const size_t identity = sizeof(kArchiveFilesPrefix) - 1 + 3;
    const size_t bytes = identity + kIdentityDigits + 1;
    const size_t id = name.rfind('-') + 1;
    uint8_t digest[16];
    if (name.size() <= bytes || id <= bytes ||
        !ParseHex(name.substr(identity, kIdentityDigits), digest,
                  sizeof(digest)) ||
        !ParseDecimal(name.substr(bytes, id - 1 - bytes), &key->bytes) ||
        !ParseSetId(name.substr(id), &key->set)) {
      return false;
    }
    key->is_shared = true;
    for (size_t i = 0; i < 8; ++i) {
      key->identity.high = key->identity.high << 8 | digest[i];
      key->identity.low = key->identity.low << 8 | digest[8 + i];
    }
  }
  // Rejects any other spelling of the key: its canonical text is different.
  return ArchiveKeyText(*key) == name;
}

std::string LogKeyText(const LogKey& key) {
  char text[64];
  snprintf(text, sizeof(text), "/%08" PRIx64 "-%016" PRIx64 "-%016" PRIx64,
           key.number, key.begin_micros, key.end_micros);
  return kArchiveLogPrefix + ToHex(key.lineage) + text;
}

bool ParseLogKey(const Slice& text, LogKey* key) {
  *key = LogKey();
  constexpr size_t kNumber = sizeof(kArchiveLogPrefix) - 1 + kSetIdDigits + 1;
  constexpr size_t kBegin = kNumber + 8 + 1;
  constexpr size_t kEnd = kBegin + 16 + 1;
  if (text.size() != kEnd + 16 ||
      !ParseSetId(Slice(text.data() + sizeof(kArchiveLogPrefix) - 1,
                        kSetIdDigits),
                  &key->lineage)) {
    return false;
  }
  const auto number = [&text](size_t at, size_t digits, uint64_t* value) {
    const char* const begin = text.data() + at;
    const auto [stop, error] =
        std::from_chars(begin, begin + digits, *value, 16);
    return error == std::errc() && stop == begin + digits;
  };
  // Rejects any other spelling of the key: its canonical text is different.
  return number(kNumber, 8, &key->number) &&
         number(kBegin, 16, &key->begin_micros) &&
         number(kEnd, 16, &key->end_micros) && key->number > 0 &&
         key->end_micros <= kMaxLogMicros &&
         key->begin_micros <= key->end_micros &&
         (key->begin_micros == 0) == (key->end_micros == 0) &&
         LogKeyText(*key) == text.ToString();
}

template <typename A, FieldsOf<ArchiveHead> M>
void Fields(A& a, M& m) {
  Number(a, "format", m.format);
  a.Id("archive_id", m.archive_id);
  Number(a, "created_seconds", m.created_seconds, kMaxArchiveSeconds);
  a.Bool("has_if_absent", m.has_if_absent);
  a.Bool("refuses_old_signatures", m.refuses_old_signatures);
  Number(a, "grace_seconds", m.grace_seconds, kMaxGraceSeconds,
         kMinGraceSeconds);
}

template <typename A, FieldsOf<ArchiveIntent> M>
void Fields(A& a, M& m) {
  Number(a, "begun_seconds", m.begun_seconds, kMaxArchiveSeconds);
  Number(a, "renewed_seconds", m.renewed_seconds, kMaxArchiveSeconds);
  a.Text("host", m.host, kMaxArchiveTextBytes);
  a.List("uses", m.uses, kMaxIntentSets, sizeof(SetId),
         [](auto& archive, auto& item) { archive.Id("set", item); });
}

template <typename A, FieldsOf<MarkedSet> M>
void Fields(A& a, M& m) {
  Fields(a, m.name);
  a.Bool("was_done", m.was_done);
}

template <typename A, FieldsOf<ArchiveMark> M>
void Fields(A& a, M& m) {
  Number(a, "marked_seconds", m.marked_seconds, kMaxArchiveSeconds);
  a.List("sets", m.sets, kMaxMarkSets, 8 + sizeof(SetId) + 1,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.List("keys", m.keys, kMaxMarkKeys, kArchiveKeyBytes,
         [](auto& archive, auto& item) { Fields(archive, item); });
  a.List("segments", m.segments, kMaxMarkSegments, kLogKeyBytes,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

template <typename A, FieldsOf<ArchiveDone> M>
void Fields(A& a, M& m) {
  a.Digest("set", m.set);
}

template <typename A, FieldsOf<ArchiveChecked> M>
void Fields(A& a, M& m) {
  Number(a, "checked_seconds", m.checked_seconds, kMaxArchiveSeconds);
  a.List("faults", m.faults, kMaxFoundFaults, 4 + 4 + 8,
         [](auto& archive, auto& item) {
           archive.Text("key", item.key, kMaxArchiveTextBytes);
           archive.Text("problem", item.problem, kMaxArchiveTextBytes);
           Number(archive, "seconds", item.seconds, kMaxArchiveSeconds);
         });
}

void EncodeArchiveHead(const ArchiveHead& head, std::string* out) {
  SealRecord(kHeadMagic, head, out);
}

Status DecodeArchiveHead(const Slice& object, ArchiveHead* head) {
  *head = ArchiveHead();
  Slice payload;
  RETURN_IF_ERROR(UnsealFile(ArchiveHead::kName, kHeadMagic,
                             kMaxArchiveHeadBytes, object, &payload));
  // Checks `format` first, because a later format may have other fields after
  // it.
  Decoder in(ArchiveHead::kName, payload);
  const uint32_t format = in.Fixed32("format");
  if (in.ok() && format != kArchiveFormat) {
    return MakeStatus(EndState::kIncompatible,
                      "archive: expected format " +
                          std::to_string(kArchiveFormat) + ", found " +
                          std::to_string(format) +
                          "; use the version of sstferry that made it, or a "
                          "later one");
  }
  return Decode(payload, head);
}

void EncodeArchiveIntent(const ArchiveIntent& intent, std::string* out) {
  SealRecord(kIntentMagic, intent, out);
}

Status DecodeArchiveIntent(const Slice& object, ArchiveIntent* intent) {
  return UnsealRecord(kIntentMagic, kMaxIntentBytes, object, intent);
}

void EncodeArchiveMark(const ArchiveMark& mark, std::string* out) {
  SealRecord(kMarkMagic, mark, out);
}

Status DecodeArchiveMark(const Slice& object, ArchiveMark* mark) {
  return UnsealRecord(kMarkMagic, kMaxMarkBytes, object, mark);
}

void EncodeArchiveDone(const ArchiveDone& done, std::string* out) {
  SealRecord(kDoneMagic, done, out);
}

void EncodeArchiveChecked(const ArchiveChecked& checked, std::string* out) {
  SealRecord(kCheckedMagic, checked, out);
}

Status DecodeArchiveChecked(const Slice& object, ArchiveChecked* checked) {
  return UnsealRecord(kCheckedMagic, kMaxCheckedBytes, object, checked);
}

Status DecodeArchiveDone(const Slice& object, ArchiveDone* done) {
  return UnsealRecord(kDoneMagic, kMaxDoneBytes, object, done);
}

}  // namespace sstferry
