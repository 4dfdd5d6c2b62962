// Parses texts that contain credentials: JSON from commands and metadata
// services, and profile files. Does no I/O. Limits and checks every field,
// because the fields become parts of request headers. An error message never
// contains a value.
#pragma once

#include <map>
#include <string>

#include "pipeline/archive/sigv4.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr size_t kMaxCredentialTextBytes = 64u << 10;
inline constexpr size_t kMaxProfileFileBytes = 1u << 20;
inline constexpr size_t kMaxAccessKeyIdBytes = 256;
inline constexpr size_t kMaxSecretBytes = 1024;
inline constexpr size_t kMaxSessionTokenBytes = 16u << 10;

// Checks the fields of *credentials. Sets `expires` to the time in
// `expiration`; if the text is empty, the credentials never expire. kRefused: a
// field is unusable.
[[nodiscard]] rocksdb::Status FinishCredentials(const std::string& expiration,
                                                Credentials* credentials);

// Parses credentials in JSON, which a `credential_process`, a container's
// endpoint or a machine's metadata service returns. kRefused: the text is no
// JSON object, or a field is missing or unusable.
[[nodiscard]] rocksdb::Status ParseCredentialJson(const rocksdb::Slice& json,
                                                  Credentials* credentials);

// The sections of a profile file, by name. A section maps keys in lower case to
// values. The section "profile NAME" of ~/.aws/config gets the name "NAME".
// Skips nested settings, and lines without a setting.
using ProfileFile = std::map<std::string, std::map<std::string, std::string>>;
ProfileFile ParseProfileFile(const rocksdb::Slice& text);

}  // namespace sstferry
