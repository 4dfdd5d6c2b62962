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

// Environment and clock of the chain; tests replace them.
struct CredentialWorld {
  // nullopt: variable is not set. Default: getenv(), and the account's home
  // directory if HOME is not set.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // This machine's clock. Default: time().
  std::function<UnixSeconds()> now;
};

// Looks up credentials in the order of StoreOptions.
//
// Threads: any; one thread requests credentials while the others wait.
class CredentialChain {
 public:
  CredentialChain(const StoreOptions& options, CredentialWorld world);

  // Returns valid credentials: the current ones while more than 5 minutes or
  // more than half of their lifetime remain, else new ones. If new ones cannot
  // be obtained, returns the current ones until they expire.
  //   kDenied    not found; the message says which places were searched
  //   kRefused   found, but unusable
  //   kDeadPeer  the credentials' provider did not answer
  [[nodiscard]] rocksdb::Status Get(Credentials* credentials);
  // Records that the store rejected these credentials as expired. The next
  // Get() obtains new ones.
  void Renew(const Credentials& refused);
  // Returns the region from the environment or the profile; empty: neither
  // names one.
  //   kRefused  a profile file exists but cannot be read
  [[nodiscard]] rocksdb::Status Region(std::string* region) const;

  void Cancel();

 private:
  [[nodiscard]] rocksdb::Status Ask(Credentials* credentials);
  // Sets *source to the place that was asked last.
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
  // Reads the settings of a profile from both files; nullopt: neither file has
  // the profile.
  [[nodiscard]] rocksdb::Status Profile(
      const std::string& name,
      std::optional<std::map<std::string, std::string>>* settings) const;
  std::string Variable(const char* name) const;
  std::string HomeFile(const char* variable, const char* name) const;

  const StoreOptions options_;
  CredentialWorld world_;
  HttpClient outside_;   // STS, through the proxy
  HttpClient container_;
  HttpClient machine_;   // timeout 1 s
  std::mutex mu_;
  std::optional<Credentials> current_;  // guarded by mu_
  UnixSeconds renew_at_ = 0;            // guarded by mu_
};

// Runs a command with /bin/sh, without input, and returns at most `max_bytes`
// of its output. The command inherits this process's standard error.
//   kRefused  the command failed, wrote more, or ran longer than `limit`
[[nodiscard]] rocksdb::Status RunForOutput(const std::string& command,
                                           size_t max_bytes,
                                           std::chrono::milliseconds limit,
                                           std::string* output);

}  // namespace sstferry
