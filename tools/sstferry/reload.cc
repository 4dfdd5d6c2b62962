#include "tools/sstferry/reload.h"
#include "format/quantity.h"

#include <string>

namespace sstferry {

void ApplyReload(const rocksdb::Status& parsed, const CommonArguments& again,
                 uint64_t max_rate_bytes_per_sec,
                 const std::function<void(uint64_t)>& set_max_rate,
                 Console* console) {
  if (!parsed.ok()) {
    console->Log(LogLevel::kWarning, "SIGHUP: nothing was changed: " +
                                         MessageOf(parsed));
    return;
  }
  console->set_log_level(again.log_level);
  set_max_rate(max_rate_bytes_per_sec);
  console->Log(LogLevel::kInfo,
               "SIGHUP: max-rate " +
                   (max_rate_bytes_per_sec == 0
                        ? std::string("unlimited")
                        : FormatBytes(max_rate_bytes_per_sec) + "/s") +
                   ", log-level set; other options need a restart");
}

}  // namespace sstferry
