#include "tools/sstferry/calendar.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

#include "tools/sstferry/arguments.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using Strings = std::vector<std::string>;

Strings Split(const std::string& text, char separator) {
  Strings parts;
  std::istringstream stream(text + separator);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

bool ReadInteger(const std::string& text, int* number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && at == end && *number >= 0;
}

std::string CronList(const std::set<int>& values) {
  std::string text;
  for (const int value : values) {
    text += (text.empty() ? "" : ",") + std::to_string(value);
  }
  return text;
}

// Converts a field of a systemd time, such as the hours, into a field of cron.
// `text` is "*", or a list of elements such as "A", "A..B", "A/N" and "A..B/N".
// Their values must be from `first` to `last`.
bool ReadField(const std::string& text, int first, int last,
               std::string* cron) {
  std::set<int> values;
  for (const std::string& part : Split(text == "*" ? "" : text, ',')) {
    const size_t slash = std::min(part.find('/'), part.size());
    const size_t dots = std::min(part.find(".."), slash);
    int from = first;
    int step = 1;
    if (text != "*" &&
        (!ReadInteger(part.substr(0, dots), &from) ||
         (slash < part.size() &&
          (!ReadInteger(part.substr(slash + 1), &step) || step == 0)))) {
      return false;
    }
    // A repetition without an end, such as 0/15, ends at `last`.
    int to = slash < part.size() ? last : from;
    if ((dots < slash &&
         !ReadInteger(part.substr(dots + 2, slash - dots - 2), &to)) ||
        from < first || to > last || from > to) {
      return false;
    }
    for (int value = from; value <= to; value += step) {
      values.insert(value);
    }
  }
  *cron = text == "*" ? text : CronList(values);
  return true;
}

// Returns the number of a weekday: 0 for "sun" or "Sunday", up to 6 for
// Saturday. Returns -1 if `name` is not a weekday.
int WeekdayOf(std::string name) {
  static const Strings names = {"sunday",   "monday", "tuesday", "wednesday",
                                "thursday", "friday", "saturday"};
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i] || name == names[i].substr(0, 3)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// Converts a list of weekdays into a field of cron. An element is a day such as
// "Mon" or a range. A range such as "Sat..Mon" may cross the end of the week.
bool ReadWeekdays(const std::string& text, std::string* cron) {
  std::set<int> days;
  for (const std::string& part : Split(text, ',')) {
    const size_t dots = std::min(part.find(".."), part.size());
    const int first = WeekdayOf(part.substr(0, dots));
    const int last =
        dots < part.size() ? WeekdayOf(part.substr(dots + 2)) : first;
    if (first < 0 || last < 0) {
      return false;
    }
    for (int day = first; days.insert(day), day != last; day = (day + 1) % 7) {
    }
  }
  *cron = CronList(days);
  return true;
}

// Returns true if this machine knows the time zone, or if it has no list of
// time zones. (systemd ignores an OnCalendar= line with an unknown time zone.)
bool IsZone(const std::string& name) {
  namespace fs = std::filesystem;
  const char* const set = std::getenv("TZDIR");
  const std::string zones =
      set != nullptr && *set != '\0' ? set : "/usr/share/zoneinfo";
  std::error_code error;
  return name.empty() || name == "UTC" || !fs::is_directory(zones, error) ||
         fs::is_regular_file(zones + "/" + name, error);
}

// Parses a time that is not an abbreviation such as "daily".
bool ParseForm(const std::string& text, Calendar* out) {
  // Matches WEEKDAYS YEAR-MONTH-DAY HOUR:MINUTE:SECOND ZONE. With ~ instead of
  // the second -, DAY counts from the end of the month.
  static const std::regex form(
      "(?:([A-Za-z,.]+)(?: +|$))?"
      "(?:(?:([^ :~-]+)-)?([^ :~-]+)([-~])([^ :~-]+)(?: +|$))?"
      "(?:([^ :]+):([^ :]+)(?::([^ :]+))?(?: +|$))?"
      "([A-Za-z][A-Za-z0-9/_+-]*)?");
  std::smatch found;
  if (text.empty() || !std::regex_match(text, found, form)) {
    return false;
  }
  std::string weekdays = "*", year = "*", month = "*", day = "*";
  std::string hour = "0", minute = "0", second = "0";
  const auto read = [&](size_t group, int first, int last, std::string* field) {
    return !found[group].matched ||
           ReadField(found[group], first, last, field);
  };
  if ((found[1].matched && !ReadWeekdays(found[1], &weekdays)) ||
      !read(2, 1970, 2199, &year) || !read(3, 1, 12, &month) ||
      !read(5, 1, 31, &day) || !read(6, 0, 23, &hour) ||
      !read(7, 0, 59, &minute) || !read(8, 0, 59, &second)) {
    return false;
  }
  out->zone = found[9];
  if (!IsZone(out->zone)) {
    return false;
  }
  // Cron cannot express a weekday together with a day of the month: it would
  // run the job if one of them matches, but systemd requires both.
  if (second == "0" && year == "*" && found[4] != "~" &&
      (day == "*" || weekdays == "*")) {
    out->cron = minute + " " + hour + " " + day + " " + month + " " + weekdays;
  }
  return true;
}

}  // namespace

Status ParseCalendar(const std::string& what, const std::string& text,
                     Calendar* out) {
  *out = Calendar();
  out->text = text;
  static const std::map<std::string, std::string> long_forms = {
      {"minutely", "*:*"},       {"hourly", "*:00"},
      {"daily", "00:00"},        {"weekly", "Mon 00:00"},
      {"monthly", "*-*-01"},     {"quarterly", "*-01,04,07,10-01"},
      {"yearly", "*-01-01"},     {"annually", "*-01-01"},
      {"semiannually", "*-01,07-01"}};
  const std::string word = text.substr(0, text.find(' '));
  const auto form = long_forms.find(word);
  return ParseForm(form == long_forms.end()
                       ? text
                       : form->second + text.substr(word.size()),
                   out)
             ? Status::OK()
             : Wrong(what,
                     "a time as in systemd's OnCalendar, such as 02:00, Sun "
                     "07:00, Mon..Fri *-*-* 04:30 UTC, *:0/15 or daily",
                     text);
}

}  // namespace sstferry
