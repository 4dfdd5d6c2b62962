// The arguments of each command, and the functions that parse them.
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

// Arguments common to all commands.
struct CommonArguments {
  bool json = false;
  ProgressMode progress = ProgressMode::kAuto;
  std::chrono::milliseconds progress_interval{10'000};
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
};

// The outputs of a command's metrics: an HTTP address, a file, or both.
struct MetricsArguments {
  std::optional<HostPort> listen;
  std::string file;  // empty if there is none
  bool insecure = false;  // serves other machines without TLS
};

// The shell commands of --on-success and --on-failure. An empty command is not
// run.
struct EndCommands {
  CommonArguments common;
  std::string on_success;
  std::string on_failure;
  std::string job;  // "pull", "archive push", ...
};

struct ServeArguments {
  CommonArguments common;
  MetricsArguments metrics;
  ServeOptions options;  // serve.cc sets the callbacks
  HostPort listen{"127.0.0.1", kDefaultPort};
  std::string stdio_directory;         // if not empty, `listen` is not used
  std::vector<uint32_t> allowed_uids;  // clients of a Unix socket
  TlsFiles tls;  // empty if the server does not use TLS
  bool once = false;
  bool insecure = false;
  bool allow_missing = false;
};

struct PullArguments {
  CommonArguments common;
  MetricsArguments metrics;
  PullOptions options;  // pull.cc sets the hooks from the two commands
  std::string before_swap;  // a shell command; empty if there is none
  std::string after_swap;
  uint32_t keep_old = 1;      // number of replaced databases that swap keeps
  bool summary_only = false;  // plan prints no line per family and file
  bool all = false;           // every database of the source
  uint32_t jobs = 4;          // only with `all`
  bool delete_vanished = false;  // only with `all`
};

struct VerifyArguments {
  CommonArguments common;
  VerifyOptions options;
  bool all = false;   // every database of both sides
  uint32_t jobs = 4;  // only with `all`
};

struct StatusArguments {
  CommonArguments common;
  StatusOptions options;
  bool all = false;          // shows all jobs of a host
  std::string host_file;     // only with `all`; see host_file.h
  std::string metrics_file;  // only with `all`; empty if there is none
};

struct ReleaseArguments {
  CommonArguments common;
  SourceAddress source;  // a directory on this machine or over ssh
  SourceAccess options;
  std::string id;  // the first hex digits of a transfer's id
};

struct ArchiveArguments {
  CommonArguments common;
  MetricsArguments metrics;  // only `file` is used
  ArchiveOptions options;
  bool all = false;   // pushes every database of the source
  uint32_t jobs = 4;  // only with `all`
};

struct FollowArguments {
  CommonArguments common;
  MetricsArguments metrics;
  FollowOptions options;  // follow.cc sets the callback
};

struct PromoteArguments {
  CommonArguments common;
  PromoteOptions options;  // follow.cc sets the hooks from the two commands
  std::string before;      // a shell command; empty if there is none
  std::string after;
};

struct ViewArguments {
  CommonArguments common;
  ViewOptions options;
};

struct UnitsArguments {
  CommonArguments common;
  std::string config;     // the host's file (host_file.h)
  std::string directory;  // the default directory if empty
  bool check = false;
  bool start = false;
  bool cron = false;
  bool kubernetes = false;
};

struct CertArguments {
  CommonArguments common;
  std::string dir;                 // the CA's directory
  std::vector<std::string> hosts;  // if empty, the command makes the CA
  uint32_t days = kDefaultCertificateDays;
};

// For wrong usage, the functions below return InvalidArgument with a message as
// in arguments.h. They open no database and no connection.

// Parses --on-success and --on-failure of any command. If the command does not
// have these options, both texts in *out stay empty.
[[nodiscard]] rocksdb::Status ParseEndCommands(
    const std::string& command, const std::vector<std::string>& arguments,
    EndCommands* out);
[[nodiscard]] rocksdb::Status ParseServe(
    const std::vector<std::string>& arguments, ServeArguments* out);
// Parses the arguments of pull, refresh or swap, according to `mode`.
[[nodiscard]] rocksdb::Status ParsePull(
    PullMode mode, const std::vector<std::string>& arguments,
    PullArguments* out);
// Parses the arguments of plan. The first word may be the planned command: pull
// (the default), refresh or swap. TARGET_DIR may be missing, and so may the
// database's NAME at the end of SOURCE.
[[nodiscard]] rocksdb::Status ParsePlan(
    const std::vector<std::string>& arguments, PullArguments* out);
[[nodiscard]] rocksdb::Status ParseVerify(
    const std::vector<std::string>& arguments, VerifyArguments* out);
[[nodiscard]] rocksdb::Status ParseStatus(
    const std::vector<std::string>& arguments, StatusArguments* out);
// Parses the arguments of ls. Refuses an archive as SOURCE.
[[nodiscard]] rocksdb::Status ParseLs(
    const std::vector<std::string>& arguments, StatusArguments* out);
[[nodiscard]] rocksdb::Status ParseRelease(
    const std::vector<std::string>& arguments, ReleaseArguments* out);
// Parses the arguments of archive. Refuses options that the given action, such
// as push, does not use.
[[nodiscard]] rocksdb::Status ParseArchive(
    const std::vector<std::string>& arguments, ArchiveArguments* out);
[[nodiscard]] rocksdb::Status ParseFollow(
    const std::vector<std::string>& arguments, FollowArguments* out);
[[nodiscard]] rocksdb::Status ParsePromote(
    const std::vector<std::string>& arguments, PromoteArguments* out);
[[nodiscard]] rocksdb::Status ParseView(
    const std::vector<std::string>& arguments, ViewArguments* out);
[[nodiscard]] rocksdb::Status ParseUnits(
    const std::vector<std::string>& arguments, UnitsArguments* out);
[[nodiscard]] rocksdb::Status ParseCert(
    const std::vector<std::string>& arguments, CertArguments* out);

}  // namespace sstferry
