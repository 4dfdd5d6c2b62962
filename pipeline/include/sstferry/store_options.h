// Address of an archive, and options to access the store that has it, as plain
// structs.
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

// Address of an archive: a bucket with a prefix ("s3://BUCKET/PREFIX"), or a
// directory. The directory may be on NFS.
struct StoreAddress {
  // Set for a directory. Otherwise empty.
  std::string directory;
  std::string bucket;
  // Has no slash at its beginning or end. May be empty.
  std::string prefix;
  bool is_directory() const { return !directory.empty(); }
  std::string ToString() const;
};
// Parses "s3://..." or an absolute path. Returns InvalidArgument with the
// reason for other text.
[[nodiscard]] rocksdb::Status ParseStoreAddress(const std::string& text,
                                                StoreAddress* out);

inline constexpr uint32_t kMaxStoreConnections = 128;

// How to access a store. The options contain no credentials. If
// `credentials_command` is set, only this command provides them. Otherwise, the
// first of these sources that is set does:
// - `profile`
// - AWS_ACCESS_KEY_ID and related variables
// - the default profile
// - a web identity
// - a container's endpoint
// - the machine itself (IMDSv2)
struct StoreOptions {
  StoreAddress where;
  // File with the key that encrypts and authenticates sets (see
  // archive/seal.h). Empty: sets are neither encrypted nor authenticated.
  std::string key_file;

  // --- S3 only ---------------------------------------------------------------
  // Endpoint in the form "https://HOST[:PORT]". Empty: Amazon's endpoint of the
  // region.
  std::string endpoint;
  // Name of the region. Empty: uses AWS_REGION, AWS_DEFAULT_REGION or the
  // profile's region. If none of them is set, uses us-east-1.
  std::string region;
  // True: URLs have the form "https://ENDPOINT/BUCKET/KEY". False: they have
  // the form "https://BUCKET.ENDPOINT/KEY". Not set: true if `endpoint` is set
  // or the bucket's name contains a dot.
  std::optional<bool> path_style;
  // Address of a proxy, "http://HOST:PORT". Empty: uses https_proxy and related
  // variables.
  std::string proxy;
  // PEM file with CAs. Empty: the system's CAs.
  std::string ca_file;
  // Name of a profile in the files that AWS_CONFIG_FILE and
  // AWS_SHARED_CREDENTIALS_FILE name. If these variables are not set, the files
  // are in ~/.aws/. If HOME is not set, the account's home directory is used
  // for ~.
  std::string profile;
  // Shell command that prints credentials as JSON, in the same form as AWS's
  // `credential_process`.
  std::string credentials_command;
  // Storage class of new files and log segments. Empty: the bucket's default.
  std::string storage_class;
  // Maximum number of connections to the store.
  uint32_t connections = 8;

  // Time limits. `connect` and `peer` are for one attempt of a call: `connect`
  // limits the time to connect, and `peer` the time in which no byte and no
  // answer arrives. `retry` limits the time for which a call is retried without
  // progress.
  Timeouts timeouts = [] {
    Timeouts patient;
    patient.peer = std::chrono::milliseconds(60'000);
    return patient;
  }();
  // Receives the error of a call that will be retried, at most once a minute.
  // May be called from any thread. May be null.
  std::function<void(const std::string& error)> on_retry;
  // No call continues after this time.
  Clock::time_point until = Clock::time_point::max();
};

}  // namespace sstferry
