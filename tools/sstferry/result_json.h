// Makes the JSON objects of commands that have no Summary, such as status.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "format/end_state.h"

namespace sstferry {

// Returns an object with the members that the objects of all commands have:
// schema, command, status, exit_code and error (docs/json.md). `where` is the
// path or address that the command worked on.
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

// Return `value` as JSON, or null if it is unknown.
template <typename Value>
nlohmann::ordered_json OrNull(bool is_known, const Value& value) {
  return is_known ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}
template <typename Value>
nlohmann::ordered_json OrNull(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}
// Returns `text` as JSON, or null if it is empty.
inline nlohmann::ordered_json OrNull(const std::string& text) {
  return OrNull(!text.empty(), text);
}

// Formats an object with indented lines and a newline at its end. Replaces
// bytes that are not UTF-8 by U+FFFD.
inline std::string DumpJson(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace sstferry
