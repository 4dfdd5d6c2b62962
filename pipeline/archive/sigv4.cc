#include "pipeline/archive/sigv4.h"

#include <ctime>

namespace sstferry {
namespace {

constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

rocksdb::Slice AsSlice(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string SignedHeaders(const HttpRequest& request) {
  std::string names;
  for (const auto& [name, value] : request.headers) {
    names += (names.empty() ? "" : ";") + name;
  }
  return names;
}

}  // namespace

std::string PercentEncode(const rocksdb::Slice& text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
        (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
        c == '~') {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::string EncodeQuery(const std::map<std::string, std::string>& query) {
  // S3 sorts parameters by their encoded names. The names consist of letters
  // and '-', so the map already has this order.
  std::string out;
  for (const auto& [name, value] : query) {
    out += (out.empty() ? "" : "&") + PercentEncode(name) + "=" +
           PercentEncode(value);
  }
  return out;
}

std::string SigningDate(UnixSeconds time) {
  const std::time_t seconds = time;
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &utc);
  return text;
}

std::string CanonicalRequest(const HttpRequest& request,
                             const std::string& payload_sha256_hex) {
  std::string text = request.method + "\n" + request.path + "\n" +
                     EncodeQuery(request.query) + "\n";
  for (const auto& [name, value] : request.headers) {
    text += name + ":" + value + "\n";
  }
  return text + "\n" + SignedHeaders(request) + "\n" + payload_sha256_hex;
}

void SignRequest(const Credentials& credentials, const std::string& region,
                 const Sha256Digest& payload_sha256, UnixSeconds time,
                 HttpRequest* request) {
  const std::string date = SigningDate(time);
  const std::string day = date.substr(0, 8);
  const std::string payload = ToHex(payload_sha256);
  request->headers.erase("authorization");
  request->headers["host"] = request->host;
  request->headers["x-amz-content-sha256"] = payload;
  request->headers["x-amz-date"] = date;
  request->headers.erase("x-amz-security-token");
  if (!credentials.session_token.empty()) {
    request->headers["x-amz-security-token"] = credentials.session_token;
  }
  const std::string scope = day + "/" + region + "/s3/aws4_request";
  const std::string to_sign =
      std::string(kAlgorithm) + "\n" + date + "\n" + scope + "\n" +
      ToHex(Sha256Of(CanonicalRequest(*request, payload)));
  Sha256Digest key =
      HmacSha256("AWS4" + credentials.secret_access_key, day);
  for (const std::string& part :
       {region, std::string("s3"), std::string("aws4_request")}) {
    key = HmacSha256(AsSlice(key), part);
  }
  const std::string signed_headers = SignedHeaders(*request);
  request->headers["authorization"] =
      std::string(kAlgorithm) + " Credential=" + credentials.access_key_id +
      "/" + scope + ",SignedHeaders=" + signed_headers +
      ",Signature=" + ToHex(HmacSha256(AsSlice(key), to_sign));
}

}  // namespace sstferry
