#include "tools/sstferry/option_rows.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "format/end_state.h"
#include "format/lease.h"
#include "format/release.h"

namespace sstferry {
namespace {

using rocksdb::Status;

struct NamedUnit {
  uint64_t factor;
  const char* suffix;
};

// The units in which help shows bytes. InUnits() takes the first unit that
// divides the number, so larger units come first.
constexpr NamedUnit kShownBytes[] = {
    {1000'000'000, "G"}, {1000'000, "M"}, {1000, "K"},
    {1ull << 30, "Gi"},  {1ull << 20, "Mi"}, {1ull << 10, "Ki"}};
constexpr NamedUnit kShownTimes[] = {
    {86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1000, "s"},
    {1, "ms"}};

// Returns the number in the first unit that divides it, such as "64M" for
// 64000000.
template <size_t kCount>
std::string InUnits(uint64_t number, const NamedUnit (&units)[kCount]) {
  for (const NamedUnit& unit : units) {
    if (number >= unit.factor && number % unit.factor == 0) {
      return std::to_string(number / unit.factor) + unit.suffix;
    }
  }
  return std::to_string(number);
}

std::string TimeText(std::chrono::milliseconds time) {
  return InUnits(static_cast<uint64_t>(time.count()), kShownTimes);
}

std::vector<std::string> NamesOf(const std::string& choices) {
  std::vector<std::string> names(1);
  for (const char c : choices) {
    if (c == '|') {
      names.emplace_back();
    } else {
      names.back().push_back(c);
    }
  }
  return names;
}

std::string FirstBounds(const char* zero, const std::string& others) {
  return zero == nullptr ? others
         : others.empty()
             ? "0: " + std::string(zero)
             : others + ", or 0: " + zero;
}

}  // namespace

std::string NumberValue::Bounds() const {
  return std::to_string(least_) + " to " + std::to_string(most_);
}

std::string NumberValue::Text(uint32_t number) const {
  return number == 0 && least_ > 0 ? unset_ : std::to_string(number);
}

Status NumberValue::Read(const std::string& what, const std::string& text,
                    uint32_t* out) const {
  uint64_t number = 0;
  RETURN_IF_ERROR(ParseNumber(what, text, least_, most_, &number));
  *out = static_cast<uint32_t>(number);
  return Status::OK();
}

std::string BytesValue::Bounds() const {
  const bool bounded = least_ > 1 || most_ != UINT64_MAX;
  return FirstBounds(zero_, bounded ? InUnits(least_, kShownBytes) + " to " +
                                          InUnits(most_, kShownBytes)
                                    : "");
}

std::string BytesValue::Text(const std::optional<uint64_t>& bytes) const {
  return bytes.value_or(0) == 0 ? unset_ : InUnits(*bytes, kShownBytes);
}

Status BytesValue::Read(const std::string& what, const std::string& text,
                   uint64_t* out) const {
  if (zero_ != nullptr && text == "0") {
    *out = 0;
    return Status::OK();
  }
  uint64_t bytes = 0;
  RETURN_IF_ERROR(ParseByteCount(what, text, &bytes));
  if (bytes < least_ || bytes > most_) {
    return Wrong(what, Bounds(), text);
  }
  *out = bytes;
  return Status::OK();
}

Status BytesValue::Read(const std::string& what, const std::string& text,
                   std::optional<uint64_t>* out) const {
  return Read(what, text, &out->emplace());
}

Status RateValue::ReadRate(const std::string& what, const std::string& text,
                           uint64_t* out) {
  constexpr uint64_t kLeastWithoutUnit = 64'000;
  RETURN_IF_ERROR(BytesValue().Read(what, text, out));
  const bool has_unit =
      text.find_first_not_of("0123456789.") != std::string::npos;
  return has_unit || *out >= kLeastWithoutUnit
             ? Status::OK()
             : Status::InvalidArgument(
                   what + ": expected a unit, or at least 64000, found \"" +
                   text + "\", which is " + text +
                   " bytes a second; did you mean " + text + "M?");
}

std::string DurationValue::Text(
    const std::optional<std::chrono::milliseconds>& time) const {
  return !time.has_value() || time->count() == 0 ? unset_ : TimeText(*time);
}

Status DurationValue::Read(const std::string& what, const std::string& text,
                      std::chrono::milliseconds* out) const {
  return ParseDuration(what, text, out);
}

Status DurationValue::Read(const std::string& what, const std::string& text,
                      std::optional<std::chrono::milliseconds>* out) const {
  return ParseDuration(what, text, &out->emplace());
}

Status DurationValue::Read(const std::string& what, const std::string& text,
                      std::chrono::seconds* out) const {
  std::chrono::milliseconds time{0};
  RETURN_IF_ERROR(ParseDuration(what, text, &time));
  *out = std::chrono::ceil<std::chrono::seconds>(time);
  return Status::OK();
}

std::string LeaseValue::Bounds() const {
  return FirstBounds(
      zero_, "1s to " + TimeText(std::chrono::seconds(kMaxLeaseSeconds)));
}

std::string LeaseValue::Text(std::chrono::seconds time) const {
  return TimeText(time);
}

Status LeaseValue::Read(const std::string& what, const std::string& text,
                       std::chrono::seconds* out) const {
  std::chrono::milliseconds time{0};
  RETURN_IF_ERROR(text == "0" ? Status::OK()
                              : ParseDuration(what, text, &time));
  const bool fits = text == "0" || (time >= std::chrono::seconds(1) &&
                                    time <= std::chrono::seconds(
                                                kMaxLeaseSeconds));
  if (!fits) {
    return Wrong(what,
                 "0, or 1s to " +
                     TimeText(std::chrono::seconds(kMaxLeaseSeconds)),
                 text);
  }
  *out = std::chrono::duration_cast<std::chrono::seconds>(time);
  return Status::OK();
}

std::string PercentValue::Text(double percent) const {
  std::array<char, 32> text{};
  snprintf(text.data(), text.size(), "%g%%", percent);
  return text.data();
}

Status TextValue::Read(const std::string& what, const std::string& text,
                   std::string* out) const {
  if (text.find_first_not_of(" \t") == std::string::npos) {
    return Wrong(what, what_, text);
  }
  *out = text;
  return Status::OK();
}

Status ReleaseValue::Read(const std::string& what, const std::string& text,
                          std::string* out) const {
  RocksDbRelease release;
  if (!ParseRelease(text, &release)) {
    return Wrong(what, "a release of RocksDB such as 8.11.4", text);
  }
  *out = ReleaseName(release);
  return Status::OK();
}

std::string AddressValue::Text(const HostPort& address) const {
  return ToString(address);
}

Status AddressValue::Read(const std::string& what, const std::string& text,
                     HostPort* out) const {
  const Status status = ParseHostPort(text, out);
  return status.ok() ? status
                     : Status::InvalidArgument(what, MessageOf(status));
}

Status FindChoice(const std::string& what, const std::string& names,
                  const std::string& text, size_t* index) {
  const std::vector<std::string> all = NamesOf(names);
  const auto found = std::find(all.begin(), all.end(), text);
  if (found != all.end()) {
    *index = static_cast<size_t>(found - all.begin());
    return Status::OK();
  }
  std::string expected;
  for (size_t i = 0; i < all.size(); ++i) {
    expected += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + all[i];
  }
  return Wrong(what, expected, text);
}

std::string NameOfChoice(const std::string& names, size_t index) {
  return NamesOf(names)[index];
}

}  // namespace sstferry
