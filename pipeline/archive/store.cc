#include "pipeline/archive/store.h"

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

const char* StoreCodeName(StoreCode code) {
  switch (code) {
    case StoreCode::kOk:
      return "OK";
    case StoreCode::kAbsent:
      return "ABSENT";
    case StoreCode::kExists:
      return "EXISTS";
    case StoreCode::kOtherVersion:
      return "OTHER_VERSION";
    case StoreCode::kSignatureRefused:
      return "SIGNATURE_REFUSED";
    case StoreCode::kDenied:
      return "DENIED";
    case StoreCode::kThrottled:
      return "THROTTLED";
    case StoreCode::kUnreachable:
      return "UNREACHABLE";
    case StoreCode::kDamaged:
      return "DAMAGED";
    case StoreCode::kNoSpace:
      return "NO_SPACE";
    case StoreCode::kUnsupported:
      return "UNSUPPORTED";
    case StoreCode::kCaller:
      return "CALLER";
    case StoreCode::kCancelled:
      return "CANCELLED";
    case StoreCode::kInternal:
      return "INTERNAL";
  }
  return "?";
}

StoreResult StoreError(StoreCode code, const rocksdb::Slice& what) {
  return {code, MakeStatus(EndStateOf(code), what)};
}

StoreResult PutBytes(ObjectStore* store, const std::string& key,
                     const rocksdb::Slice& bytes, bool if_absent,
                     std::optional<UnixSeconds> signed_at) {
  const SliceSource source(bytes);
  return store->Put({.key = key,
                     .bytes = &source,
                     .sha256 = Sha256Of(bytes),
                     .if_absent = if_absent,
                     .signed_at = signed_at});
}

StoreResult GetBytes(ObjectStore* store, const std::string& key,
                     uint64_t max_bytes, std::string* bytes,
                     ObjectInfo* info) {
  bytes->clear();
  return store->Get({.key = key, .bytes = {}, .max_bytes = max_bytes,
                     .version = {}},
                    [&](const rocksdb::Slice& piece) {
                      bytes->append(piece.data(), piece.size());
                      return rocksdb::Status::OK();
                    },
                    info);
}

StoreResult ListAll(ObjectStore* store, const std::string& prefix,
                    uint64_t max_objects, std::vector<ObjectInfo>* objects,
                    uint64_t* foreign) {
  objects->clear();
  ListPage page;
  do {
    const std::string after = page.next;
    page = {};
    if (StoreResult listed = store->List(prefix, after, &page); !listed.ok()) {
      return listed;
    }
    if (page.more && page.next <= after) {
      return StoreError(StoreCode::kDamaged,
                        store->Describe(prefix) +
                            ": expected a page of the list after " + after +
                            ", found the same page again");
    }
    if (page.objects.size() > max_objects - objects->size()) {
      return StoreError(StoreCode::kDamaged,
                        store->Describe(prefix) + ": expected at most " +
                            std::to_string(max_objects) +
                            " objects, found more");
    }
    if (foreign != nullptr) {
      *foreign += page.foreign;
    }
    std::move(page.objects.begin(), page.objects.end(),
              std::back_inserter(*objects));
  } while (page.more);
  return {};
}

}  // namespace sstferry
