#include "pipeline/archive/s3_xml.h"

#include <cstring>
#include <limits>
#include <pugixml.hpp>

#include "format/end_state.h"
#include "format/hex.h"
#include "format/printable.h"
#include "pipeline/archive/credential_text.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr size_t kMaxRawKeyBytes = 1024;  // the limit of S3
constexpr size_t kMaxTokenBytes = 4096;

Status Wrong(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "the store's answer: " + what);
}

// Parses a document whose root element has the name `root`. Accepts the name
// ...Response for ...Result, because the test server moto uses it.
Status Load(const Slice& xml, const char* root, pugi::xml_document* document,
            pugi::xml_node* node) {
  if (xml.size() > kMaxXmlBytes) {
    return Wrong("expected at most " + std::to_string(kMaxXmlBytes) +
                 " bytes of XML, found " + std::to_string(xml.size()));
  }
  const pugi::xml_parse_result parsed = document->load_buffer(
      xml.data(), xml.size(),
      pugi::parse_minimal | pugi::parse_escapes | pugi::parse_cdata,
      pugi::encoding_utf8);
  if (!parsed) {
    return Wrong("expected <" + std::string(root) + ">, found no XML: " +
                 parsed.description() + " at byte " +
                 std::to_string(parsed.offset));
  }
  *node = document->document_element();
  constexpr char kResult[] = "Result";
  std::string other = root;
  if (other.ends_with(kResult)) {
    other.replace(other.size() - (sizeof(kResult) - 1), std::string::npos,
                  "Response");
  }
  if (std::strcmp(node->name(), root) != 0 && node->name() != other) {
    return Wrong("expected <" + std::string(root) + ">, found <" +
                 Printable(std::string(node->name()).substr(0, 100)) + ">");
  }
  return Status::OK();
}

Status Text(const pugi::xml_node& node, const char* name, size_t max_bytes,
            std::string* out) {
  const char* text = node.child_value(name);
  const size_t n = strnlen(text, max_bytes + 1);
  if (n > max_bytes) {
    return Wrong("<" + std::string(name) + ">: expected at most " +
                 std::to_string(max_bytes) + " bytes, found more");
  }
  out->assign(text, n);
  return Status::OK();
}

Status Number(const pugi::xml_node& node, const char* name, uint64_t max,
              uint64_t* out) {
  std::string text;
  RETURN_IF_ERROR(Text(node, name, 20, &text));
  uint64_t value = 0;
  bool is_number = !text.empty();
  for (const char c : text) {
    const uint64_t digit = static_cast<unsigned char>(c) - '0';
    is_number = is_number && digit <= 9 && value <= (max - digit) / 10;
    value = value * 10 + digit;
  }
  if (!is_number || value > max) {
    return Wrong("<" + std::string(name) + ">: expected a number up to " +
                 std::to_string(max) + ", found '" + Printable(text) + "'");
  }
  *out = value;
  return Status::OK();
}

Status Bool(const pugi::xml_node& node, const char* name, bool* out) {
  std::string text;
  RETURN_IF_ERROR(Text(node, name, 5, &text));
  *out = text == "true";
  return *out || text == "false"
             ? Status::OK()
             : Wrong("<" + std::string(name) +
                     ">: expected true or false, found '" + Printable(text) +
                     "'");
}

// Returns the time of an upload or an object; 0: unreadable.
UnixSeconds TimeOf(const pugi::xml_node& node, const char* name) {
  std::string text;
  if (!Text(node, name, 40, &text).ok()) {
    return 0;
  }
  return ParseTime(text).value_or(0);
}

// Returns true for a storage class whose objects S3 does not return. (In other
// stores, objects of these classes may be readable.)
bool IsColdClass(const char* name) {
  return std::strcmp(name, "GLACIER") == 0 ||
         std::strcmp(name, "DEEP_ARCHIVE") == 0;
}

// Returns true if an object in a list was restored from a cold class.
bool IsRestored(const pugi::xml_node& object) {
  const pugi::xml_node status = object.child("RestoreStatus");
  return status.child_value("RestoreExpiryDate")[0] != '\0' &&
         std::strcmp(status.child_value("IsRestoreInProgress"), "true") != 0;
}

// Decodes a key that the store encoded because of encoding-type=url.
Status Decode(const std::string& encoded, std::string* out) {
  out->clear();
  for (size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] == '+') {
      *out += ' ';
    } else if (encoded[i] != '%') {
      *out += encoded[i];
    } else {
      const auto byte = i + 2 < encoded.size()
                            ? HexByte(encoded[i + 1], encoded[i + 2])
                            : std::nullopt;
      if (!byte.has_value()) {
        return Wrong("a key with an invalid % escape: "
                     "'" + Printable(encoded) + "'");
      }
      *out += static_cast<char>(*byte);
      i += 2;
    }
  }
  return Status::OK();
}

Status Key(const pugi::xml_node& node, bool is_encoded, std::string* key) {
  std::string text;
  RETURN_IF_ERROR(
      Text(node, "Key", kMaxRawKeyBytes * (is_encoded ? 3 : 1), &text));
  if (is_encoded) {
    RETURN_IF_ERROR(Decode(text, key));
  } else {
    *key = text;
  }
  return key->empty() ? Wrong("an empty key") : Status::OK();
}

bool IsEncoded(const pugi::xml_node& root) {
  return std::strcmp(root.child_value("EncodingType"), "url") == 0;
}

std::string Cut(const char* text, size_t max_bytes) {
  return Printable(std::string(text, strnlen(text, max_bytes)));
}

std::string Escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

bool ParseS3Error(const Slice& xml, S3Error* error) {
  pugi::xml_document document;
  pugi::xml_node root;
  if (!Load(xml, "Error", &document, &root).ok()) {
    // STS returns its errors in an ErrorResponse element.
    if (!Load(xml, "ErrorResponse", &document, &root).ok()) {
      return false;
    }
    root = root.child("Error");
  }
  error->code = Cut(root.child_value("Code"), 100);
  error->message = Cut(root.child_value("Message"), 500);
  error->storage_class = Cut(root.child_value("StorageClass"), 100);
  return true;
}

Status ParseS3Listing(const Slice& xml, S3Listing* listing) {
  *listing = {};
  pugi::xml_document document;
  pugi::xml_node root;
  RETURN_IF_ERROR(Load(xml, "ListBucketResult", &document, &root));
  const bool is_encoded = IsEncoded(root);
  RETURN_IF_ERROR(Bool(root, "IsTruncated", &listing->truncated));
  RETURN_IF_ERROR(Text(root, "NextContinuationToken", kMaxTokenBytes,
                       &listing->next_token));
  for (const pugi::xml_node& node : root.children("Contents")) {
    if (listing->objects.size() == kMaxStorePage) {
      return Wrong("a page of more than " + std::to_string(kMaxStorePage) +
                   " objects");
    }
    ObjectInfo& object = listing->objects.emplace_back();
    RETURN_IF_ERROR(Key(node, is_encoded, &object.key));
    RETURN_IF_ERROR(
        Number(node, "Size", std::numeric_limits<int64_t>::max(),
               &object.bytes));
    object.modified = TimeOf(node, "LastModified");
    object.is_cold = IsColdClass(node.child_value("StorageClass"));
    object.is_restored = object.is_cold && IsRestored(node);
  }
  return Status::OK();
}

Status ParseBegunUpload(const Slice& xml, std::string* upload_id) {
  pugi::xml_document document;
  pugi::xml_node root;
  RETURN_IF_ERROR(
      Load(xml, "InitiateMultipartUploadResult", &document, &root));
  RETURN_IF_ERROR(Text(root, "UploadId", kMaxUploadIdBytes, upload_id));
  return upload_id->empty() ? Wrong("no <UploadId>") : Status::OK();
}

Status ParseCompletedUpload(const Slice& xml) {
  pugi::xml_document document;
  pugi::xml_node root;
  return Load(xml, "CompleteMultipartUploadResult", &document, &root);
}

Status ParseS3Uploads(const Slice& xml, std::vector<S3Upload>* uploads) {
  uploads->clear();
  pugi::xml_document document;
  pugi::xml_node root;
  RETURN_IF_ERROR(Load(xml, "ListMultipartUploadsResult", &document, &root));
  const bool is_encoded = IsEncoded(root);
  for (const pugi::xml_node& node : root.children("Upload")) {
    if (uploads->size() == kMaxStorePage) {
      return Wrong("a page of more than " + std::to_string(kMaxStorePage) +
                   " uploads");
    }
    S3Upload& upload = uploads->emplace_back();
    RETURN_IF_ERROR(Key(node, is_encoded, &upload.key));
    RETURN_IF_ERROR(
        Text(node, "UploadId", kMaxUploadIdBytes, &upload.upload_id));
    upload.begun = TimeOf(node, "Initiated");
    if (upload.upload_id.empty()) {
      return Wrong("an <Upload> without an <UploadId>");
    }
  }
  return Status::OK();
}

Status ParseDeleted(const Slice& xml, S3Error* error) {
  *error = {};
  pugi::xml_document document;
  pugi::xml_node root;
  RETURN_IF_ERROR(Load(xml, "DeleteResult", &document, &root));
  const pugi::xml_node node = root.child("Error");
  if (node) {
    error->code = Cut(node.child_value("Code"), 100);
    error->message = Cut(node.child_value("Key"), 500) + ": " +
                     Cut(node.child_value("Message"), 500);
    if (error->code.empty()) {
      error->code = "Unknown";
    }
  }
  return Status::OK();
}

Status ParseAssumedRole(const Slice& xml, Credentials* credentials) {
  *credentials = {};
  pugi::xml_document document;
  pugi::xml_node root;
  RETURN_IF_ERROR(
      Load(xml, "AssumeRoleWithWebIdentityResponse", &document, &root));
  const pugi::xml_node node =
      root.child("AssumeRoleWithWebIdentityResult").child("Credentials");
  std::string expiration;
  RETURN_IF_ERROR(Text(node, "AccessKeyId", kMaxAccessKeyIdBytes,
                       &credentials->access_key_id));
  RETURN_IF_ERROR(Text(node, "SecretAccessKey", kMaxSecretBytes,
                       &credentials->secret_access_key));
  RETURN_IF_ERROR(Text(node, "SessionToken", kMaxSessionTokenBytes,
                       &credentials->session_token));
  RETURN_IF_ERROR(Text(node, "Expiration", 40, &expiration));
  return FinishCredentials(expiration, credentials);
}

std::string DeleteDocument(const std::vector<std::string>& keys) {
  std::string xml = "<Delete><Quiet>true</Quiet>";
  for (const std::string& key : keys) {
    xml += "<Object><Key>" + key + "</Key></Object>";
  }
  return xml + "</Delete>";
}

std::string CompleteDocument(const std::vector<S3Part>& parts) {
  std::string xml = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < parts.size(); ++i) {
    xml += "<Part><PartNumber>" + std::to_string(i + 1) +
           "</PartNumber><ETag>" + Escape(parts[i].etag) + "</ETag>" +
           (parts[i].checksum.empty() ? ""
                                      : "<ChecksumSHA256>" +
                                            Escape(parts[i].checksum) +
                                            "</ChecksumSHA256>") +
           "</Part>";
  }
  return xml + "</CompleteMultipartUpload>";
}

std::optional<UnixSeconds> ParseTime(const std::string& text) {
  const auto digits = [&](size_t at, size_t n) {
    int64_t value = 0;
    for (size_t i = at; i < at + n; ++i) {
      if (i >= text.size() || text[i] < '0' || text[i] > '9') {
        return int64_t{-1};
      }
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  constexpr char kShape[] = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < sizeof(kShape) || text.size() > 40) {
    return std::nullopt;
  }
  for (size_t i = 0; i + 1 < sizeof(kShape); ++i) {
    if (kShape[i] != 'd' && text[i] != kShape[i]) {
      return std::nullopt;
    }
  }
  const int64_t year = digits(0, 4);
  const int64_t month = digits(5, 2);
  const int64_t day = digits(8, 2);
  const int64_t hour = digits(11, 2);
  const int64_t minute = digits(14, 2);
  const int64_t second = digits(17, 2);
  if (year < 2000 || year > 2999 || month < 1 || month > 12 || day < 1 ||
      day > 31 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
      second < 0 || second > 60) {
    return std::nullopt;
  }
  size_t at = sizeof(kShape) - 1;
  if (text[at] == '.') {
    do {
      ++at;
    } while (at < text.size() && text[at] >= '0' && text[at] <= '9');
  }
  int64_t offset_seconds = 0;
  if (text.substr(at) != "Z") {
    const int64_t hours = digits(at + 1, 2);
    const int64_t minutes = digits(at + 4, 2);
    if (text.size() != at + 6 || (text[at] != '+' && text[at] != '-') ||
        text[at + 3] != ':' || hours < 0 || hours > 23 || minutes < 0 ||
        minutes > 59) {
      return std::nullopt;
    }
    offset_seconds = (hours * 60 + minutes) * 60 * (text[at] == '-' ? -1 : 1);
  }
  // Counts the days since 1970-01-01. A year begins in March here.
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
  const int64_t days =
      y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - 719'468;
  return ((days * 24 + hour) * 60 + minute) * 60 + second - offset_seconds;
}

}  // namespace sstferry
