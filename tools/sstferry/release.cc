// Implements the command sstferry release.
#include <nlohmann/json.hpp>

#include "format/quantity.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/result_json.h"
#include "tools/sstferry/run.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;

std::string ToJson(const ReleaseArguments& asked, const Status& status,
                   const RetainedSnapshot& released) {
  ordered_json json = ResultJson("release", status, asked.source.directory);
  json["source"] = asked.source.directory;
  json["id"] = status.ok() ? ToHex(released.transfer_id) : asked.id;
  json["pinned_bytes"] = OrNull(status.ok(), released.pinned_bytes);
  return DumpJson(json);
}

// Runs sstferry release on the source's machine over ssh. The remote command
// prints the result.
int ReleaseThere(const ReleaseArguments& asked) {
  const SourceAddress& source = asked.source;
  std::vector<std::string> words = {"release", source.directory, asked.id};
  if (!asked.options.snapshot_dir.empty()) {
    words.insert(words.end(), {"--snapshot-dir", asked.options.snapshot_dir});
  }
  if (asked.common.json) {
    words.push_back("--json");
  }
  int exit_code = 0;
  const Status status = RunOverSsh(
      {source.user, source.host, source.port, source.directory,
       asked.options.ssh, {}},
      words, &exit_code);
  Console console(asked.common);
  return status.ok() ? exit_code
                     : FinishCommand("release", status, "", "", &console);
}

}  // namespace

int RunRelease(const std::vector<std::string>& arguments) {
  ReleaseArguments parsed;
  const Status usage = ParseRelease(arguments, &parsed);
  if (!usage.ok()) {
    return ReportUsage("release", usage);
  }
  if (parsed.source.is_ssh()) {
    return ReleaseThere(parsed);
  }
  Console console(parsed.common);
  RetainedSnapshot released;
  const Status status =
      ReleaseSnapshot(parsed.source.directory, parsed.options.snapshot_dir,
                      parsed.id, &released);
  std::string text;
  if (parsed.common.json) {
    text = ToJson(parsed, status, released);
  } else if (status.ok()) {
    text = "released: the snapshot of transfer " +
           ToHex(released.transfer_id) + ", which pinned " +
           FormatBytes(released.pinned_bytes) + "\n";
  }
  return FinishCommand("release", status, "", text, &console);
}

}  // namespace sstferry
