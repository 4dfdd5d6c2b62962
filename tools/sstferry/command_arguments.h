// The arguments of each command, and how they are read.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/archive.h"
#include "sstferry/follow.h"
#include "sstferry/options.h"
#include "sstferry/source.h"
#include "sstferry/status.h"
#include "sstferry/transport.h"

namespace sstferry {

enum class ProgressMode { kAuto, kAlways, kNever, kJson };
enum class LogFormat { kText, kJson };

// Arguments of every command.
struct CommonArguments {
  bool json = false;
  ProgressMode progress = ProgressMode::kAuto;
  std::chrono::milliseconds progress_interval{10'000};
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
};

// Where metrics are shown.
struct MetricsArguments {
  std::optional<HostPort> listen;
  std::string file;  // empty: none
  bool insecure = false;  // beyond this machine without TLS
};

struct ServeArguments {
  CommonArguments common;
  MetricsArguments metrics;
  ServeOptions options;  // all but the callbacks
  HostPort listen{"127.0.0.1", kDefaultPort};
  std::string stdio_directory;         // instead of listen; empty: listen
  std::vector<uint32_t> allowed_uids;  // of a Unix socket
  TlsFiles tls;  // empty: without
  bool once = false;
  bool insecure = false;
  bool allow_missing = false;
};

struct PullArguments {
  CommonArguments common;
  MetricsArguments metrics;
  PullOptions options;  // all but the hooks
  std::string before_swap;  // commands; empty: none
  std::string after_swap;
  uint32_t keep_old = 1;      // swap: replaced databases that stay
  bool summary_only = false;  // plan: without a line per family and file
  bool all = false;           // every database of the source
  uint32_t jobs = 4;          // with `all`, and so is:
  bool delete_vanished = false;
};

struct VerifyArguments {
  CommonArguments common;
  VerifyOptions options;
};

struct StatusArguments {
  CommonArguments common;
  StatusOptions options;
};

struct ReleaseArguments {
  CommonArguments common;
  SshCommands ssh;
  SourceAddress source;  // a directory, here or over ssh
  std::string snapshot_dir;
  std::string id;  // hex digits of a transfer's id, from its first on
};

struct ArchiveArguments {
  CommonArguments common;
  MetricsArguments metrics;  // a file only
  ArchiveOptions options;
};

struct FollowArguments {
  CommonArguments common;
  MetricsArguments metrics;
  FollowOptions options;  // all but the callback
};

struct PromoteArguments {
  CommonArguments common;
  PromoteOptions options;  // all but the hooks
  std::string before;      // commands; empty: none
  std::string after;
};

struct ViewArguments {
  CommonArguments common;
  ViewOptions options;
};

struct CertArguments {
  CommonArguments common;
  std::string dir;                 // of the CA
  std::vector<std::string> hosts;  // empty: the CA is made
  uint32_t days = kDefaultCertificateDays;
};

// InvalidArgument: wrong usage, as in arguments.h; nothing was touched but the
// config file, which was read.
[[nodiscard]] rocksdb::Status ParseServe(
    const std::vector<std::string>& arguments, ServeArguments* out);
// Reads the arguments of pull, refresh or swap, as `mode` says.
[[nodiscard]] rocksdb::Status ParsePull(
    PullMode mode, const std::vector<std::string>& arguments,
    PullArguments* out);
// The first word may name the command, else it is pull. TARGET_DIR may be left
// out, and so may the NAME of a URL.
[[nodiscard]] rocksdb::Status ParsePlan(
    const std::vector<std::string>& arguments, PullArguments* out);
[[nodiscard]] rocksdb::Status ParseVerify(
    const std::vector<std::string>& arguments, VerifyArguments* out);
[[nodiscard]] rocksdb::Status ParseStatus(
    const std::vector<std::string>& arguments, StatusArguments* out);
// The same for ls, whose `where` is a server.
[[nodiscard]] rocksdb::Status ParseLs(
    const std::vector<std::string>& arguments, StatusArguments* out);
[[nodiscard]] rocksdb::Status ParseRelease(
    const std::vector<std::string>& arguments, ReleaseArguments* out);
// Refuses an option for which the action has no use.
[[nodiscard]] rocksdb::Status ParseArchive(
    const std::vector<std::string>& arguments, ArchiveArguments* out);
[[nodiscard]] rocksdb::Status ParseFollow(
    const std::vector<std::string>& arguments, FollowArguments* out);
[[nodiscard]] rocksdb::Status ParsePromote(
    const std::vector<std::string>& arguments, PromoteArguments* out);
[[nodiscard]] rocksdb::Status ParseView(
    const std::vector<std::string>& arguments, ViewArguments* out);
[[nodiscard]] rocksdb::Status ParseCert(
    const std::vector<std::string>& arguments, CertArguments* out);

}  // namespace sstferry
