// Makes the rows of the tables of options. A row binds an option to a member of
// its command's arguments: the default that help prints is the member's initial
// value, and the bounds that help prints are those that are checked.
//
//   Row<PullArguments>("lanes", Group::kCommon, "Move N parts at once.",
//                      [](auto& a) -> auto& { return a.options.lanes; },
//                      NumberValue(1, kMaxLanes))
//
// gives "Move N parts at once. 1 to 64. Default: 4."
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/transport.h"
#include "tools/sstferry/arguments.h"

namespace sstferry {

// Each class below describes one kind of value:
//   value()   its form in help
//   Bounds()  its bounds, for help
//   Text()    formats a value as it may be typed; returns `unset` for a value
//             that cannot be typed
//   Read()    parses a value; errors as in arguments.h

// A whole number.
class NumberValue {
 public:
  NumberValue(uint64_t least, uint64_t most, const char* unset = "")
      : least_(least), most_(most), unset_(unset) {}
  const char* value() const { return "N"; }
  std::string Bounds() const;
  std::string Text(uint32_t number) const;
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     uint32_t* out) const;

 private:
  const uint64_t least_;
  const uint64_t most_;
  const char* const unset_;
};

// Bytes, or bytes per second.
class BytesValue {
 public:
  // `zero`: the meaning of "0"; null: "0" is not allowed.
  explicit BytesValue(const char* unset = "", const char* zero = nullptr,
                 uint64_t least = 1, uint64_t most = UINT64_MAX)
      : unset_(unset), zero_(zero), least_(least), most_(most) {}
  const char* value() const { return "BYTES"; }
  std::string Bounds() const;
  std::string Text(const std::optional<uint64_t>& bytes) const;
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     uint64_t* out) const;
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     std::optional<uint64_t>* out) const;

 private:
  const char* const unset_;
  const char* const zero_;
  const uint64_t least_;
  const uint64_t most_;
};

// A limit in bytes per second, or "none": no limit, and neither side slows down
// to spare an application. Sets members of PullOptions or ServeOptions.
class RateValue {
 public:
  const char* value() const { return "BYTES|none"; }
  std::string Bounds() const { return ""; }
  template <typename Options>
  std::string Text(const Options& options) const {
    return BytesValue("no limit").Text(options.max_rate_bytes_per_sec);
  }
  template <typename Options>
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     Options* out) const {
    out->full_rate = text == "none";
    if (out->full_rate) {
      out->max_rate_bytes_per_sec = 0;
      return rocksdb::Status::OK();
    }
    return ReadRate(what, text, &out->max_rate_bytes_per_sec);
  }

 private:
  // Refuses a small number without a unit, which other tools read as KiB.
  [[nodiscard]] static rocksdb::Status ReadRate(const std::string& what,
                                                const std::string& text,
                                                uint64_t* out);
};

// A duration. Rounded up for members that are in seconds.
class DurationValue {
 public:
  explicit DurationValue(const char* unset = "") : unset_(unset) {}
  const char* value() const { return "DURATION"; }
  std::string Bounds() const { return ""; }
  std::string Text(
      const std::optional<std::chrono::milliseconds>& time) const;
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     std::chrono::milliseconds* out) const;
  [[nodiscard]] rocksdb::Status Read(
      const std::string& what, const std::string& text,
      std::optional<std::chrono::milliseconds>* out) const;
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     std::chrono::seconds* out) const;

 private:
  const char* const unset_;
};

// The duration of a lease, in whole seconds. `zero`: the meaning of 0.
class LeaseValue {
 public:
  explicit LeaseValue(const char* zero) : zero_(zero) {}
  const char* value() const { return "DURATION"; }
  std::string Bounds() const;
  std::string Text(std::chrono::seconds time) const;
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     std::chrono::seconds* out) const;

 private:
  const char* const zero_;
};

// An optional duration in whole seconds; its default is in the help.
class GraceValue {
 public:
  const char* value() const { return "DURATION"; }
  std::string Bounds() const { return ""; }
  std::string Text(const std::optional<std::chrono::seconds>&) const {
    return "";
  }
  [[nodiscard]] rocksdb::Status Read(
      const std::string& what, const std::string& text,
      std::optional<std::chrono::seconds>* out) const {
    return DurationValue().Read(what, text, &out->emplace());
  }
};

class PercentValue {
 public:
  explicit PercentValue(uint64_t most = 99) : most_(most) {}
  const char* value() const { return "N%"; }
  std::string Bounds() const { return "0% to " + std::to_string(most_) + "%"; }
  std::string Text(double percent) const;
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     double* out) const {
    return ParsePercent(what, text, most_, out);
  }

 private:
  const uint64_t most_;
};

// A non-empty text. `what` describes it in errors. Its default is in the help.
class TextValue {
 public:
  TextValue(const char* value, const char* what) : value_(value), what_(what) {}
  const char* value() const { return value_; }
  std::string Bounds() const { return ""; }
  std::string Text(const std::string&) const { return ""; }
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     std::string* out) const;

 private:
  const char* const value_;
  const char* const what_;
};
inline TextValue PathValue(const char* value) {
  return TextValue(value, "a path");
}

// A release of RocksDB, such as 8.11.4.
class ReleaseValue {
 public:
  const char* value() const { return "VERSION"; }
  std::string Bounds() const { return ""; }
  std::string Text(const std::string&) const { return ""; }
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     std::string* out) const;
};

// HOST:PORT or unix:/PATH.
class AddressValue {
 public:
  const char* value() const { return "ADDRESS"; }
  std::string Bounds() const { return ""; }
  std::string Text(const HostPort& address) const;
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     HostPort* out) const;
};

// Finds the index of `text` in `names` ("a|b|c").
[[nodiscard]] rocksdb::Status FindChoice(const std::string& what,
                                         const std::string& names,
                                         const std::string& text,
                                         size_t* index);
std::string NameOfChoice(const std::string& names, size_t index);

template <typename Value>
class ChoiceValue {
 public:
  ChoiceValue(const char* names, std::vector<Value> values)
      : names_(names), values_(std::move(values)) {}
  const char* value() const { return names_; }
  std::string Bounds() const { return ""; }
  std::string Text(Value value) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] == value) {
        return NameOfChoice(names_, i);
      }
    }
    return "";
  }
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     Value* out) const {
    size_t index = 0;
    const rocksdb::Status status = FindChoice(what, names_, text, &index);
    if (status.ok()) {
      *out = values_[index];
    }
    return status;
  }

 private:
  const char* const names_;
  const std::vector<Value> values_;
};

// `help`: a noun phrase or an imperative, without numbers.
template <typename Arguments, typename Field, typename Kind>
OptionSpec Row(const char* name, OptionGroup group, const char* help,
               Field field, const Kind& kind) {
  OptionSpec spec{name, kind.value(), group, help};
  Arguments initial;
  spec.bounds = kind.Bounds();
  spec.initial = kind.Text(field(initial));
  spec.read = [name, field, kind](const std::string& text, void* arguments) {
    return kind.Read(std::string("--") + name, text,
                     &field(*static_cast<Arguments*>(arguments)));
  };
  return spec;
}

// Makes a row for a switch that sets a bool.
template <typename Arguments, typename Field>
OptionSpec Row(const char* name, OptionGroup group, const char* help,
               Field field) {
  OptionSpec spec{name, nullptr, group, help};
  spec.read = [field](const std::string&, void* arguments) {
    field(*static_cast<Arguments*>(arguments)) = true;
    return rocksdb::Status::OK();
  };
  return spec;
}

// Makes a row for --adopt, which is refused in config files.
template <typename Arguments>
OptionSpec AdoptRow(OptionGroup group, const char* help) {
  OptionSpec spec = Row<Arguments>(
      "adopt", group, help, [](auto& a) -> auto& { return a.options.adopt; });
  spec.is_once = true;
  return spec;
}

}  // namespace sstferry
