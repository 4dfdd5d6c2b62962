// Where credentials for S3 come from, and when they are asked for again.
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

// The world as the chain sees it; tests give it another.
struct CredentialWorld {
  // nullopt: not set. Default: getenv().
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // This machine's clock. Default: time().
  std::function<UnixSeconds()> now;
};

// Threads: any; one of them asks while the others wait.
class CredentialChain {
 public:
  CredentialChain(const StoreOptions& options, CredentialWorld world);

  // Gives credentials that last for at least a moment: those of before while
  // they have more than 5 minutes or half of their life left, else new ones. If
  // new ones cannot be had, those of before until they end.
  //   kDenied    there are none; the message says where they were looked for
  //   kRefused   there are some that cannot be used
  //   kDeadPeer  who gives them did not answer
  [[nodiscard]] rocksdb::Status Get(Credentials* credentials);
  // The store has said that these have ended: the next Get() asks for others.
  void Renew(const Credentials& refused);
  // Finds the region of the environment or of the profile; empty: neither has
  // one.
  //   kRefused  a profile file is there and cannot be read
  [[nodiscard]] rocksdb::Status Region(std::string* region) const;

  void Cancel();

 private:
  [[nodiscard]] rocksdb::Status Ask(Credentials* credentials);
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
  // Reads the settings of a profile from both files; nullopt: neither has it.
  [[nodiscard]] rocksdb::Status Profile(
      const std::string& name,
      std::optional<std::map<std::string, std::string>>* settings) const;
  std::string Variable(const char* name) const;
  std::string HomeFile(const char* variable, const char* name) const;

  const StoreOptions options_;
  CredentialWorld world_;
  HttpClient outside_;   // STS, through the proxy
  HttpClient container_;
  HttpClient machine_;   // 1 s
  std::mutex mu_;
  std::optional<Credentials> current_;  // under mu_
  UnixSeconds renew_at_ = 0;            // under mu_
};

// Runs a command of /bin/sh without input and returns what it writes, at most
// `max_bytes` of it. Its standard error is that of this process.
//   kRefused  it failed, or wrote more, or took longer than `limit`
[[nodiscard]] rocksdb::Status RunForOutput(const std::string& command,
                                           size_t max_bytes,
                                           std::chrono::milliseconds limit,
                                           std::string* output);

}  // namespace sstferry
