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
  // No such object: neither the call nor the store's list finds it. Or the
  // upload of this put was removed.
  kAbsent,
  // The key has an object, but the put required that it has none. The object
  // may be from this call: after a lost reply the call is retried.
  kExists,
  // The object was replaced while it was read.
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
  // or its answer does not fit the request, or it lists an object that it does
  // not find.
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

// Maximum number of attempts to read the same bytes while they are wrong: a
// store may return wrong bytes in one read and correct bytes in the next.
inline constexpr int kTriesOfBytes = 3;

// Maximum number of keys of one Delete(), and of one List() of a bucket.
inline constexpr uint32_t kMaxStorePage = 1000;
// Maximum number of keys of a List() by a store that lists in no order.
inline constexpr uint64_t kMaxStoreObjects = 1u << 23;
// Maximum number of pieces of a put. S3 requires at least 5 MiB for each piece
// but the last, and permits at most 5 GiB.
inline constexpr uint32_t kMaxPutPieces = 10'000;

struct ObjectInfo {
  std::string key;
  uint64_t bytes = 0;
  UnixSeconds modified = 0;  // by the store's clock; 0: not reported
  // A list names a storage class from which most stores give nothing back.
  bool is_cold = false;
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
};

struct PutRequest {
  std::string key;
  // All bytes of the object. Each piece is read from its beginning to its end,
  // at most 1 MiB at a time, and again for a retry: a stream must be able to
  // start over. One thread reads at a time, but perhaps not the caller's
  // thread.
  const ByteSource* bytes = nullptr;
  // Gets the SHA-256 of a piece of `bytes`. Called once for each piece, in
  // order, before the piece is first read. If it fails, the put ends with
  // kCaller.
  std::function<rocksdb::Status(uint64_t offset, uint64_t bytes,
                                Sha256Digest* sha256)>
      digest;
  // 0: the object is one piece. Otherwise each piece but the last has this
  // size, and a bucket takes each with a request of its own. Until the object
  // appears, its pieces use space and are in no List().
  uint64_t piece_bytes = 0;
  // Fails with kExists if the key has an object. A store may ignore this flag
  // (archive init finds out); a directory never does.
  bool if_absent = false;
  // Signing time of all attempts. The caller takes it from SigningTime() before
  // it checks what this put confirms. A store that checks signatures refuses
  // attempts more than 15 minutes after this time with kSignatureRefused, even
  // if this process was suspended meanwhile. Not set: each attempt is signed
  // with its own time. For an object of one piece; a directory ignores this
  // field.
  std::optional<UnixSeconds> signed_at;
};

// One client of a store. An object counts as missing only if the list does not
// have it, either: a proxy that has lost its route answers like a store without
// the object, and so do stores that cannot read an object for a moment.
//
// Owner:   the caller; the client must outlive all calls.
// Threads: any, also concurrently.
// Time:    each call retries transient failures (throttled, unreachable, lost
//          connections), with pauses, until the limits of its StoreOptions are
//          reached; Cancel() ends it at once.
// Memory:  a call uses at most 4 MiB in addition to the caller's buffers; a
//          page of a list has at most kMaxStorePage entries, of a directory 64
//          times as many.
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
  // that a file system gives to a file. Needs no room in a directory in which
  // this account has asked before.
  virtual StoreResult Now(UnixSeconds* now) = 0;
  // Returns the time of a signature made now, by this machine's clock. For
  // PutRequest::signed_at.
  virtual UnixSeconds SigningTime() const = 0;

  // Stores an object. kOk: it is durable and matches its digests.
  virtual StoreResult Put(const PutRequest& request) = 0;

  // Passes the bytes to `sink`. After a failure the sink may have received some
  // bytes. An interrupted answer is continued internally, unless the object was
  // replaced meanwhile.
  StoreResult Get(const GetRequest& request, const ObjectSink& sink);

  StoreResult Head(const std::string& key, ObjectInfo* info);

  // Lists objects whose keys begin with `prefix` (empty: all) and sort after
  // `after` (empty: from the beginning), at most one page. A page may be empty
  // and still have `more`. `prefix`: a key, optionally with a slash at its end.
  virtual StoreResult List(const std::string& prefix, const std::string& after,
                           ListPage* page) = 0;

  // Deletes up to kMaxStorePage objects. kOk: none of them exists any more.
  // After a failure any of them may still exist.
  virtual StoreResult Delete(const std::vector<std::string>& keys) = 0;

  // Removes the leftovers of interrupted puts: at most kMaxStorePage uploads
  // that began before `before`, by the store's clock, and whose keys may be
  // removed. If such a put is still running, it fails. A directory does not
  // know the keys of unfinished files: it removes those that were last written
  // before `before`. `before` 0: removes nothing, and succeeds if uploads can
  // be listed.
  virtual StoreResult RemoveUploads(
      UnixSeconds before,
      const std::function<bool(const std::string& key)>& may_remove,
      uint64_t* removed) = 0;

 protected:
  // As Get() and Head(), but return kAbsent without looking into the list.
  virtual StoreResult GetUnproven(const GetRequest& request,
                                  const ObjectSink& sink) = 0;
  virtual StoreResult HeadUnproven(const std::string& key,
                                   ObjectInfo* info) = 0;
  // Calls call(). If it does not find an object that the list has, calls it
  // again, up to kTriesOfBytes times in all, and then returns kDamaged.
  StoreResult CallProven(const std::string& key,
                         const std::function<StoreResult()>& call);
};

// --- helpers -----------------------------------------------------------------

// Calls Put() with bytes in memory.
StoreResult PutBytes(ObjectStore* store, const std::string& key,
                     const rocksdb::Slice& bytes, bool if_absent,
                     std::optional<UnixSeconds> signed_at = {},
                     uint64_t piece_bytes = 0);

// Calls put(offset, piece, sha256) for the pieces of a request, in order, up to
// the first that fails. For stores.
StoreResult PutPieces(
    const PutRequest& request,
    const std::function<StoreResult(uint64_t offset, const ByteSource& piece,
                                    const Sha256Digest& sha256)>& put);

// Gets a whole object of at most `max_bytes` into memory.
StoreResult GetBytes(ObjectStore* store, const std::string& key,
                     uint64_t max_bytes, std::string* bytes);

// Lists page after page, and calls `take` for each, which may move page->next
// forward to leave keys out. Returns kDamaged if the pages do not ascend, or if
// there are more than `max_objects` objects or pages, so that no store can make
// the list endless. Returns the first failure of `take`.
StoreResult ListPages(ObjectStore* store, const std::string& prefix,
                      uint64_t max_objects,
                      const std::function<StoreResult(ListPage* page)>& take);

// Lists all objects. kDamaged as for ListPages().
StoreResult ListAll(ObjectStore* store, const std::string& prefix,
                    uint64_t max_objects, std::vector<ObjectInfo>* objects,
                    uint64_t* foreign = nullptr);

}  // namespace sstferry
