// Makes the rows of the tables of options (commands.cc). A row connects an
// option with the member of a struct that stores its value. Help then cannot
// differ from the program: it prints the member's initial value as the default,
// and the bounds that the program checks.
//
//   Row<PullArguments>("lanes", Group::kCommon, "Move N parts at once.",
//                      [](auto& a) -> auto& { return a.options.lanes; },
//                      NumberValue(1, kMaxLanes))
//
// The help of this row is "Move N parts at once. 1 to 64. Default: 4."
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

// Each class below describes one kind of value that an option may have:
//   value()   returns the word for the value in help, such as "N"
//   Bounds()  returns the bounds of the value, for help
//   Text()    formats the default value for help; returns `unset` for a default
//             that a user cannot type, such as 0 where 0 is not allowed
//   Read()    parses a value; returns errors as in arguments.h

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

// A number of bytes, or of bytes per second.
class BytesValue {
 public:
  // `zero` explains in help what "0" means. If it is null, "0" is an error.
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

// A limit in bytes per second, or "none". "none" means that there is no limit
// and that neither side slows down to spare an application on its machine. Sets
// two members of PullOptions or ServeOptions.
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
  // Parses a limit. Refuses a number below 64000 without a unit: the user may
  // expect KiB, because other tools read such a number as KiB.
  [[nodiscard]] static rocksdb::Status ReadRate(const std::string& what,
                                                const std::string& text,
                                                uint64_t* out);
};

// A duration. If the member is in seconds, the duration is rounded up.
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

// The time for which a source keeps a snapshot (a lease) or uses it for several
// pulls, in whole seconds. `zero` explains in help what 0 means.
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

// A duration in whole seconds for a member that may be unset. The help text of
// the option states the default.
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

// A text that is not empty. `what` describes the text in errors, for example "a
// path". The help text of the option states the default.
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

// An address of the form HOST:PORT or unix:/PATH.
class AddressValue {
 public:
  const char* value() const { return "ADDRESS"; }
  std::string Bounds() const { return ""; }
  std::string Text(const HostPort& address) const;
  [[nodiscard]] rocksdb::Status Read(const std::string& what,
                                     const std::string& text,
                                     HostPort* out) const;
};

// Sets *index to the position of `text` in a list such as "a|b|c". Returns
// InvalidArgument if the list does not contain `text`.
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

// Makes a row for an option with a value. `field` returns the member of
// Arguments that stores the value, and `kind` is an object of a class above.
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

// Makes a row for --adopt. A config file must not contain the option (is_once).
template <typename Arguments>
OptionSpec AdoptRow(OptionGroup group, const char* help) {
  OptionSpec spec = Row<Arguments>(
      "adopt", group, help, [](auto& a) -> auto& { return a.options.adopt; });
  spec.is_once = true;
  return spec;
}

}  // namespace sstferry
