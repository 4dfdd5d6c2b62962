// Tells what an answer of S3 means: its code, and whether to ask again.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "pipeline/archive/http_client.h"
#include "pipeline/archive/s3_xml.h"
#include "pipeline/archive/store.h"

namespace sstferry {

struct S3Verdict {
  StoreCode code = StoreCode::kOk;
  bool again = false;       // another try may go well
  bool throttled = false;   // with fewer connections
  bool renew = false;       // with other credentials
  std::string what;         // for people
};

// The part of a request on which the meaning of its answer depends.
struct S3Asked {
  bool if_absent = false;
  bool reads_object = false;  // GET or HEAD of one
};

// Judges an answer of any status. `now`: this machine's clock.
S3Verdict JudgeAnswer(const S3Asked& asked, const HttpAnswer& answer,
                      UnixSeconds now);

// Parses "Wed, 25 Nov 2026 16:34:29 GMT".
std::optional<UnixSeconds> ParseHttpDate(const std::string& text);

// Returns the seconds of a Retry-After header, at most 300; 0 without one.
std::chrono::seconds RetryAfter(const HttpAnswer& answer, UnixSeconds now);

}  // namespace sstferry
