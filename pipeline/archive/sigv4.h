// Signs requests to S3 (AWS Signature Version 4). Does no I/O, and reads no
// clock.
//
// Because of four rules, every server computes the same signature:
//   1. each request has x-amz-content-sha256, with the payload's digest;
//   2. the query is sent in the order and encoding in which it is signed;
//   3. a parameter without a value is written as "name=";
//   4. a path contains only bytes that need no encoding (IsStoreKey()).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/sha256.h"
#include "pipeline/archive/store.h"

namespace sstferry {

struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // may be empty
  UnixSeconds expires = 0;    // 0: never
  // Place where the credentials were found, for messages.
  std::string source;
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string host;    // "bucket.s3.eu-west-1.amazonaws.com", ":PORT" if unusual
  std::string path;    // "/bucket/key"
  // Unencoded parameters, by name.
  std::map<std::string, std::string> query;
  // Values by name; the names are in lower case.
  std::map<std::string, std::string> headers;
};

// Encodes all bytes except A-Z a-z 0-9 - . _ ~ as %XX.
std::string PercentEncode(const rocksdb::Slice& text);

// Returns "name=value&other=", sorted and encoded.
std::string EncodeQuery(const std::map<std::string, std::string>& query);

// Formats a time as "20260131T235959Z".
std::string SigningDate(UnixSeconds time);

// Signs a request. Adds the headers host, x-amz-date, x-amz-content-sha256,
// authorization and, with a session token, x-amz-security-token to
// request->headers. The signature covers all headers. REQUIRES: the path
// contains only '/' and bytes that PercentEncode() leaves unchanged.
void SignRequest(const Credentials& credentials, const std::string& region,
                 const Sha256Digest& payload_sha256, UnixSeconds time,
                 HttpRequest* request);

// Returns the text that SignRequest() signs. The text contains no secrets, so
// error messages may show it. Tests use it, too.
std::string CanonicalRequest(const HttpRequest& request,
                             const std::string& payload_sha256_hex);

}  // namespace sstferry
