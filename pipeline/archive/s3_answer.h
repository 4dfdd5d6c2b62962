// Interprets the answers of S3: which error occurred, and if a retry may
// succeed.
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
  bool again = false;      // the same request may succeed later
  bool throttled = false;  // send fewer requests at once
  bool renew = false;      // obtain new credentials before the retry
  std::string what;        // message
};

// Properties of a request that change the meaning of its answer.
struct S3Asked {
  bool if_absent = false;
  bool reads_object = false;  // GET or HEAD of an object
  bool is_head = false;
  // The caller looks for the object in a list before it trusts kAbsent.
  bool proves_absence = false;
};

// Returns a message if the body of the answer was changed in transit, for
// example compressed by a proxy. Returns an empty text otherwise.
std::string ForeignEncoding(const HttpAnswer& answer);

// Interprets an answer with any status. `now` is the time of this machine's
// clock.
S3Verdict JudgeAnswer(const S3Asked& asked, const HttpAnswer& answer,
                      UnixSeconds now);

// Parses a time like "Wed, 25 Nov 2026 16:34:29 GMT".
std::optional<UnixSeconds> ParseHttpDate(const std::string& text);

// Returns the time to wait according to the Retry-After header, at most 300
// seconds. Returns 0 if there is no such header.
std::chrono::seconds RetryAfter(const HttpAnswer& answer, UnixSeconds now);

}  // namespace sstferry
