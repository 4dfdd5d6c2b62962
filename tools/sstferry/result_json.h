// The head of the JSON object of a command that has no Summary.
#pragma once

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

// Formats an object for people, with a newline at its end. A byte that is not
// UTF-8 becomes U+FFFD.
inline std::string DumpJson(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace sstferry
