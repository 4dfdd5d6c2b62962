// sstferry release
#include <nlohmann/json.hpp>

#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/run.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;

std::string ToJson(const ReleaseArguments& asked, const Status& status,
                   const RetainedSnapshot& released) {
  const EndState state = EndStateOf(status);
  ordered_json json;
  json["schema"] = 1;
  json["command"] = "release";
  json["status"] = EndStateName(state);
  json["exit_code"] = ExitCodeOf(state);
  json["error"] = nullptr;
  if (!status.ok()) {
    json["error"] = {{"message", MessageOf(status)},
                     {"where", asked.directory}};
  }
  json["source"] = asked.directory;
  json["id"] = status.ok() ? ToHex(released.transfer_id) : asked.id;
  json["pinned_bytes"] = status.ok() ? released.pinned_bytes : 0;
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace

int RunRelease(const std::vector<std::string>& arguments) {
  ReleaseArguments parsed;
  const Status usage = ParseRelease(arguments, &parsed);
  if (!usage.ok()) {
    return ReportUsage("release", usage);
  }
  Console console(parsed.common);
  RetainedSnapshot released;
  const Status status = ReleaseSnapshot(parsed.directory, parsed.snapshot_dir,
                                        parsed.id, &released);
  std::string text;
  if (parsed.common.json) {
    text = ToJson(parsed, status, released);
  } else if (status.ok()) {
    text = "released: the snapshot of transfer " +
           ToHex(released.transfer_id) + ", which pinned " +
           FormatBytes(static_cast<double>(released.pinned_bytes)) + "\n";
  }
  return FinishCommand("release", status, "", text, &console);
}

}  // namespace sstferry
