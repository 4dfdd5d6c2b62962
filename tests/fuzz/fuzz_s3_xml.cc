// Input: a document that a store may return. A parser must stay within its
// limits, and so must the values that it accepts.
#include <cstdlib>

#include "pipeline/archive/credential_text.h"
#include "pipeline/archive/s3_xml.h"

namespace {

void Must(bool holds) {
  if (!holds) {
    abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  const rocksdb::Slice xml(reinterpret_cast<const char*>(data), size);
  S3Error error;
  if (ParseS3Error(xml, &error)) {
    Must(error.code.size() <= 300 && error.message.size() <= 1500);
  }
  S3Listing listing;
  if (ParseS3Listing(xml, &listing).ok()) {
    Must(listing.objects.size() <= kMaxStorePage);
    for (const ObjectInfo& object : listing.objects) {
      Must(!object.key.empty() && object.key.size() <= 3 * 1024);
    }
  }
  std::string upload_id;
  if (ParseBegunUpload(xml, &upload_id).ok()) {
    Must(!upload_id.empty() && upload_id.size() <= kMaxUploadIdBytes);
  }
  ParseCompletedUpload(xml).PermitUncheckedError();
  // The document that is sent back includes the received ETags.
  S3Error ignored;
  static_cast<void>(
      ParseS3Error(CompleteDocument({S3Part{xml.ToString(), ""}}), &ignored));
  std::vector<S3Upload> uploads;
  if (ParseS3Uploads(xml, &uploads).ok()) {
    Must(uploads.size() <= kMaxStorePage);
    for (const S3Upload& upload : uploads) {
      Must(upload.upload_id.size() <= kMaxUploadIdBytes);
    }
  }
  ParseDeleted(xml, &error).PermitUncheckedError();
  Credentials credentials;
  if (ParseAssumedRole(xml, &credentials).ok()) {
    Must(!credentials.access_key_id.empty() &&
         credentials.session_token.size() <= kMaxSessionTokenBytes);
  }
  return 0;
}
