#include "pipeline/archive/s3_answer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "format/printable.h"

namespace sstferry {
namespace {

constexpr UnixSeconds kSkewSeconds = 15 * 60;
constexpr UnixSeconds kMaxRetryAfterSeconds = 300;

struct Meaning {
  const char* name;
  StoreCode code;
  bool again = false;
  bool throttled = false;
  bool renew = false;
};

constexpr Meaning kMeanings[] = {
    {"SlowDown", StoreCode::kThrottled, true, true},
    {"ServiceUnavailable", StoreCode::kThrottled, true, true},
    {"Throttling", StoreCode::kThrottled, true, true},
    {"ThrottlingException", StoreCode::kThrottled, true, true},
    {"TooManyRequests", StoreCode::kThrottled, true, true},
    {"TooManyRequestsException", StoreCode::kThrottled, true, true},
    {"RequestLimitExceeded", StoreCode::kThrottled, true, true},
    {"InternalError", StoreCode::kUnreachable, true},
    {"RequestTimeout", StoreCode::kUnreachable, true},
    {"IncompleteBody", StoreCode::kUnreachable, true},
    {"OperationAborted", StoreCode::kUnreachable, true},
    {"ConditionalRequestConflict", StoreCode::kUnreachable, true},
    {"NoSuchKey", StoreCode::kAbsent},
    {"NoSuchUpload", StoreCode::kAbsent},
    {"NoSuchBucket", StoreCode::kUnsupported},
    {"NoSuchVersion", StoreCode::kAbsent},
    {"RequestTimeTooSkewed", StoreCode::kSignatureRefused},
    {"RequestExpired", StoreCode::kSignatureRefused},
    {"ExpiredToken", StoreCode::kDenied, true, false, true},
    {"ExpiredTokenException", StoreCode::kDenied, true, false, true},
    {"TokenRefreshRequired", StoreCode::kDenied, true, false, true},
    {"InvalidToken", StoreCode::kDenied, true, false, true},
    {"AccessDenied", StoreCode::kDenied},
    {"InvalidObjectState", StoreCode::kCold},
    {"SignatureDoesNotMatch", StoreCode::kDenied},
    {"InvalidAccessKeyId", StoreCode::kDenied},
    {"BadDigest", StoreCode::kDamaged},
    {"XAmzContentSHA256Mismatch", StoreCode::kDamaged},
    {"XAmzContentChecksumMismatch", StoreCode::kDamaged},
    {"InvalidRange", StoreCode::kDamaged},
    {"InvalidPart", StoreCode::kDamaged},
    {"InvalidPartOrder", StoreCode::kDamaged},
    {"QuotaExceeded", StoreCode::kNoSpace},
    {"StorageQuotaExceeded", StoreCode::kNoSpace},
    {"InsufficientStorage", StoreCode::kNoSpace},
    {"XMinioStorageFull", StoreCode::kNoSpace},
    {"NotImplemented", StoreCode::kUnsupported},
    {"MethodNotAllowed", StoreCode::kUnsupported},
};

// Returns the meaning of an HTTP status. Used if the answer has no known error
// code.
Meaning OfStatus(int status) {
  switch (status) {
    case 401:
    case 403:
      return {"", StoreCode::kDenied};
    case 404:
      // A proxy without a route to the store may also answer 404. So this
      // answer does not prove that the object is missing.
      return {"", StoreCode::kUnreachable, true};
    case 416:
      return {"", StoreCode::kDamaged};
    case 429:
    case 503:
      return {"", StoreCode::kThrottled, true, true};
    case 405:
    case 501:
      return {"", StoreCode::kUnsupported};
    case 507:
      return {"", StoreCode::kNoSpace};
    case 408:
    case 409:
      return {"", StoreCode::kUnreachable, true};
    default:
      break;
  }
  if (status >= 500 || status == 200) {
    return {"", StoreCode::kUnreachable, true};
  }
  if (status >= 300 && status < 400) {
    return {"", StoreCode::kUnsupported};
  }
  return {"", StoreCode::kInternal};
}

Meaning MeaningOf(const S3Error& error, int status) {
  for (const Meaning& meaning : kMeanings) {
    if (error.code == meaning.name) {
      return meaning;
    }
  }
  return OfStatus(status);
}

std::string Seconds(UnixSeconds seconds) {
  return std::to_string(seconds) + " s";
}

}  // namespace

std::string ForeignEncoding(const HttpAnswer& answer) {
  const std::string encoding = answer.Header("content-encoding");
  // Accepts "aws-chunked", because some stores return the encoding of the
  // upload.
  return encoding.empty() || encoding == "identity" ||
                 encoding == "aws-chunked"
             ? ""
             : "expected bytes as they are stored, found 'Content-Encoding: " +
                   Printable(encoding.substr(0, 100)) +
                   "': the store, or a proxy in front of it, changes the bytes "
                   "in transit; turn that off";
}

S3Verdict JudgeAnswer(const S3Asked& asked, const HttpAnswer& answer,
                      UnixSeconds now) {
  S3Error error;
  const bool is_error = !answer.body.empty() &&
                        ParseS3Error(answer.body, &error);
  const bool is_success = answer.status >= 200 && answer.status < 300;
  if (const std::string changed = ForeignEncoding(answer);
      is_success && !changed.empty()) {
    S3Verdict verdict;
    verdict.code = StoreCode::kUnsupported;
    verdict.what = changed;
    return verdict;
  }
  if (is_success && !is_error) {
    return {};
  }
  S3Verdict verdict;
  verdict.what = "status " + std::to_string(answer.status);
  if (!error.code.empty()) {
    verdict.what += " " + error.code + ": " + error.message;
  }
  const std::string request_id =
      Printable(answer.Header("x-amz-request-id").substr(0, 100));
  if (!request_id.empty()) {
    verdict.what += " (request " + request_id + ")";
  }
  if (error.code == "PreconditionFailed" || answer.status == 412) {
    verdict.code =
        asked.if_absent ? StoreCode::kExists : StoreCode::kOtherVersion;
    return verdict;
  }
  const Meaning meaning = MeaningOf(error, is_success ? 500 : answer.status);
  verdict.code = meaning.code;
  verdict.again = meaning.again;
  verdict.throttled = meaning.throttled;
  verdict.renew = meaning.renew;
  // Accepts status 404 without an error code. Some stores have no code for a
  // missing object, and an answer to HEAD has no body with a code.
  if (answer.status == 404 && asked.proves_absence &&
      verdict.code == StoreCode::kUnreachable) {
    verdict.code = StoreCode::kAbsent;
    verdict.again = !asked.is_head;
  }
  const auto date = ParseHttpDate(answer.Header("date"));
  const UnixSeconds ahead = date.has_value() ? now - *date : 0;
  const bool is_skewed = std::abs(ahead) > kSkewSeconds;
  // An answer to HEAD has no body, and therefore no error code.
  if (answer.status == 403 && error.code.empty() && is_skewed) {
    verdict.code = StoreCode::kSignatureRefused;
  }
  if (verdict.code == StoreCode::kSignatureRefused) {
    if (is_skewed) {
      verdict.what += "; this machine's clock is " + Seconds(std::abs(ahead)) +
                      (ahead > 0 ? " ahead of" : " behind") +
                      " the store's: " + SigningDate(now) + " here, " +
                      SigningDate(*date) + " there; set the clock";
    } else {
      // The request was delayed in transit. A request with a new signature may
      // succeed.
      verdict.again = true;
    }
  }
  if (asked.reads_object && verdict.code == StoreCode::kDenied &&
      (error.code.empty() || error.code == "AccessDenied")) {
    verdict.what += "; a bucket also answers this for a missing object if the "
                    "caller does not have the right s3:ListBucket";
  }
  const std::string location = answer.Header("location");
  if (!location.empty() && answer.status >= 300 && answer.status < 400) {
    verdict.what += "; it redirects to " + Printable(location.substr(0, 200)) +
                    ", and a signed request is valid for one host only: "
                    "--endpoint must name the scheme and host that serve the "
                    "bucket";
  }
  if (error.code == "NoSuchBucket") {
    verdict.what += "; make the bucket first, or correct its name";
  }
  if (error.code == "InvalidObjectState") {
    verdict.what += "; the object was moved to " +
                    (error.storage_class.empty() ? "a storage class"
                                                 : error.storage_class) +
                    ", where nothing can be read: restore the archive's "
                    "objects in the store, and exclude them from the lifecycle "
                    "rule that moves them";
  }
  const std::string region = answer.Header("x-amz-bucket-region");
  if (!region.empty() && (verdict.code == StoreCode::kUnsupported ||
                          error.code == "AuthorizationHeaderMalformed")) {
    verdict.what += "; the bucket's region is " +
                    Printable(region.substr(0, 64)) +
                    ", which --region must name";
  }
  return verdict;
}

std::optional<UnixSeconds> ParseHttpDate(const std::string& text) {
  std::tm utc = {};
  const char* end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  if (end == nullptr || *end != '\0' || utc.tm_year < 100 ||
      utc.tm_year > 1000) {
    return std::nullopt;
  }
  return static_cast<UnixSeconds>(timegm(&utc));
}

std::chrono::seconds RetryAfter(const HttpAnswer& answer, UnixSeconds now) {
  const std::string text = answer.Header("retry-after");
  if (text.empty()) {
    return std::chrono::seconds(0);
  }
  UnixSeconds seconds = 0;
  if (text.size() <= 9 &&
      text.find_first_not_of("0123456789") == std::string::npos) {
    seconds = std::stoll(text);
  } else if (const auto date = ParseHttpDate(text); date.has_value()) {
    // Uses the store's clock if the answer has its time, else this machine's
    // clock.
    seconds = *date - ParseHttpDate(answer.Header("date")).value_or(now);
  }
  return std::chrono::seconds(
      std::clamp<UnixSeconds>(seconds, 0, kMaxRetryAfterSeconds));
}

}  // namespace sstferry
