// Signs requests to S3 (AWS Signature Version 4). Does no I/O and reads no
// clock.
//
// Four rules make every server compute the same signature:
//   1. each request carries x-amz-content-sha256, with the payload's digest;
//   2. the query is sent sorted and encoded as it is signed;
//   3. a parameter without a value is written "name=";
//   4. paths contain only bytes that need no encoding (IsStoreKey()).
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
  std::string session_token;   // may be empty
  UnixSeconds expires = 0;     // 0: never
  std::string source;          // where they were found, for messages
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string host;    // "bucket.s3.eu-west-1.amazonaws.com", ":PORT" if unusual
  std::string path;    // "/bucket/key"
  // Parameters, sorted by name, before encoding.
  std::map<std::string, std::string> query;
  // Names in lower case.
  std::map<std::string, std::string> headers;
};

// Encodes all bytes except A-Z a-z 0-9 - . _ ~ as %XX.
std::string PercentEncode(const rocksdb::Slice& text);

// Returns "name=value&other=", sorted and encoded.
std::string EncodeQuery(const std::map<std::string, std::string>& query);

// Formats a time as "20260131T235959Z".
std::string SigningDate(UnixSeconds time);

// Adds the headers host, x-amz-date, x-amz-content-sha256, x-amz-security-token
// (with a session token) and authorization to request->headers. All headers are
// signed. REQUIRES: the path contains only bytes that PercentEncode() leaves
// unchanged, and '/'.
void SignRequest(const Credentials& credentials, const std::string& region,
                 const Sha256Digest& payload_sha256, UnixSeconds time,
                 HttpRequest* request);

// Returns the text that SignRequest() signs; for tests and for error messages
// without secrets.
std::string CanonicalRequest(const HttpRequest& request,
                             const std::string& payload_sha256_hex);

}  // namespace sstferry
