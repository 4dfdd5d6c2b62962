#include "pipeline/pull/lost_source.h"

#include "pipeline/base/duration.h"

namespace sstferry {

void LostSource::Log(LogLevel level, const std::string& text) const {
  if (log_) {
    log_(level, text);
  }
}

void LostSource::Lost(const std::string& what, Clock::time_point since,
                  const std::string& reason) {
  bool is_first = false;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    began_ = lost_++ == 0 ? Clock::now() : began_;
    is_first = !told_ && since >= ended_;
    told_ = told_ || is_first;
  }
  Log(is_first ? LogLevel::kWarning : LogLevel::kDebug,
      (is_first ? "connection to the source lost, reconnecting: "
                : what + ": lost, reconnecting: ") + reason);
}

void LostSource::Back(const std::string& what) {
  bool is_last = false;
  std::chrono::milliseconds took{0};
  {
    const std::lock_guard<std::mutex> lock(mu_);
    is_last = --lost_ == 0;
    if (is_last) {
      ended_ = Clock::now();
      took = std::chrono::duration_cast<std::chrono::milliseconds>(ended_ -
                                                                   began_);
    }
    is_last = is_last && told_;
    told_ = told_ && lost_ != 0;
  }
  Log(is_last ? LogLevel::kInfo : LogLevel::kDebug,
      is_last ? "connected to the source again after " + FormatDuration(took)
              : what + ": connected again");
}

}  // namespace sstferry
