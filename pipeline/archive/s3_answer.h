// Interprets an answer of S3: its code, and whether to retry.
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
  bool again = false;       // a retry may succeed
  bool throttled = false;   // retry with fewer connections
  bool renew = false;       // retry with other credentials
  std::string what;         // message
};

// The properties of a request that determine the meaning of its answer.
struct S3Asked {
  bool if_absent = false;
  bool reads_object = false;  // GET or HEAD of an object
  bool is_head = false;
  // The caller looks for the object in a list before it believes kAbsent.
  bool proves_absence = false;
};

// Returns a message if the answer's body was changed in transit, for example
// compressed by a proxy; otherwise an empty string.
std::string ForeignEncoding(const HttpAnswer& answer);

// Judges an answer of any status. `now`: this machine's clock.
S3Verdict JudgeAnswer(const S3Asked& asked, const HttpAnswer& answer,
                      UnixSeconds now);

// Parses "Wed, 25 Nov 2026 16:34:29 GMT".
std::optional<UnixSeconds> ParseHttpDate(const std::string& text);

// Returns the seconds of a Retry-After header, at most 300; 0 without one.
std::chrono::seconds RetryAfter(const HttpAnswer& answer, UnixSeconds now);

}  // namespace sstferry
