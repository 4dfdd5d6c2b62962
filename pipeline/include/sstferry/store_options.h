// The address of an archive, and options to access it. Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rocksdb/status.h"
#include "sstferry/transport.h"

namespace sstferry {

inline constexpr char kS3Scheme[] = "s3://";
inline constexpr char kFileScheme[] = "file://";

// "s3://BUCKET/PREFIX", or a directory (which may be on NFS).
struct StoreAddress {
  std::string directory;  // set, or:
  std::string bucket;
  std::string prefix;  // without slashes at its ends; may be empty
  bool is_directory() const { return !directory.empty(); }
  std::string ToString() const;
};
// Parses "s3://..." or an absolute path. InvalidArgument: the message says what
// is wrong.
[[nodiscard]] rocksdb::Status ParseStoreAddress(const std::string& text,
                                                StoreAddress* out);

inline constexpr uint32_t kMaxStoreConnections = 128;

// Access to a store. Credentials are not an option; they come from the first of
// these sources that is set: `profile`, AWS_ACCESS_KEY_ID and related
// variables, the default profile, a web identity, a container's endpoint, the
// machine itself (IMDSv2). With `credentials_command`, only this command
// provides them.
struct StoreOptions {
  StoreAddress where;
  // File with the key that encrypts and seals sets (archive/seal.h); empty:
  // sets are not sealed.
  std::string key_file;

  // --- S3 only ---------------------------------------------------------------
  // "https://HOST[:PORT]"; empty: Amazon's endpoint of the region.
  std::string endpoint;
  // Empty: AWS_REGION, AWS_DEFAULT_REGION or the profile's region, else
  // us-east-1.
  std::string region;
  // Uses "https://ENDPOINT/BUCKET/KEY" instead of
  // "https://BUCKET.ENDPOINT/KEY". Not set: true with an `endpoint`, or if the
  // bucket's name has a dot.
  std::optional<bool> path_style;
  // "http://HOST:PORT"; empty: from https_proxy and related variables.
  std::string proxy;
  std::string ca_file;  // PEM; empty: the system's CAs
  // Name of a profile in the files that AWS_CONFIG_FILE and
  // AWS_SHARED_CREDENTIALS_FILE specify, or in ~/.aws/; without HOME, the
  // account's home directory counts.
  std::string profile;
  // Shell command that prints credentials as JSON, like `credential_process`.
  std::string credentials_command;
  // Class of new files and segments; empty: the bucket's default.
  std::string storage_class;
  uint32_t connections = 8;   // maximum number

  // `connect` and `peer` limit one attempt: `connect` the time to connect,
  // `peer` the time without a byte or an answer. `retry` limits how long a call
  // is retried without progress.
  Timeouts timeouts = [] {
    Timeouts patient;
    patient.peer = std::chrono::milliseconds(60'000);
    return patient;
  }();
  // Receives the error of a call that is tried again, at most once a minute, from
  // any thread. May be null.
  std::function<void(const std::string& error)> on_retry;
  // Deadline of all calls.
  Clock::time_point until = Clock::time_point::max();
};

}  // namespace sstferry
