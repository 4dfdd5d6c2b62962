// A store of objects: what an archive lies in. A bucket (s3_store.h) or a
// directory (directory_store.h) implements it.
//
// An object is bytes under a key. It appears whole or not at all, is never
// changed, and can only be replaced or deleted. Keys are relative to the
// archive's place, and `/` in them has no meaning but for people.
//
// What a store answers is never trusted: every length is bounded before it is
// believed, a key out of a list is one that IsStoreKey() accepts, and bytes may
// be others than those that were put. Who reads them checks digests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/byte_source.h"
#include "pipeline/base/sha256.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Says how a call ended. Decisions use this, never a message.
enum class StoreCode : uint8_t {
  kOk,
  // No such object or upload.
  kAbsent,
  // The key has an object, and the put was to make one only where there is
  // none. It may be this call's own: an answer that is lost is asked for again.
  kExists,
  // The object is another one than the version that was asked for.
  kOtherVersion,
  // The store found the signature too old or too new: the message has both
  // clocks. Or PutRequest::signed_at was too long ago.
  kSignatureRefused,
  // The credentials may not do that, or there are none, or they are wrong.
  kDenied,
  // The store still asks for fewer requests when the time for tries is up.
  kThrottled,
  // No answer, or the store failed, until the time for tries was up. A change
  // may have happened, or may still happen.
  kUnreachable,
  // The store received other bytes than the digest names (nothing was stored),
  // or its answer is not one to what was asked.
  kDamaged,
  kNoSpace,
  // The store does not know the call, or not with this condition.
  kUnsupported,
  // Another client has the lock.
  kLocked,
  // The caller's own sink or bytes failed: `status` is theirs.
  kCaller,
  // Cancel() was called.
  kCancelled,
  kInternal,
};
const char* StoreCodeName(StoreCode code);  // "ABSENT", ...

struct [[nodiscard]] StoreResult {
  StoreCode code = StoreCode::kOk;
  // OK exactly if `code` is. The message says what was asked of which object,
  // and the store's words. Carries an end state: kRefused for kAbsent, kExists,
  // kUnsupported; kChangedSince for kOtherVersion; kDenied for kDenied and
  // kSignatureRefused; kDeadPeer for kThrottled and kUnreachable; kDeadline for
  // these two once the deadline of all has passed; kCorrupt for kDamaged;
  // kNoSpace; kBusy for kLocked; kCancelled; kInternal.
  rocksdb::Status status;

  bool ok() const { return code == StoreCode::kOk; }
};
StoreResult StoreError(StoreCode code, const rocksdb::Slice& what);

// Seconds since 1970.
using UnixSeconds = int64_t;

inline constexpr uint32_t kMaxStoreKeyBytes = 512;
inline constexpr uint32_t kMaxStoreVersionBytes = 256;
inline constexpr uint32_t kMaxUploadIdBytes = 1024;
// Keys of one List() or Delete().
inline constexpr uint32_t kMaxStorePage = 1000;
// Keys of a List() of a store that lists in no order.
inline constexpr uint64_t kMaxStoreObjects = 1u << 23;
// Parts of an upload; each but the last has at least 5 MiB, for S3.
inline constexpr uint32_t kMaxUploadParts = 10'000;
inline constexpr uint64_t kMinUploadPartBytes = 5u << 20;
// Larger objects are uploaded in parts.
inline constexpr uint64_t kMaxPutBytes = 5ull << 30;

// Returns true for 1 to 512 bytes of A-Z a-z 0-9 _ . - in parts between single
// slashes, none of which begins with a dot. So a key never leads out of a
// directory, and every signature of it is the same.
bool IsStoreKey(const rocksdb::Slice& key);

// Says which bytes an object had when it was looked at (S3: its ETag). Opaque;
// no digest of the bytes.
using ObjectVersion = std::string;

struct ObjectInfo {
  std::string key;
  uint64_t bytes = 0;
  ObjectVersion version;      // empty: the store did not say
  UnixSeconds modified = 0;   // for people only: some stores answer old times
};

struct ListPage {
  // Keys ascend, bytewise. A store that lists in no order gives all at once.
  std::vector<ObjectInfo> objects;
  bool more = false;                // after the last of `objects`, or `next`
  // Where the next page begins: pass it as `after`. Set if `more`.
  std::string next;
  // Names that IsStoreKey() refuses: nobody's of us. They are left out.
  uint64_t foreign = 0;
};

// Takes an object's bytes in order, each once. Its failure ends the call with
// kCaller.
using ObjectSink = std::function<rocksdb::Status(const rocksdb::Slice& bytes)>;

struct GetRequest {
  std::string key;
  uint64_t offset = 0;
  // Exactly so many; an object that ends before is kDamaged. Not set: all that
  // follow, of which there may be max_bytes, else kDamaged before a byte.
  std::optional<uint64_t> bytes;
  uint64_t max_bytes = 64u << 20;
  // Not empty: only of this version, otherwise kOtherVersion.
  ObjectVersion version;
};

struct PutRequest {
  std::string key;
  // All of an object, or of a part. Read in order from its beginning to its end
  // in pieces of at most 1 MiB, and for another try from its beginning again:
  // so a source that is a stream from elsewhere must be able to start over.
  // From one thread at a time, not always the caller's.
  const ByteSource* bytes = nullptr;
  Sha256Digest sha256 = {};
  // kExists where there is an object. A store may ignore it (archive init finds
  // out); a directory never does.
  bool if_absent = false;
  // All tries are signed as if at this moment, which the caller took by
  // SigningTime() before it looked at what it is about to confirm. A store that
  // checks signatures refuses a try that comes 15 minutes later, however long
  // this process was asleep in between: kSignatureRefused. Not set: each try is
  // signed when it is made. A directory ignores it.
  std::optional<UnixSeconds> signed_at;
};

// A part that a store has.
struct UploadedPart {
  uint32_t number = 0;  // from 1
  uint64_t bytes = 0;
  ObjectVersion version;
  std::string checksum = {};  // as the store was told it; empty: it was not
};

struct UploadInfo {
  std::string key;
  std::string upload_id;
  UnixSeconds begun = 0;  // as the store says
};

// Where one part of an upload lies in its object.
struct PartPlace {
  std::string key;
  std::string upload_id;
  uint32_t number = 0;   // 1 to kMaxUploadParts
  uint64_t offset = 0;   // of its first byte in the object
};

// A lock that a client has until the object is destroyed or the process ends.
class StoreLock {
 public:
  virtual ~StoreLock() = default;
};

// One client of a store.
//
// Owner:   the caller; it outlives all calls and locks.
// Threads: any, all calls at once.
// Time:    each call tries again what may pass (throttled, unreachable, lost
//          connections), with waits, until the limits of its StoreOptions are
//          reached, and Cancel() ends it at once.
// Memory:  a call holds at most 4 MiB besides what the caller gives it; a page
//          of a list is at most kMaxStorePage entries.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Makes current and later calls end with kCancelled. From any thread.
  virtual void Cancel() = 0;

  // "s3://bucket/fleet/orders" or "/mnt/nfs/fleet/orders", for people.
  virtual const std::string& place() const = 0;
  std::string Describe(const std::string& key) const {
    return place() + "/" + key;
  }

  // Refuses a place in which something else than an archive lies: kExists. For a
  // directory; a prefix of a bucket is empty if its list is.
  virtual StoreResult CheckUnused() { return {}; }

  // The store's own clock, in whole seconds: a Date header, or the time that a
  // file system gives to a new file.
  virtual StoreResult Now(UnixSeconds* now) = 0;
  // The time that a signature made now would carry: this machine's clock. For
  // PutRequest::signed_at.
  virtual UnixSeconds SigningTime() const = 0;

  // Stores an object of at most kMaxPutBytes. kOk: it is durable and has the
  // bytes of the digest.
  virtual StoreResult Put(const PutRequest& request) = 0;

  // Gives the bytes to `sink`. *info, unless null, gets the whole object's size
  // and version, before the first byte. After a failure the sink may have got a
  // part of them. A broken answer is continued inside, for the same version.
  virtual StoreResult Get(const GetRequest& request, const ObjectSink& sink,
                          ObjectInfo* info = nullptr) = 0;

  virtual StoreResult Head(const std::string& key, ObjectInfo* info) = 0;

  // Returns objects whose keys begin with `prefix` (empty: all) and come behind
  // `after` (empty: from the beginning), at most kMaxStorePage. A page may be
  // empty and still have `more`. `prefix`: a key, or one with a slash behind.
  virtual StoreResult List(const std::string& prefix, const std::string& after,
                           ListPage* page) = 0;

  // Deletes up to kMaxStorePage objects. kOk: none of them is there. After a
  // failure any of them may be.
  virtual StoreResult Delete(const std::vector<std::string>& keys) = 0;

  // --- an object in parts ----------------------------------------------------
  // The object appears with CompleteUpload(). Until then the parts take room
  // and are in no List().
  virtual StoreResult BeginUpload(const std::string& key,
                                  std::string* upload_id) = 0;
  // Stores a part, in place of an earlier one with the number. `bytes` is read
  // as in PutRequest.
  virtual StoreResult PutPart(const PartPlace& place, const ByteSource& bytes,
                              const Sha256Digest& sha256,
                              UploadedPart* part) = 0;
  // All parts of an upload, by number. kAbsent: there is no such upload.
  virtual StoreResult ListParts(const std::string& key,
                                const std::string& upload_id,
                                std::vector<UploadedPart>* parts) = 0;
  // Makes the object of parts 1, 2, ... kExists as in Put(). kAbsent: there is
  // no such upload, and no object that it may have become.
  virtual StoreResult CompleteUpload(const std::string& key,
                                     const std::string& upload_id,
                                     const std::vector<UploadedPart>& parts,
                                     bool if_absent) = 0;
  // Removes an upload and its parts. kOk if there is none.
  virtual StoreResult AbortUpload(const std::string& key,
                                  const std::string& upload_id) = 0;
  // Uploads whose keys begin with `prefix`, at most kMaxStorePage of them, the
  // first by key. Who wants all aborts what was listed, and asks again.
  virtual StoreResult ListUploads(const std::string& prefix,
                                  std::vector<UploadInfo>* uploads) = 0;

  // --- locks -----------------------------------------------------------------
  // True if Lock() works: for a directory. (Over NFS a lock may be lost.)
  virtual bool has_locks() const = 0;
  // Locks the object `key`, alone or with others, which must be there
  // (kAbsent). Waits for others until the limits of StoreOptions: kLocked.
  // kUnsupported: no locks here.
  virtual StoreResult Lock(const std::string& key, bool exclusive,
                           std::unique_ptr<StoreLock>* lock) = 0;
};

// --- on top of it ------------------------------------------------------------

// Put() of bytes in memory.
StoreResult PutBytes(ObjectStore* store, const std::string& key,
                     const rocksdb::Slice& bytes, bool if_absent,
                     std::optional<UnixSeconds> signed_at = {});

// Get() of a whole object of at most `max_bytes` into memory.
StoreResult GetBytes(ObjectStore* store, const std::string& key,
                     uint64_t max_bytes, std::string* bytes,
                     ObjectInfo* info = nullptr);

// All pages of List(). kDamaged if there are more than `max_objects`.
StoreResult ListAll(ObjectStore* store, const std::string& prefix,
                    uint64_t max_objects, std::vector<ObjectInfo>* objects,
                    uint64_t* foreign = nullptr);

}  // namespace sstferry
