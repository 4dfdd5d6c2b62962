// Parses and writes the XML documents of S3. Does no I/O. A received document
// is untrusted: its size is checked before it is parsed, and each field has a
// maximum size. Reads no DTD, and replaces only the five predefined entities of
// XML.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/archive/sigv4.h"
#include "pipeline/archive/store.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Maximum size of a document. A page of 1000 objects takes about 500 KB.
inline constexpr size_t kMaxXmlBytes = 4u << 20;
inline constexpr uint32_t kMaxUploadIdBytes = 1024;

struct S3Error {
  std::string code;     // "NoSuchKey"; printable, at most 100 bytes
  std::string message;  // printable, at most 500 bytes
  std::string storage_class;  // printable, at most 100 bytes
};
// Parses an error document. Returns false if the document is no error. Servers
// may send an error even with status 200.
bool ParseS3Error(const rocksdb::Slice& xml, S3Error* error);

// All following functions that return a Status return kCorrupt for a document
// of another kind.

struct S3Listing {
  std::vector<ObjectInfo> objects;  // keys include the archive's prefix
  bool truncated = false;
  std::string next_token;
};
[[nodiscard]] rocksdb::Status ParseS3Listing(const rocksdb::Slice& xml,
                                             S3Listing* listing);

[[nodiscard]] rocksdb::Status ParseBegunUpload(const rocksdb::Slice& xml,
                                               std::string* upload_id);
[[nodiscard]] rocksdb::Status ParseCompletedUpload(const rocksdb::Slice& xml);

struct S3Upload {
  std::string key;  // includes the archive's prefix
  std::string upload_id;
  UnixSeconds begun = 0;  // by the store's clock; 0: unknown
};
[[nodiscard]] rocksdb::Status ParseS3Uploads(const rocksdb::Slice& xml,
                                             std::vector<S3Upload>* uploads);

// Parses the answer to a deletion of several keys. If some keys were not
// deleted, sets *error to the error of the first of them, even if this error
// means that the key does not exist. Otherwise, error->code is empty.
[[nodiscard]] rocksdb::Status ParseDeleted(const rocksdb::Slice& xml,
                                           S3Error* error);

// Parses the answer of STS to AssumeRoleWithWebIdentity.
[[nodiscard]] rocksdb::Status ParseAssumedRole(const rocksdb::Slice& xml,
                                               Credentials* credentials);

// Returns a request to delete keys. REQUIRES: no byte in the keys needs
// escaping in XML.
std::string DeleteDocument(const std::vector<std::string>& keys);

// A part of an upload that was put.
struct S3Part {
  std::string etag;
  std::string checksum;  // sent with the part; empty: none was sent
};
// Returns a request to complete an upload with these parts. `parts` begins with
// part 1.
std::string CompleteDocument(const std::vector<S3Part>& parts);

// Parses a time like "2026-11-25T16:34:29Z". The seconds may have a fraction,
// and "+HH:MM" may replace the Z. Returns nullopt for other texts, and for
// years outside of 2000 to 2999.
std::optional<UnixSeconds> ParseTime(const std::string& text);

}  // namespace sstferry
