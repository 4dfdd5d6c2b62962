#include "tools/sstferry/moment.h"

#include <array>
#include <charconv>
#include <ctime>
#include <optional>

#include "sstferry/options.h"

namespace sstferry {
namespace {

constexpr time_t kDay = 24 * 60 * 60;

// Parses a text by strptime(); returns false unless the complete text matches.
bool Parses(const std::string& text, const char* form, std::tm* time) {
  const char* const end = strptime(text.c_str(), form, time);
  return end != nullptr && *end == '\0';
}

// Parses a text with a date. Returns false for a day that its month does not
// have: strptime() accepts February 30, and mktime() makes a later day of it.
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

// Returns seconds since 1970; summer time is looked up.
time_t FromLocal(std::tm local) {
  local.tm_isdst = -1;
  return mktime(&local);
}

time_t LastSecondOfDay(std::tm day) {
  day.tm_hour = 23;
  day.tm_min = 59;
  day.tm_sec = 59;
  return FromLocal(day);
}

std::optional<time_t> Ago(const std::string& text, time_t now) {
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
  return moment > 0 ? std::optional(moment) : std::nullopt;
}

std::optional<time_t> Resolve(const std::string& text, time_t now) {
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
    time_t moment = FromLocal(time);
    if (moment > now) {
      time.tm_mday -= 1;
      moment = FromLocal(time);
    }
    return moment;
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
      return timegm(&zoned) - offset;
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

bool ResolveMoment(uint64_t now_seconds, std::string* address,
                   std::string* local) {
  const size_t at = address->rfind('@');
  if (at == std::string::npos) {
    return false;
  }
  const std::optional<time_t> moment =
      Resolve(address->substr(at + 1), static_cast<time_t>(now_seconds));
  if (!moment.has_value() || *moment <= 0) {
    return false;
  }
  const std::tm time = LocalTime(*moment);
  std::array<char, 40> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S%z", &time);
  *local = text.data();
  *address = address->substr(0, at + 1) +
             Rfc3339(static_cast<uint64_t>(*moment));
  return true;
}

}  // namespace sstferry
