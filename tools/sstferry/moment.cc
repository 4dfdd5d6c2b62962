#include "tools/sstferry/moment.h"

#include <array>
#include <charconv>
#include <ctime>
#include <optional>
#include <vector>

#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Status;

namespace {

constexpr time_t kDay = 24 * 60 * 60;

// Parses a text with strptime(). Returns false unless the complete text
// matches.
bool Parses(const std::string& text, const char* form, std::tm* time) {
  const char* const end = strptime(text.c_str(), form, time);
  return end != nullptr && *end == '\0';
}

// Parses a text with a date. Returns false for a date that does not exist, such
// as February 30. strptime() accepts it, and mktime() would make it March 1 or
// 2.
bool ParsesDate(const std::string& text, const char* form, std::tm* time) {
  if (!Parses(text, form, time)) {
    return false;
  }
  std::tm day{};
  day.tm_year = time->tm_year;
  day.tm_mon = time->tm_mon;
  day.tm_mday = time->tm_mday;
  timegm(&day);
  return day.tm_mon == time->tm_mon;
}

std::tm LocalTime(time_t seconds) {
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

// Points in time, in seconds since 1970, in ascending order.
using Moments = std::vector<time_t>;

// Returns the moments at which clocks in this machine's time zone show `local`.
// There are two when summer time ends, for example for 02:30, and none when it
// begins. mktime() would return only one of the two, or another time.
Moments FromLocal(std::tm local) {
  Moments moments;
  const time_t as_utc = timegm(&local);
  for (const time_t near : {as_utc - kDay, as_utc + kDay}) {
    const time_t moment = as_utc - LocalTime(near).tm_gmtoff;
    if (moment + LocalTime(moment).tm_gmtoff == as_utc &&
        (moments.empty() || moments.back() < moment)) {
      moments.push_back(moment);
    }
  }
  return moments;
}

Moments LastSecondOfDay(std::tm day) {
  day.tm_hour = 23;
  day.tm_min = 59;
  day.tm_sec = 59;
  const Moments moments = FromLocal(day);
  return moments.empty() ? moments : Moments{moments.back()};
}

// Returns the latest moment before or at `now` at which clocks showed this time
// of day.
Moments LatestTimeOfDay(const std::tm& time, time_t now) {
  constexpr int kDays = 3;  // a day may lack the time, see FromLocal()
  for (int days = 0; days < kDays; ++days) {
    std::tm day = time;
    day.tm_mday -= days;
    const Moments moments = FromLocal(day);
    for (auto moment = moments.rbegin(); moment != moments.rend(); ++moment) {
      if (*moment <= now) {
        return {*moment};
      }
    }
  }
  return {};
}

std::optional<Moments> Ago(const std::string& text, time_t now) {
  uint32_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data() + 1, end, count);
  if (error != std::errc() || unit + 1 != end) {
    return std::nullopt;
  }
  time_t seconds = 0;
  switch (*unit) {
    case 's': seconds = 1; break;
    case 'm': seconds = 60; break;
    case 'h': seconds = 3600; break;
    case 'd': seconds = kDay; break;
    case 'w': seconds = 7 * kDay; break;
    default: return std::nullopt;
  }
  const time_t moment = now - static_cast<time_t>(count) * seconds;
  return moment > 0 ? std::optional(Moments{moment}) : std::nullopt;
}

// Returns the moments that `text` may mean. Returns nullopt if `text` has none
// of the forms of ResolveMoment().
std::optional<Moments> Resolve(const std::string& text, time_t now) {
  if (text.size() > 2 && text[0] == '-') {
    return Ago(text, now);
  }
  std::tm time = LocalTime(now);
  if (text == "yesterday") {
    time.tm_mday -= 1;
    return LastSecondOfDay(time);
  }
  time.tm_sec = 0;
  if (Parses(text, "%H:%M:%S", &time) || Parses(text, "%H:%M", &time)) {
    return LatestTimeOfDay(time, now);
  }
  std::tm date{};
  if (text.size() == 10 && ParsesDate(text, "%Y-%m-%d", &date)) {
    return LastSecondOfDay(date);
  }
  if (text.size() < 16 || text.back() == 'Z') {
    return std::nullopt;
  }
  std::string with_t = text;
  if (with_t[10] == ' ') with_t[10] = 'T';
  for (const char* form : {"%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M%z"}) {
    std::tm zoned{};
    if (ParsesDate(with_t, form, &zoned)) {
      const long offset = zoned.tm_gmtoff;
      return Moments{timegm(&zoned) - offset};
    }
  }
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"}) {
    std::tm local{};
    if (ParsesDate(with_t, form, &local)) {
      return FromLocal(local);
    }
  }
  return std::nullopt;
}

}  // namespace

Status ResolveMoment(uint64_t now_seconds, std::string* address,
                     std::string* local) {
  local->clear();
  const size_t at = address->rfind('@');
  if (at == std::string::npos) {
    return Status::OK();
  }
  const std::string text = address->substr(at + 1);
  const std::optional<Moments> moments =
      Resolve(text, static_cast<time_t>(now_seconds));
  if (!moments.has_value()) {
    return Status::OK();
  }
  if (moments->size() != 1) {
    return Status::InvalidArgument(
        "@" + text + ": expected a time that this machine's time zone has " +
        "once, found one that it has " +
        (moments->empty() ? "not at all" : "twice") +
        "; give its date and its offset, such as 2026-10-25T02:30+01:00");
  }
  const time_t moment = moments->front();
  if (moment <= 0) {
    return Status::OK();
  }
  const std::tm time = LocalTime(moment);
  std::array<char, 40> form{};
  std::strftime(form.data(), form.size(), "%Y-%m-%dT%H:%M:%S%z", &time);
  *local = form.data();
  *address =
      address->substr(0, at + 1) + Rfc3339(static_cast<uint64_t>(moment));
  return Status::OK();
}

}  // namespace sstferry
