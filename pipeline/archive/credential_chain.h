// Finds credentials for S3, and decides when to renew them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "pipeline/archive/http_client.h"
#include "pipeline/archive/sigv4.h"
#include "rocksdb/status.h"
#include "sstferry/store_options.h"

namespace sstferry {

// The environment and the clock that CredentialChain uses; tests replace them.
struct CredentialWorld {
  // Returns an environment variable, or nullopt if it is not set. Default:
  // getenv(). If HOME is not set, the default is the home directory of the
  // account.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // This machine's clock. Default: time().
  std::function<UnixSeconds()> now;
};

// Finds credentials. StoreOptions determines where it looks, and in which
// order.
//
// Threads: any; one thread requests credentials while the others wait.
class CredentialChain {
 public:
  CredentialChain(const StoreOptions& options, CredentialWorld world);

  // Returns valid credentials. Keeps the current credentials while more than 5
  // minutes, or more than half of their lifetime, remain; then obtains new
  // ones. If this fails, returns the current credentials until they expire.
  //   kDenied    no credentials were found; the message names the searched
  //              places
  //   kRefused   the credentials that were found are unusable
  //   kDeadPeer  the provider of the credentials did not answer
  [[nodiscard]] rocksdb::Status Get(Credentials* credentials);
  // Discards these credentials, which the store rejected as expired. The next
  // Get() obtains new ones.
  void Renew(const Credentials& refused);
  // Returns the region in the environment, or else in the profile. Returns an
  // empty text if there is no region.
  //   kRefused  a profile file exists but cannot be read
  [[nodiscard]] rocksdb::Status Region(std::string* region) const;

  void Cancel();

 private:
  [[nodiscard]] rocksdb::Status Ask(Credentials* credentials);
  // Finds new credentials. Sets *source to the name of the last place it
  // searched.
  [[nodiscard]] rocksdb::Status Find(std::string* source,
                                     Credentials* credentials);
  [[nodiscard]] rocksdb::Status OfProfile(const std::string& name,
                                          bool must_exist, bool* found,
                                          Credentials* credentials);
  [[nodiscard]] rocksdb::Status OfCommand(const std::string& command,
                                          Credentials* credentials);
  [[nodiscard]] rocksdb::Status OfWebIdentity(const std::string& token_file,
                                              const std::string& role,
                                              const std::string& session,
                                              Credentials* credentials);
  [[nodiscard]] rocksdb::Status OfContainer(const std::string& url,
                                            Credentials* credentials);
  [[nodiscard]] rocksdb::Status OfMachine(Credentials* credentials);
  // Reads the settings of a profile from the credentials file and the config
  // file. *settings is nullopt if neither file has the profile.
  [[nodiscard]] rocksdb::Status Profile(
      const std::string& name,
      std::optional<std::map<std::string, std::string>>* settings) const;
  std::string Variable(const char* name) const;
  std::string HomeFile(const char* variable, const char* name) const;

  const StoreOptions options_;
  CredentialWorld world_;
  HttpClient outside_;  // sends requests to STS through the proxy
  HttpClient container_;
  HttpClient machine_;  // has a timeout of 1 s
  std::mutex mu_;
  std::optional<Credentials> current_;  // guarded by mu_
  UnixSeconds renew_at_ = 0;            // guarded by mu_
};

// Runs a command with /bin/sh and without input, and returns its output. The
// command inherits the standard error of this process.
//   kRefused  the command failed, wrote more than `max_bytes`, or ran longer
//             than `limit`
[[nodiscard]] rocksdb::Status RunForOutput(const std::string& command,
                                           size_t max_bytes,
                                           std::chrono::milliseconds limit,
                                           std::string* output);

}  // namespace sstferry
