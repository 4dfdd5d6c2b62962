// Parses texts that contain credentials: JSON from commands and metadata
// endpoints, and profile files. Does no I/O. Every field is bounded and
// checked, because it is copied into request headers. Error messages never
// contain a value.
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

// Checks the fields of *credentials and sets `expires` from `expiration`
// (empty: never). kRefused: a field cannot be used.
[[nodiscard]] rocksdb::Status FinishCredentials(const std::string& expiration,
                                                Credentials* credentials);

// Parses the output of a `credential_process`, or the answer of a container's
// endpoint or a machine's metadata service. kRefused: the text has another
// form, or no credentials.
[[nodiscard]] rocksdb::Status ParseCredentialJson(const rocksdb::Slice& json,
                                                  Credentials* credentials);

// Sections of a profile file; each maps keys in lower case to values. "profile
// NAME", as in ~/.aws/config, becomes "NAME". Nested settings and lines without
// a setting are skipped.
using ProfileFile = std::map<std::string, std::map<std::string, std::string>>;
ProfileFile ParseProfileFile(const rocksdb::Slice& text);

}  // namespace sstferry
