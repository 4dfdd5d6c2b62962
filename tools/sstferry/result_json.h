// The head of the JSON object of a command that has no Summary, and helpers for
// its members.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "format/end_state.h"

namespace sstferry {

// Returns an object with schema, command, status, exit_code and error, as in
// docs/json.md. `where`: the path or address that the command worked on.
inline nlohmann::ordered_json ResultJson(const std::string& command,
                                         const rocksdb::Status& status,
                                         const std::string& where) {
  const EndState state = EndStateOf(status);
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["command"] = command;
  json["status"] = EndStateName(state);
  json["exit_code"] = ExitCodeOf(state);
  json["error"] = nullptr;
  if (!status.ok()) {
    const std::string next = NextOf(status);
    json["error"] = {{"code", EndStateName(state)},
                     {"message", SentenceOf(status)},
                     {"where", where},
                     {"next", nullptr}};
    if (!next.empty()) {
      json["error"]["next"] = next;
    }
  }
  return json;
}

// Returns null for an unknown value.
template <typename Value>
nlohmann::ordered_json OrNull(bool is_known, const Value& value) {
  return is_known ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}
template <typename Value>
nlohmann::ordered_json OrNull(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}
// Returns null for an empty text.
inline nlohmann::ordered_json OrNull(const std::string& text) {
  return OrNull(!text.empty(), text);
}

// Formats an object for people, with a newline at its end. A byte that is not
// UTF-8 becomes U+FFFD.
inline std::string DumpJson(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace sstferry
