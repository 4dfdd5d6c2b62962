#include "tools/sstferry/calendar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <vector>

#include "format/end_state.h"
#include "tools/sstferry/arguments.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using Values = std::bitset<256>;

constexpr int kFirstYear = 1970;
constexpr int kYears = 200;
constexpr int kDaysToSearch = 10 * 366;

// The bounds of a field; an open repetition such as 0/15 ends at the last one.
struct Field {
  int first;
  int last;
};
constexpr Field kYearField{kFirstYear, kFirstYear + kYears - 1};
constexpr Field kMonthField{1, 12};
constexpr Field kDayField{1, 31};
constexpr Field kHourField{0, 23};
constexpr Field kMinuteField{0, 59};

// Returns a status whose text the caller replaces.
Status Unknown() { return Status::InvalidArgument(""); }

Values AllOf(const Field& field, int offset = 0) {
  Values all;
  for (int value = field.first; value <= field.last; ++value) {
    all.set(static_cast<size_t>(value - offset));
  }
  return all;
}

bool ReadInteger(const std::string& text, int* number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && at == end && *number >= 0;
}

// Splits at each `separator`; an empty part stays.
std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Parses "*", or a list of "A", "A..B", "A/N" and "A..B/N".
Status ReadField(const std::string& text, const Field& field, int offset,
                 Values* out) {
  *out = Values();
  if (text == "*") {
    *out = AllOf(field, offset);
    return Status::OK();
  }
  for (const std::string& part : Split(text, ',')) {
    const size_t slash = std::min(part.find('/'), part.size());
    const size_t dots = std::min(part.find(".."), slash);
    int first = 0;
    int step = 1;
    if (!ReadInteger(part.substr(0, dots), &first) ||
        (slash < part.size() &&
         (!ReadInteger(part.substr(slash + 1), &step) || step == 0))) {
      return Unknown();
    }
    int last = slash < part.size() ? field.last : first;
    if (dots < slash &&
        !ReadInteger(part.substr(dots + 2, slash - dots - 2), &last)) {
      return Unknown();
    }
    if (first < field.first || last > field.last || first > last) {
      return Unknown();
    }
    for (int value = first; value <= last; value += step) {
      out->set(static_cast<size_t>(value - offset));
    }
  }
  return Status::OK();
}

// Returns 0 (Sunday) to 6 for "sun", "Sunday" and so on; -1: no such day.
int WeekdayOf(std::string name) {
  static constexpr std::array<const char*, 7> kNames = {
      "sunday",   "monday", "tuesday", "wednesday",
      "thursday", "friday", "saturday"};
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (size_t i = 0; i < kNames.size(); ++i) {
    const std::string full = kNames[i];
    if (name == full || name == full.substr(0, 3)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// Parses a list of days and of ranges, which may go past Sunday.
Status ReadWeekdays(const std::string& text, Values* out) {
  *out = Values();
  for (const std::string& part : Split(text, ',')) {
    const size_t dots = std::min(part.find(".."), part.size());
    const int first = WeekdayOf(part.substr(0, dots));
    const int last =
        dots < part.size() ? WeekdayOf(part.substr(dots + 2)) : first;
    if (first < 0 || last < 0) {
      return Unknown();
    }
    for (int day = first;; day = (day + 1) % 7) {
      out->set(static_cast<size_t>(day));
      if (day == last) {
        break;
      }
    }
  }
  return Status::OK();
}

bool BeginsWithLetter(const std::string& word) {
  return !word.empty() && std::isalpha(static_cast<unsigned char>(word[0]));
}

bool IsZone(const std::string& word) {
  return BeginsWithLetter(word) &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '/' || c == '_' || c == '-' ||
                  c == '+';
         });
}

// Returns the long form of a word such as "daily"; empty: no such word.
std::string LongForm(const std::string& word) {
  static const std::vector<std::pair<std::string, std::string>> forms = {
      {"minutely", "*-*-* *:*:00"},
      {"hourly", "*-*-* *:00:00"},
      {"daily", "*-*-* 00:00:00"},
      {"weekly", "Mon *-*-* 00:00:00"},
      {"monthly", "*-*-01 00:00:00"},
      {"quarterly", "*-01,04,07,10-01 00:00:00"},
      {"semiannually", "*-01,07-01 00:00:00"},
      {"yearly", "*-01-01 00:00:00"},
      {"annually", "*-01-01 00:00:00"}};
  for (const auto& [name, form] : forms) {
    if (word == name) {
      return form;
    }
  }
  return "";
}

// Formats the values as cron's list, "*" for all.
std::string CronField(const Values& values, const Field& field) {
  if (values == AllOf(field)) {
    return "*";
  }
  std::string text;
  for (int value = field.first; value <= field.last; ++value) {
    if (values.test(static_cast<size_t>(value))) {
      text += (text.empty() ? "" : ",") + std::to_string(value);
    }
  }
  return text;
}

int DaysOfMonth(std::tm day) {
  day.tm_mon += 1;
  day.tm_mday = 0;
  day.tm_hour = 12;
  (void)timegm(&day);  // day 0 of the next month becomes the last one
  return day.tm_mday;
}

}  // namespace

Status Calendar::ParseParts(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  if (words.size() > 1 && IsZone(words.back()) &&
      WeekdayOf(words.back()) < 0) {
    zone_ = words.back();
    words.pop_back();
  }
  if (words.size() == 1 && !LongForm(words[0]).empty()) {
    const std::string zone = zone_;
    RETURN_IF_ERROR(ParseParts(LongForm(words[0])));
    zone_ = zone;
    return Status::OK();
  }
  size_t at = 0;
  if (at < words.size() && BeginsWithLetter(words[at])) {
    RETURN_IF_ERROR(ReadWeekdays(words[at++], &weekdays_));
  }
  if (at < words.size() && words[at].find(':') == std::string::npos) {
    std::string date = words[at++];
    const size_t tilde = date.find('~');
    if (tilde != std::string::npos) {
      days_from_end_ = true;
      date[tilde] = '-';
    }
    std::vector<std::string> parts = Split(date, '-');
    if (parts.size() == 2) {
      parts.insert(parts.begin(), "*");
    }
    if (parts.size() != 3) {
      return Unknown();
    }
    RETURN_IF_ERROR(ReadField(parts[0], kYearField, kFirstYear, &years_));
    RETURN_IF_ERROR(ReadField(parts[1], kMonthField, 0, &months_));
    RETURN_IF_ERROR(ReadField(parts[2], kDayField, 0, &days_));
  }
  if (at < words.size()) {
    std::vector<std::string> parts = Split(words[at++], ':');
    if (parts.size() == 2) {
      parts.emplace_back("00");
    }
    if (parts.size() != 3) {
      return Unknown();
    }
    RETURN_IF_ERROR(ReadField(parts[0], kHourField, 0, &hours_));
    RETURN_IF_ERROR(ReadField(parts[1], kMinuteField, 0, &minutes_));
    RETURN_IF_ERROR(ReadField(parts[2], kMinuteField, 0, &seconds_));
  }
  return at == words.size() && at > 0 ? Status::OK() : Unknown();
}

Status Calendar::Parse(const std::string& what, const std::string& text,
                       Calendar* out) {
  *out = Calendar();
  out->text_ = text;
  out->weekdays_ = AllOf({0, 6});
  out->years_ = AllOf(kYearField, kFirstYear);
  out->months_ = AllOf(kMonthField);
  out->days_ = AllOf(kDayField);
  out->hours_.set(0);
  out->minutes_.set(0);
  out->seconds_.set(0);
  const bool is_printable =
      std::all_of(text.begin(), text.end(),
                  [](char c) { return c >= ' ' && c <= '~'; });
  return is_printable && out->ParseParts(text).ok()
             ? Status::OK()
             : Wrong(what,
                     "a time as in systemd's OnCalendar, such as 02:00, Sun "
                     "07:00, Mon..Fri *-*-* 04:30 UTC, *:0/15 or daily",
                     text);
}

bool Calendar::HasDay(const std::tm& day) const {
  const int number = days_from_end_ ? DaysOfMonth(day) - day.tm_mday + 1
                                    : day.tm_mday;
  const int year = day.tm_year + 1900 - kFirstYear;
  return year >= 0 && year < kYears &&
         years_.test(static_cast<size_t>(year)) &&
         months_.test(static_cast<size_t>(day.tm_mon + 1)) &&
         days_.test(static_cast<size_t>(number)) &&
         weekdays_.test(static_cast<size_t>(day.tm_wday));
}

std::optional<std::time_t> Calendar::NextAfter(std::time_t now) const {
  const bool is_utc = zone_ == "UTC";
  if (!zone_.empty() && !is_utc) {
    return std::nullopt;
  }
  const auto seconds_of = [is_utc](std::tm time) {
    time.tm_isdst = -1;
    return is_utc ? timegm(&time) : mktime(&time);
  };
  std::tm today{};
  is_utc ? gmtime_r(&now, &today) : localtime_r(&now, &today);
  for (int i = 0; i < kDaysToSearch; ++i) {
    std::tm day{};
    day.tm_year = today.tm_year;
    day.tm_mon = today.tm_mon;
    day.tm_mday = today.tm_mday + i;
    (void)timegm(&day);  // makes it a day that exists, with its weekday
    if (!HasDay(day)) {
      continue;
    }
    for (int hour = 0; hour <= kHourField.last; ++hour) {
      for (int minute = 0;
           hours_.test(static_cast<size_t>(hour)) &&
           minute <= kMinuteField.last; ++minute) {
        for (int second = 0;
             minutes_.test(static_cast<size_t>(minute)) &&
             second <= kMinuteField.last; ++second) {
          std::tm time = day;
          time.tm_hour = hour;
          time.tm_min = minute;
          time.tm_sec = second;
          if (!seconds_.test(static_cast<size_t>(second))) {
            continue;
          }
          const std::time_t moment = seconds_of(time);
          if (moment > now) {
            return moment;
          }
        }
      }
    }
  }
  return std::nullopt;
}

Status Calendar::ToCron(const std::string& what, std::string* fields) const {
  Values whole_minute;
  whole_minute.set(0);
  const bool all_days = !days_from_end_ && days_ == AllOf(kDayField);
  const bool all_weekdays = weekdays_ == AllOf({0, 6});
  if (seconds_ != whole_minute || days_from_end_ ||
      years_ != AllOf(kYearField, kFirstYear) ||
      (!all_days && !all_weekdays)) {
    return Wrong(what,
                 "a time that cron has, too: no seconds, no year, no day "
                 "counted from the month's end, and no weekday together with a "
                 "day of the month",
                 text_);
  }
  *fields = CronField(minutes_, kMinuteField) + " " +
            CronField(hours_, kHourField) + " " + CronField(days_, kDayField) +
            " " + CronField(months_, kMonthField) + " " +
            CronField(weekdays_, {0, 6});
  return Status::OK();
}

}  // namespace sstferry
