// Interface of a store of objects that contains an archive. A store is a bucket
// (s3_store.h) or a directory (directory_store.h).
//
// An object has a key and bytes. It appears completely or not at all. Its bytes
// never change, but another put can replace it, and it can be deleted. Keys are
// relative to the archive's address. A `/` in a key has no meaning; it only
// helps human readers.
//
// The answers of a store are not trusted. Each length has a limit, listed keys
// must pass IsStoreKey(), and the received bytes may differ from the bytes that
// were put. Callers that read an object check its digests.
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

// Result of a call. Callers use this code for decisions, never a message.
enum class StoreCode : uint8_t {
  kOk,
  // There is no such object: neither the call nor the store's list finds it. Or
  // something removed the parts of this upload during the put.
  kAbsent,
  // An object with this key exists, but the put required that there is none.
  // This call may have stored the object itself: a call is retried if its reply
  // was lost.
  kExists,
  // The object was replaced while it was read.
  kOtherVersion,
  // The store rejected the signature as too old or too new. The message has the
  // times of both clocks. Or too much time has passed since
  // PutRequest::signed_at.
  kSignatureRefused,
  // The credentials are missing, wrong, or do not allow the call.
  kDenied,
  // The store still throttled requests when the time for retries ended.
  kThrottled,
  // The store did not answer, or failed, until the time for retries ended. Or
  // the answer to a call that reads no object does not fit the request: a proxy
  // may have sent it. A requested change may have been made, or may still be
  // made later.
  kUnreachable,
  // The store received bytes that do not match their digest, and stored
  // nothing. Or the bytes of an object do not fit the request. Or the store
  // lists an object that it cannot find.
  kDamaged,
  kNoSpace,
  // The store does not support the call, or does not support its condition.
  kUnsupported,
  // The object is in a storage class from which the store returns no bytes.
  kCold,
  // The address no longer leads to the place that this client uses, or this is
  // not known. The put may have stored the object in that place, so it does not
  // count as stored, even if this client can read it. Only a put into a
  // directory returns this.
  kMoved,
  // The sink or the byte source of the caller failed. `status` is its error.
  kCaller,
  // Cancel() was called.
  kCancelled,
  kInternal,
};

struct [[nodiscard]] StoreResult {
  StoreCode code = StoreCode::kOk;
  // OK exactly if `code` is kOk. The message names the request and the object,
  // and has the store's answer. The end state is kRefused for kAbsent, kExists,
  // kUnsupported, kCold and kMoved; kChangedSince for kOtherVersion; kDenied
  // for kDenied and kSignatureRefused; kDeadPeer for kThrottled and
  // kUnreachable, or kDeadline after the deadline of all calls; kCorrupt for
  // kDamaged. For kNoSpace, kCancelled and kInternal, it has the same name. For
  // kCaller, `status` is the caller's error. For kMoved, if the address cannot
  // be looked up, it is the end state of that failure.
  rocksdb::Status status;

  bool ok() const { return code == StoreCode::kOk; }
};
StoreResult StoreError(StoreCode code, const rocksdb::Slice& what);

// Seconds since 1970.
using UnixSeconds = int64_t;

// Maximum number of attempts to read bytes while they are wrong. A store may
// return wrong bytes in one read, and correct bytes in the next read.
inline constexpr int kTriesOfBytes = 3;

// Maximum number of keys of one Delete(), and of one page of a bucket's List().
inline constexpr uint32_t kMaxStorePage = 1000;
// Maximum number of keys that List() returns if the store lists in no order.
inline constexpr uint64_t kMaxStoreObjects = 1u << 23;
// Maximum number of pieces of a put. S3 requires a size of 5 MiB to 5 GiB for
// each piece. Only the last piece may be smaller.
inline constexpr uint32_t kMaxPutPieces = 10'000;

struct ObjectInfo {
  std::string key;
  uint64_t bytes = 0;
  UnixSeconds modified = 0;  // by the store's clock; 0: not reported
  // The list names a storage class from which most stores return no bytes.
  bool is_cold = false;
  // The object is cold, but was restored: for some days, the store returns its
  // bytes. Only some stores list this.
  bool is_restored = false;
};

struct ListPage {
  // In ascending order of keys, bytewise. If a store lists in no order, one
  // page has all objects.
  std::vector<ObjectInfo> objects;
  bool more = false;  // further keys follow
  // Value of `after` that gets the next page. Set if `more` is true.
  std::string next;
  // Number of names that IsStoreKey() refuses. sstferry did not write these
  // objects, and `objects` does not contain them.
  uint64_t foreign = 0;
};

// Receives the bytes of an object in order, each byte once. If the sink fails,
// the call returns kCaller.
using ObjectSink = std::function<rocksdb::Status(const rocksdb::Slice& bytes)>;

struct GetRequest {
  std::string key;
  uint64_t offset = 0;
  // Exact number of bytes to read. If the object is too short, the call returns
  // kDamaged. If not set, reads all bytes from `offset` on. If these are more
  // than max_bytes, returns kDamaged before any byte is passed to the sink.
  std::optional<uint64_t> bytes;
  uint64_t max_bytes = 64u << 20;
};

struct PutRequest {
  std::string key;
  // All bytes of the object. The store reads each piece from its beginning to
  // its end, at most 1 MiB at a time. For a retry, it reads the piece again, so
  // a stream must be able to start over. Only one thread reads at a time,
  // perhaps not the caller's.
  const ByteSource* bytes = nullptr;
  // Gets the SHA-256 of a piece of `bytes`. The store calls this function once
  // for each piece, in order, before it first reads the piece. If the function
  // fails, the put returns kCaller.
  std::function<rocksdb::Status(uint64_t offset, uint64_t bytes,
                                Sha256Digest* sha256)>
      digest;
  // Size of each piece except the last one; 0: the object is one piece. A
  // bucket takes one request for each piece. Until the object appears, its
  // pieces use space, but no List() shows them.
  uint64_t piece_bytes = 0;
  // Fails with kExists if an object with this key exists. A store may ignore
  // this flag (`archive init` finds this out), but a directory never ignores
  // it.
  bool if_absent = false;
  // Time with which all attempts are signed. The caller gets it from
  // SigningTime(), and then checks that the put is still allowed. A store that
  // checks signatures refuses an attempt more than 15 minutes after this time
  // with kSignatureRefused, even if this process was suspended in between. If
  // not set, each attempt is signed with its own time. Only for an object of
  // one piece. A directory ignores this field.
  std::optional<UnixSeconds> signed_at;
};

// A client of a store. An object counts as missing only if the store's list
// does not contain it, either. The answer to one request is no proof: a proxy
// without a route to the store, or a store that cannot read an object for a
// moment, answers as if the object were missing.
//
// Owner:   the caller; the client must outlive all calls.
// Threads: any, also concurrently.
// Time:    each call retries transient failures (throttled, unreachable, lost
//          connections), with pauses, until it reaches the limits of its
//          StoreOptions; Cancel() ends the call at once.
// Memory:  a call uses at most 4 MiB in addition to the caller's buffers. A
//          page of a bucket's list has at most kMaxStorePage entries, a page
//          of a directory's list 64 times as many.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Ends current and later calls with kCancelled. Any thread may call this
  // function.
  virtual void Cancel() = 0;

  // Returns the address of the store for messages: "s3://bucket/fleet/orders"
  // or "/mnt/nfs/fleet/orders".
  virtual const std::string& place() const = 0;
  std::string Describe(const std::string& key) const {
    return place() + "/" + key;
  }

  // Returns kExists if the address contains something that does not belong to
  // an archive. Only a directory checks this. A bucket always returns kOk.
  virtual StoreResult CheckUnused() { return {}; }

  // Reads the store's own clock, in whole seconds. Uses a Date header, or the
  // time that the file system sets on a file. In a directory, only the first
  // call of an account needs free space.
  virtual StoreResult Now(UnixSeconds* now) = 0;
  // Returns the time of this machine's clock, with which a request would be
  // signed now. For PutRequest::signed_at.
  virtual UnixSeconds SigningTime() const = 0;

  // Stores an object. kOk: the object is durable and matches its digests.
  virtual StoreResult Put(const PutRequest& request) = 0;

  // Passes the bytes of an object to `sink`. If the call fails, the sink may
  // have received some of them. If an answer is interrupted, requests the
  // remaining bytes, unless the object was replaced.
  StoreResult Get(const GetRequest& request, const ObjectSink& sink);

  StoreResult Head(const std::string& key, ObjectInfo* info);

  // Lists one page of the objects whose keys begin with `prefix` (empty: all)
  // and sort after `after` (empty: from the beginning). `prefix` is a key,
  // optionally with a slash at its end. A page may be empty although `more` is
  // true.
  virtual StoreResult List(const std::string& prefix, const std::string& after,
                           ListPage* page) = 0;

  // Deletes up to kMaxStorePage objects. kOk: none of them exists any more. If
  // the call fails, any of them may still exist.
  virtual StoreResult Delete(const std::vector<std::string>& keys) = 0;

  // Removes what interrupted puts left: at most kMaxStorePage uploads that
  // began before `before`, by the store's clock, and for whose keys
  // may_remove() returns true. If such a put is still running, it fails. A
  // directory does not know the keys of unfinished files, so it removes all
  // that were last written before `before`. If `before` is 0, removes nothing,
  // and succeeds if uploads can be listed.
  virtual StoreResult RemoveUploads(
      UnixSeconds before,
      const std::function<bool(const std::string& key)>& may_remove,
      uint64_t* removed) = 0;

 protected:
  // Like Get() and Head(), but return kAbsent without a look at the list.
  virtual StoreResult GetUnproven(const GetRequest& request,
                                  const ObjectSink& sink) = 0;
  virtual StoreResult HeadUnproven(const std::string& key,
                                   ObjectInfo* info) = 0;
  // Calls call(). If it does not find an object that the store lists, calls it
  // again, up to kTriesOfBytes times in all. Then returns kDamaged.
  StoreResult CallProven(const std::string& key,
                         const std::function<StoreResult()>& call);
};

// --- helpers -----------------------------------------------------------------

// Calls read() until its result is not kCorrupt, at most kTriesOfBytes times.
// Returns the last result.
[[nodiscard]] rocksdb::Status RetryIfCorrupt(
    const std::function<rocksdb::Status()>& read);

// Puts an object with these bytes.
StoreResult PutBytes(ObjectStore* store, const std::string& key,
                     const rocksdb::Slice& bytes, bool if_absent,
                     std::optional<UnixSeconds> signed_at = {},
                     uint64_t piece_bytes = 0);

// Calls put(offset, piece, sha256) for each piece of a request, in order, until
// a call fails. Implementations of Put() use this function.
StoreResult PutPieces(
    const PutRequest& request,
    const std::function<StoreResult(uint64_t offset, const ByteSource& piece,
                                    const Sha256Digest& sha256)>& put);

// Reads a whole object of at most `max_bytes` bytes into memory.
StoreResult GetBytes(ObjectStore* store, const std::string& key,
                     uint64_t max_bytes, std::string* bytes);

// Lists page after page, and calls take() for each page. To skip keys, take()
// may move page->next forward; to end the list, it may set page->more to false.
// Returns the first failure of take(). Returns kDamaged if the pages do not
// ascend, or if there are more than `max_objects` objects or pages. So no store
// can make the list endless.
StoreResult ListPages(ObjectStore* store, const std::string& prefix,
                      uint64_t max_objects,
                      const std::function<StoreResult(ListPage* page)>& take);

// Lists all objects under a prefix. Returns kDamaged like ListPages().
StoreResult ListAll(ObjectStore* store, const std::string& prefix,
                    uint64_t max_objects, std::vector<ObjectInfo>* objects,
                    uint64_t* foreign = nullptr);

}  // namespace sstferry
