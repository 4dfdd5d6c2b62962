// Where an archive lies, and how a program talks to it. Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "rocksdb/status.h"
#include "sstferry/transport.h"

namespace sstferry {

inline constexpr char kS3Scheme[] = "s3://";
inline constexpr char kFileScheme[] = "file://";

// "s3://BUCKET/PREFIX", or a directory, which may be on NFS.
struct StoreAddress {
  std::string directory;  // set, or:
  std::string bucket;
  std::string prefix;  // without slashes at its ends; may be empty
  bool is_directory() const { return !directory.empty(); }
  std::string ToString() const;
};
// InvalidArgument: the message says what is wrong with the text. `text` begins
// with "s3://", or is an absolute path.
[[nodiscard]] rocksdb::Status ParseStoreAddress(const std::string& text,
                                                StoreAddress* out);

inline constexpr uint32_t kMaxStoreConnections = 128;

// Credentials are no option: they come, in this order, from `profile` if it is
// set, AWS_ACCESS_KEY_ID and its companions, the default profile, a web
// identity, a container's endpoint, and last from the machine's (IMDSv2). Or
// from `credentials_command` alone.
struct StoreOptions {
  StoreAddress where;
  // Holds the key that seals sets (archive/seal.h); empty: none is sealed.
  std::string key_file;

  // --- S3 only ---------------------------------------------------------------
  // "https://HOST[:PORT]"; empty: Amazon's, of the region.
  std::string endpoint;
  // Empty: of AWS_REGION, AWS_DEFAULT_REGION or the profile, else us-east-1.
  std::string region;
  // "https://ENDPOINT/BUCKET/KEY" instead of "https://BUCKET.ENDPOINT/KEY". Not
  // set: with an `endpoint`, and for a bucket with a dot in its name.
  std::optional<bool> path_style;
  // "http://HOST:PORT"; empty: that of https_proxy and its companions.
  std::string proxy;
  std::string ca_file;  // PEM; empty: the system's
  // A profile of the files that AWS_CONFIG_FILE and
  // AWS_SHARED_CREDENTIALS_FILE name, or of ~/.aws/.
  std::string profile;
  // A command of the shell that writes the JSON of `credential_process`.
  std::string credentials_command;
  std::string storage_class;  // of new objects; empty: the bucket's
  uint32_t connections = 8;   // at most

  // `connect` and `peer` of one try: for a connection, and without a byte or an
  // answer. `retry`: for how long a call is tried again without progress.
  Timeouts timeouts = [] {
    Timeouts patient;
    patient.peer = std::chrono::milliseconds(60'000);
    return patient;
  }();
  // When everything has to be done.
  Clock::time_point until = Clock::time_point::max();
};

}  // namespace sstferry
