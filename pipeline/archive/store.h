// Interface of an object store that contains an archive. Implemented by a
// bucket (s3_store.h) and by a directory (directory_store.h).
//
// An object is bytes under a key. It appears complete or not at all; its bytes
// never change, but it can be replaced or deleted. Keys are relative to the
// archive's address; `/` in a key only helps human readers.
//
// Answers of a store are not trusted: every length is bounded before use,
// listed keys must pass IsStoreKey(), and the received bytes may differ from
// those that were put. Readers check digests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/archive.h"
#include "format/byte_source.h"
#include "pipeline/base/sha256.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Result of a call. Callers decide by this code, never by a message.
enum class StoreCode : uint8_t {
  kOk,
  // No such object or upload.
  kAbsent,
  // The key has an object, but the put required that it has none. The object
  // may be from this call: after a lost reply the call is retried.
  kExists,
  // The object does not have the requested version.
  kOtherVersion,
  // The store found the signature too old or too new: the message has both
  // clocks. Or PutRequest::signed_at was too long ago.
  kSignatureRefused,
  // The credentials are missing, wrong, or do not allow the call.
  kDenied,
  // The store still throttles requests when the time for retries is over.
  kThrottled,
  // The store did not answer, or failed, until the time for retries was over.
  // The requested change may have happened, or may still happen.
  kUnreachable,
  // The store received bytes that do not match the digest (nothing was stored),
  // or its answer does not fit the request.
  kDamaged,
  kNoSpace,
  // The store does not support the call, or not with this condition.
  kUnsupported,
  // The caller's sink or byte source failed; `status` is its error.
  kCaller,
  // Cancel() was called.
  kCancelled,
  kInternal,
};
const char* StoreCodeName(StoreCode code);  // "ABSENT", ...

struct [[nodiscard]] StoreResult {
  StoreCode code = StoreCode::kOk;
  // OK exactly if `code` is kOk. The message names the request, the object, and
  // the store's answer. Carries an end state: kRefused for kAbsent, kExists,
  // kUnsupported; kChangedSince for kOtherVersion; kDenied for kDenied and
  // kSignatureRefused; kDeadPeer for kThrottled and kUnreachable, or kDeadline
  // once the deadline of all calls has passed; kCorrupt for kDamaged; kNoSpace;
  // kCancelled; kInternal.
  rocksdb::Status status;

  bool ok() const { return code == StoreCode::kOk; }
};
StoreResult StoreError(StoreCode code, const rocksdb::Slice& what);

// Seconds since 1970.
using UnixSeconds = int64_t;

inline constexpr uint32_t kMaxStoreVersionBytes = 256;
inline constexpr uint32_t kMaxUploadIdBytes = 1024;
// Maximum number of keys of one List() or Delete().
inline constexpr uint32_t kMaxStorePage = 1000;
// Maximum number of keys of a List() by a store that lists in no order.
inline constexpr uint64_t kMaxStoreObjects = 1u << 23;
// Maximum number of parts of an upload; S3 requires at least 5 MiB for each but
// the last.
inline constexpr uint32_t kMaxUploadParts = 10'000;
inline constexpr uint64_t kMinUploadPartBytes = 5u << 20;
// Larger objects are uploaded in parts.
inline constexpr uint64_t kMaxPutBytes = 5ull << 30;

// Identifies the bytes that an object had when it was looked up (S3: its ETag).
// Opaque; not a digest of the bytes.
using ObjectVersion = std::string;

struct ObjectInfo {
  std::string key;
  uint64_t bytes = 0;
  ObjectVersion version;      // empty: not reported
  UnixSeconds modified = 0;   // for display only: some stores report old times
};

struct ListPage {
  // Ascending by key, bytewise. A store that lists in no order returns all
  // objects at once.
  std::vector<ObjectInfo> objects;
  bool more = false;                // there are keys after `objects`
  // Pass this as `after` to get the next page. Set if `more`.
  std::string next;
  // Number of names that IsStoreKey() refuses: not written by sstferry, and
  // left out.
  uint64_t foreign = 0;
};

// Receives an object's bytes in order, each byte once. If it fails, the call
// ends with kCaller.
using ObjectSink = std::function<rocksdb::Status(const rocksdb::Slice& bytes)>;

struct GetRequest {
  std::string key;
  uint64_t offset = 0;
  // Exact number of bytes; kDamaged if the object is too short. Not set: all
  // bytes from `offset` on; kDamaged, before any byte is passed, if they exceed
  // max_bytes.
  std::optional<uint64_t> bytes;
  uint64_t max_bytes = 64u << 20;
  // Empty: any version. Otherwise only this version is read, and an object with
  // another one gives kOtherVersion.
  ObjectVersion version;
};

struct PutRequest {
  std::string key;
  // All bytes of an object or of a part. They are read from beginning to end in
  // pieces of at most 1 MiB, and again from the beginning for a retry: a stream
  // must be able to start over. One thread reads at a time, but perhaps not the
  // caller's thread.
  const ByteSource* bytes = nullptr;
  Sha256Digest sha256 = {};
  // Fails with kExists if the key has an object. A store may ignore this flag
  // (archive init finds out); a directory never does.
  bool if_absent = false;
  // Signing time of all attempts. The caller takes it from SigningTime() before
  // it checks what this put confirms. A store that checks signatures refuses
  // attempts more than 15 minutes after this time with kSignatureRefused, even
  // if this process was suspended meanwhile. Not set: each attempt is signed
  // with its own time. A directory ignores this field.
  std::optional<UnixSeconds> signed_at;
};

// A part of an upload in a store.
struct UploadedPart {
  uint32_t number = 0;  // from 1
  uint64_t bytes = 0;
  ObjectVersion version;
  std::string checksum = {};  // as sent to the store; empty: none was sent
};

struct UploadInfo {
  std::string key;
  std::string upload_id;
  UnixSeconds begun = 0;  // when it began, by the store's clock
};

// Position of a part in an upload and in its object.
struct PartPlace {
  std::string key;
  std::string upload_id;
  uint32_t number = 0;   // 1 to kMaxUploadParts
  uint64_t offset = 0;   // offset in the object
};

// One client of a store.
//
// Owner:   the caller; the client must outlive all calls.
// Threads: any, also concurrently.
// Time:    each call retries transient failures (throttled, unreachable, lost
//          connections), with pauses, until the limits of its StoreOptions are
//          reached; Cancel() ends it at once.
// Memory:  a call uses at most 4 MiB in addition to the caller's buffers; a
//          page of a list has at most kMaxStorePage entries.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Ends current and later calls with kCancelled. May be called from any
  // thread.
  virtual void Cancel() = 0;

  // The store's address for messages: "s3://bucket/fleet/orders" or
  // "/mnt/nfs/fleet/orders".
  virtual const std::string& place() const = 0;
  std::string Describe(const std::string& key) const {
    return place() + "/" + key;
  }

  // Returns kExists if the archive's address contains anything but an archive.
  // Only a directory checks this; a bucket always returns kOk.
  virtual StoreResult CheckUnused() { return {}; }

  // Reads the store's own clock, in whole seconds: a Date header, or the time
  // that a file system gives to a new file.
  virtual StoreResult Now(UnixSeconds* now) = 0;
  // Returns the time of a signature made now, by this machine's clock. For
  // PutRequest::signed_at.
  virtual UnixSeconds SigningTime() const = 0;

  // Stores an object of at most kMaxPutBytes. kOk: it is durable and matches
  // the digest.
  virtual StoreResult Put(const PutRequest& request) = 0;

  // Passes the bytes to `sink`. If `info` is not null, *info receives the size
  // and version of the complete object before the first byte. After a failure
  // the sink may have received some bytes. An interrupted answer is continued
  // internally, with the same version.
  virtual StoreResult Get(const GetRequest& request, const ObjectSink& sink,
                          ObjectInfo* info = nullptr) = 0;

  virtual StoreResult Head(const std::string& key, ObjectInfo* info) = 0;

  // Lists objects whose keys begin with `prefix` (empty: all) and sort after
  // `after` (empty: from the beginning), at most kMaxStorePage. A page may be
  // empty and still have `more`. `prefix`: a key, optionally with a slash at
  // its end.
  virtual StoreResult List(const std::string& prefix, const std::string& after,
                           ListPage* page) = 0;

  // Deletes up to kMaxStorePage objects. kOk: none of them exists any more.
  // After a failure any of them may still exist.
  virtual StoreResult Delete(const std::vector<std::string>& keys) = 0;

  // --- an object in parts ----------------------------------------------------
  // The object appears with CompleteUpload(). Until then the parts use space
  // and are in no List().
  virtual StoreResult BeginUpload(const std::string& key,
                                  std::string* upload_id) = 0;
  // Stores a part, replacing an earlier one with the same number. `bytes` is
  // read as in PutRequest.
  virtual StoreResult PutPart(const PartPlace& place, const ByteSource& bytes,
                              const Sha256Digest& sha256,
                              UploadedPart* part) = 0;
  // Lists all parts of an upload, by number. kAbsent: there is no such upload.
  virtual StoreResult ListParts(const std::string& key,
                                const std::string& upload_id,
                                std::vector<UploadedPart>* parts) = 0;
  // Makes the object from parts 1, 2, ... kExists as for Put(). kAbsent:
  // neither the upload nor an object that it may have become exists.
  virtual StoreResult CompleteUpload(const std::string& key,
                                     const std::string& upload_id,
                                     const std::vector<UploadedPart>& parts,
                                     bool if_absent) = 0;
  // Removes an upload and its parts. kOk if there is none.
  virtual StoreResult AbortUpload(const std::string& key,
                                  const std::string& upload_id) = 0;
  // Lists the uploads whose keys begin with `prefix`, in the order of keys, at
  // most kMaxStorePage. To find all, abort the listed uploads and list again.
  virtual StoreResult ListUploads(const std::string& prefix,
                                  std::vector<UploadInfo>* uploads) = 0;
};

// --- helpers -----------------------------------------------------------------

// Calls Put() with bytes in memory.
StoreResult PutBytes(ObjectStore* store, const std::string& key,
                     const rocksdb::Slice& bytes, bool if_absent,
                     std::optional<UnixSeconds> signed_at = {});

// Gets a whole object of at most `max_bytes` into memory.
StoreResult GetBytes(ObjectStore* store, const std::string& key,
                     uint64_t max_bytes, std::string* bytes,
                     ObjectInfo* info = nullptr);

// Lists all pages. kDamaged if there are more than `max_objects`.
StoreResult ListAll(ObjectStore* store, const std::string& prefix,
                    uint64_t max_objects, std::vector<ObjectInfo>* objects,
                    uint64_t* foreign = nullptr);

}  // namespace sstferry
