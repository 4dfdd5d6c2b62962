// Parses and writes the XML documents of S3's interface. Does no I/O. A
// document is untrusted: its size is checked before it is parsed, and every
// field is bounded. No DTD is read, and only XML's five predefined entities are
// replaced.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/archive/sigv4.h"
#include "pipeline/archive/store.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// A page of 1000 objects takes about 500 KB.
inline constexpr size_t kMaxXmlBytes = 4u << 20;
inline constexpr uint32_t kMaxUploadIdBytes = 1024;

struct S3Error {
  std::string code;     // "NoSuchKey"; printable, at most 100 bytes
  std::string message;  // printable, at most 500 bytes
  std::string storage_class;  // printable, at most 100 bytes
};
// Returns true if the document is an error. Servers may send an error even with
// status 200.
bool ParseS3Error(const rocksdb::Slice& xml, S3Error* error);

// All other functions return kCorrupt for a document of another kind.

struct S3Listing {
  std::vector<ObjectInfo> objects;  // complete keys, as the server has them
  bool truncated = false;
  std::string next_token;
};
[[nodiscard]] rocksdb::Status ParseS3Listing(const rocksdb::Slice& xml,
                                             S3Listing* listing);

[[nodiscard]] rocksdb::Status ParseBegunUpload(const rocksdb::Slice& xml,
                                               std::string* upload_id);
[[nodiscard]] rocksdb::Status ParseCompletedUpload(const rocksdb::Slice& xml);

struct S3Upload {
  std::string key;  // complete
  std::string upload_id;
  UnixSeconds begun = 0;  // by the store's clock; 0: unknown
};
[[nodiscard]] rocksdb::Status ParseS3Uploads(const rocksdb::Slice& xml,
                                             std::vector<S3Upload>* uploads);

// Returns the first key that could not be deleted; error->code is empty if
// there is none.
[[nodiscard]] rocksdb::Status ParseDeleted(const rocksdb::Slice& xml,
                                           S3Error* error);

// Reads the answer of STS to AssumeRoleWithWebIdentity.
[[nodiscard]] rocksdb::Status ParseAssumedRole(const rocksdb::Slice& xml,
                                               Credentials* credentials);

// REQUIRES: keys contain only bytes that need no escaping in XML.
std::string DeleteDocument(const std::vector<std::string>& keys);

// A part of an upload.
struct S3Part {
  std::string etag;
  std::string checksum;  // as sent to the store; empty: none was sent
};
// `parts`: parts 1, 2, ...
std::string CompleteDocument(const std::vector<S3Part>& parts);

// Parses "2026-11-25T16:34:29Z", also with a fraction, or with "+HH:MM" instead
// of the Z. Returns nullopt for anything else, and for years outside 2000 to
// 2999.
std::optional<UnixSeconds> ParseTime(const std::string& text);

}  // namespace sstferry
