#include "pipeline/archive/credential_text.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "pipeline/archive/s3_xml.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

Status Unusable(const std::string& what) {
  return MakeStatus(EndState::kRefused, "credentials: " + what);
}

// Checks a field that becomes part of a header: it has no space and no line
// end.
Status CheckField(const char* name, const std::string& value, size_t min_bytes,
                  size_t max_bytes) {
  if (value.size() < min_bytes || value.size() > max_bytes) {
    return Unusable(std::string(name) + ": expected " +
                    std::to_string(min_bytes) + " to " +
                    std::to_string(max_bytes) + " bytes, found " +
                    std::to_string(value.size()));
  }
  const bool is_clean = std::all_of(value.begin(), value.end(), [](char c) {
    return c > 0x20 && c < 0x7f;
  });
  return is_clean ? Status::OK()
                  : Unusable(std::string(name) +
                             ": expected printable ASCII without spaces, found "
                             "something else");
}

// Returns the value of the member `name`, or an empty text if the member is
// missing or is no string.
std::string Member(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string()
             ? found->get_ref<const std::string&>()
             : std::string();
}

std::string Trim(const std::string& text) {
  constexpr char kSpaces[] = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string::npos) {
    return "";
  }
  return text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
}

}  // namespace

Status FinishCredentials(const std::string& expiration,
                         Credentials* credentials) {
  RETURN_IF_ERROR(CheckField("access key id", credentials->access_key_id, 1,
                             kMaxAccessKeyIdBytes));
  // Refuses the characters that the Authorization header uses as separators.
  if (credentials->access_key_id.find_first_of("/,=") != std::string::npos) {
    return Unusable("access key id: expected no / , or =, found one");
  }
  RETURN_IF_ERROR(CheckField("secret access key",
                             credentials->secret_access_key, 1,
                             kMaxSecretBytes));
  RETURN_IF_ERROR(CheckField("session token", credentials->session_token, 0,
                             kMaxSessionTokenBytes));
  credentials->expires = 0;
  if (!expiration.empty()) {
    const std::optional<UnixSeconds> expires = ParseTime(expiration);
    if (!expires.has_value()) {
      return Unusable(
          "expiration: expected a time like 2026-01-31T23:59:59Z, found "
          "something else");
    }
    credentials->expires = *expires;
  }
  return Status::OK();
}

Status ParseCredentialJson(const Slice& text, Credentials* credentials) {
  *credentials = {};
  if (text.size() > kMaxCredentialTextBytes) {
    return Unusable("expected at most " +
                    std::to_string(kMaxCredentialTextBytes) +
                    " bytes of JSON, found more");
  }
  const nlohmann::json json = nlohmann::json::parse(
      text.data(), text.data() + text.size(), nullptr, false);
  if (!json.is_object()) {
    return Unusable("expected a JSON object, found something else");
  }
  credentials->access_key_id = Member(json, "AccessKeyId");
  credentials->secret_access_key = Member(json, "SecretAccessKey");
  credentials->session_token = Member(json, "SessionToken");
  if (credentials->session_token.empty()) {
    credentials->session_token = Member(json, "Token");
  }
  const auto expiration = json.find("Expiration");
  if (expiration != json.end() && !expiration->is_string() &&
      !expiration->is_null()) {
    return Unusable("expiration: expected a string, found something else");
  }
  return FinishCredentials(Member(json, "Expiration"), credentials);
}

ProfileFile ParseProfileFile(const Slice& text) {
  ProfileFile file;
  std::map<std::string, std::string>* section = nullptr;
  size_t at = 0;
  while (at < text.size()) {
    const char* end = static_cast<const char*>(
        memchr(text.data() + at, '\n', text.size() - at));
    const size_t next =
        end == nullptr ? text.size() : static_cast<size_t>(end - text.data());
    const std::string raw(text.data() + at, next - at);
    at = next + 1;
    const std::string line = Trim(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') {
      continue;
    }
    if (line[0] == '[') {
      const size_t close = line.find(']');
      std::string name =
          close == std::string::npos ? "" : Trim(line.substr(1, close - 1));
      if (name.rfind("profile ", 0) == 0 || name.rfind("profile\t", 0) == 0) {
        name = Trim(name.substr(8));
      }
      section = name.empty() ? nullptr : &file[name];
      continue;
    }
    const size_t equals = line.find('=');
    // Skips an indented line, because it belongs to a nested setting.
    if (section == nullptr || equals == std::string::npos || raw[0] == ' ' ||
        raw[0] == '\t') {
      continue;
    }
    std::string key = Trim(line.substr(0, equals));
    std::transform(key.begin(), key.end(), key.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    (*section)[key] = Trim(line.substr(equals + 1));
  }
  return file;
}

}  // namespace sstferry
