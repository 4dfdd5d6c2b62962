// Texts that hold credentials: JSON of commands and of metadata endpoints, and
// the profile files. Bytes only; every field is bounded and checked, because it
// goes into the headers of requests. Errors never show a value.
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

// Checks the fields of *credentials and sets `expires` from `expiration`, which
// may be empty: never. kRefused: a field that cannot be used.
[[nodiscard]] rocksdb::Status FinishCredentials(const std::string& expiration,
                                                Credentials* credentials);

// Parses what a `credential_process`, a container's endpoint or a machine's
// metadata service answers. kRefused: it is not that, or has no credentials.
[[nodiscard]] rocksdb::Status ParseCredentialJson(const rocksdb::Slice& json,
                                                  Credentials* credentials);

// The sections of a profile file, each a map of its keys in lower case. Of the
// file ~/.aws/config "profile NAME" becomes "NAME". Lines that are no setting
// are skipped; nested settings are.
using ProfileFile = std::map<std::string, std::map<std::string, std::string>>;
ProfileFile ParseProfileFile(const rocksdb::Slice& text);

}  // namespace sstferry
