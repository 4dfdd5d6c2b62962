#include "pipeline/archive/store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/end_state.h"

namespace sstferry {
namespace {

EndState EndStateOf(StoreCode code) {
  switch (code) {
    case StoreCode::kOk:
      return EndState::kOk;
    case StoreCode::kAbsent:
    case StoreCode::kExists:
    case StoreCode::kUnsupported:
    case StoreCode::kCold:
    case StoreCode::kMoved:
      return EndState::kRefused;
    case StoreCode::kOtherVersion:
      return EndState::kChangedSince;
    case StoreCode::kSignatureRefused:
    case StoreCode::kDenied:
      return EndState::kDenied;
    case StoreCode::kThrottled:
    case StoreCode::kUnreachable:
      return EndState::kDeadPeer;
    case StoreCode::kDamaged:
      return EndState::kCorrupt;
    case StoreCode::kNoSpace:
      return EndState::kNoSpace;
    case StoreCode::kCancelled:
      return EndState::kCancelled;
    case StoreCode::kCaller:
    case StoreCode::kInternal:
      return EndState::kInternal;
  }
  return EndState::kInternal;
}

}  // namespace

StoreResult StoreError(StoreCode code, const rocksdb::Slice& what) {
  return {code, MakeStatus(EndStateOf(code), what)};
}

StoreResult ObjectStore::CallProven(const std::string& key,
                                    const std::function<StoreResult()>& call) {
  StoreResult result;
  for (int tries = 0; tries < kTriesOfBytes; ++tries) {
    result = call();
    if (result.code != StoreCode::kAbsent) {
      return result;
    }
    bool is_listed = false;
    StoreResult list =
        ListPages(this, key, kMaxStoreObjects, [&](ListPage* page) {
          is_listed = std::any_of(page->objects.begin(), page->objects.end(),
                                  [&key](const ObjectInfo& object) {
                                    return object.key == key;
                                  });
          // If the key exists, it is the first name of the list, because all
          // other names that begin with the key sort after it.
          page->more &= page->objects.empty() && page->foreign == 0;
          return StoreResult();
        });
    if (!list.ok()) {
      return list;
    }
    if (!is_listed) {
      return result;
    }
    result = StoreError(StoreCode::kDamaged,
                        SentenceOf(result.status) +
                            "; but the store lists this object, so it exists "
                            "and cannot be read");
  }
  return result;
}

StoreResult ObjectStore::Get(const GetRequest& request,
                             const ObjectSink& sink) {
  bool is_begun = false;
  const ObjectSink watched = [&is_begun, &sink](const rocksdb::Slice& bytes) {
    is_begun = true;
    return sink(bytes);
  };
  return CallProven(request.key, [&] {
    // The sink must receive each byte only once. So a read is not repeated
    // after the sink has received bytes.
    return is_begun ? StoreError(StoreCode::kDamaged,
                                 Describe(request.key) +
                                     ": it was not found any more while it "
                                     "was read")
                    : GetUnproven(request, watched);
  });
}

StoreResult ObjectStore::Head(const std::string& key, ObjectInfo* info) {
  return CallProven(key, [&] { return HeadUnproven(key, info); });
}

rocksdb::Status RetryIfCorrupt(const std::function<rocksdb::Status()>& read) {
  rocksdb::Status status;
  for (int tries = 0; tries < kTriesOfBytes; ++tries) {
    status = read();
    if (EndStateOf(status) != EndState::kCorrupt) {
      break;
    }
  }
  return status;
}

StoreResult PutBytes(ObjectStore* store, const std::string& key,
                     const rocksdb::Slice& bytes, bool if_absent,
                     std::optional<UnixSeconds> signed_at,
                     uint64_t piece_bytes) {
  const SliceSource source(bytes);
  return store->Put(
      {.key = key,
       .bytes = &source,
       .digest =
           [&bytes](uint64_t offset, uint64_t n, Sha256Digest* sha256) {
             *sha256 = Sha256Of(
                 rocksdb::Slice(bytes.data() + offset, static_cast<size_t>(n)));
             return rocksdb::Status::OK();
           },
       .piece_bytes = piece_bytes,
       .if_absent = if_absent,
       .signed_at = signed_at});
}

StoreResult PutPieces(
    const PutRequest& request,
    const std::function<StoreResult(uint64_t offset, const ByteSource& piece,
                                    const Sha256Digest& sha256)>& put) {
  const uint64_t size = request.bytes->size();
  uint64_t at = 0;
  do {
    const uint64_t n = request.piece_bytes == 0
                           ? size
                           : std::min(request.piece_bytes, size - at);
    Sha256Digest sha256;
    if (const rocksdb::Status got = request.digest(at, n, &sha256);
        !got.ok()) {
      return {StoreCode::kCaller, got};
    }
    if (StoreResult stored = put(at, SourcePart(*request.bytes, at, n), sha256);
        !stored.ok()) {
      return stored;
    }
    at += n;
  } while (at < size);
  return {};
}

StoreResult GetBytes(ObjectStore* store, const std::string& key,
                     uint64_t max_bytes, std::string* bytes) {
  bytes->clear();
  return store->Get({.key = key, .bytes = {}, .max_bytes = max_bytes},
                    [&](const rocksdb::Slice& piece) {
                      bytes->append(piece.data(), piece.size());
                      return rocksdb::Status::OK();
                    });
}

StoreResult ListPages(ObjectStore* store, const std::string& prefix,
                      uint64_t max_objects,
                      const std::function<StoreResult(ListPage* page)>& take) {
  uint64_t objects = 0;
  std::string after;
  for (uint64_t pages = 0;; ++pages) {
    ListPage page;
    if (StoreResult listed = store->List(prefix, after, &page); !listed.ok()) {
      return listed;
    }
    if (page.more && page.next <= after) {
      return StoreError(StoreCode::kDamaged,
                        store->Describe(prefix) +
                            ": expected a page of the list after " + after +
                            ", found the same page again");
    }
    if (page.objects.size() > max_objects - objects || pages > max_objects) {
      return StoreError(StoreCode::kDamaged,
                        store->Describe(prefix) + ": expected at most " +
                            std::to_string(max_objects) +
                            " objects, found more");
    }
    objects += page.objects.size();
    if (StoreResult taken = take(&page); !taken.ok() || !page.more) {
      return taken;
    }
    after = std::move(page.next);
  }
}

StoreResult ListAll(ObjectStore* store, const std::string& prefix,
                    uint64_t max_objects, std::vector<ObjectInfo>* objects,
                    uint64_t* foreign) {
  objects->clear();
  return ListPages(store, prefix, max_objects, [&](ListPage* page) {
    if (foreign != nullptr) {
      *foreign += page->foreign;
    }
    std::move(page->objects.begin(), page->objects.end(),
              std::back_inserter(*objects));
    return StoreResult();
  });
}

}  // namespace sstferry
