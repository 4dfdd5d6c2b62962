// The sub-commands: their options, their help, what their texts mean, and
// their entry points. One file per command runs it; nothing here prints but
// the Run functions.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/options.h"
#include "sstferry/source.h"
#include "sstferry/status.h"
#include "sstferry/transport.h"
#include "tools/sstferry/options/arguments.h"

namespace sstferry {

enum class ProgressMode { kAuto, kAlways, kNever, kJson };

// What every command takes.
struct CommonArguments {
  bool json = false;
  ProgressMode progress = ProgressMode::kAuto;
  std::chrono::milliseconds progress_interval{10'000};
  LogLevel log_level = LogLevel::kInfo;
};

struct ServeArguments {
  CommonArguments common;
  ServeOptions options;  // all but the callbacks
  HostPort listen;
  TlsFiles tls;  // empty: plain TCP
  bool once = false;
  bool insecure = false;
};

struct PullArguments {
  CommonArguments common;
  PullOptions options;  // all but the hooks
  std::string before_swap;  // commands; empty: none
  std::string after_swap;
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
  std::string directory;
  std::string snapshot_dir;
  std::string id;  // hex digits of a transfer's id, from its first on
};

struct InspectArguments {
  CommonArguments common;
  std::string file;
};

// InvalidArgument: wrong usage, as in arguments.h; nothing was touched but the
// config file, which was read.
[[nodiscard]] rocksdb::Status ParseServe(
    const std::vector<std::string>& arguments, ServeArguments* out);
[[nodiscard]] rocksdb::Status ParsePull(
    const std::vector<std::string>& arguments, PullArguments* out);
// TARGET_DIR may be left out, and so may the NAME of a URL.
[[nodiscard]] rocksdb::Status ParsePlan(
    const std::vector<std::string>& arguments, PullArguments* out);
[[nodiscard]] rocksdb::Status ParseVerify(
    const std::vector<std::string>& arguments, VerifyArguments* out);
[[nodiscard]] rocksdb::Status ParseStatus(
    const std::vector<std::string>& arguments, StatusArguments* out);
[[nodiscard]] rocksdb::Status ParseRelease(
    const std::vector<std::string>& arguments, ReleaseArguments* out);
[[nodiscard]] rocksdb::Status ParseInspect(
    const std::vector<std::string>& arguments, InspectArguments* out);

// Each runs one command to its end and returns the exit code.
int RunServe(const std::vector<std::string>& arguments);
int RunPull(const std::vector<std::string>& arguments);
int RunPlan(const std::vector<std::string>& arguments);
int RunVerify(const std::vector<std::string>& arguments);
int RunStatus(const std::vector<std::string>& arguments);
int RunRelease(const std::vector<std::string>& arguments);
int RunInspect(const std::vector<std::string>& arguments);

struct Command {
  const char* name;
  const char* synopsis;  // "SOURCE TARGET_DIR [options]"
  const char* about;     // whole sentences, wrapped
  std::vector<OptionSpec> options;  // the common ones follow in --help
  std::vector<std::string> operands;
  int (*run)(const std::vector<std::string>& arguments);
};

// In the order --help lists them.
const std::vector<Command>& Commands();
const Command* FindCommand(const std::string& name);  // null: unknown

// Options of every command.
const std::vector<OptionSpec>& CommonOptions();

std::string CommandHelp(const Command& command);
std::string GeneralHelp();
std::string VersionText();
std::string RocksdbVersion();  // "7.8.3"

}  // namespace sstferry
