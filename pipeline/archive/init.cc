#include "pipeline/archive/init.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <string>
#include <thread>

#include "format/end_state.h"
#include "pipeline/archive/archive.h"
#include "pipeline/base/random_id.h"
#include "pipeline/base/start_thread.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Number of races that detects a store in which two clients can create the same
// object.
constexpr int kRaces = 10;
constexpr int kRacers = 32;
constexpr UnixSeconds kOldSignature = 16 * 60;

// Lets many clients put the same key at once, each with different bytes. Sets
// *one_won to true if exactly one put succeeded, and the object has its bytes.
Status Race(ObjectStore* store, const std::string& key, bool* one_won) {
  std::atomic<int> winners{0};
  std::atomic<int> winner{-1};
  std::vector<StoreCode> codes(kRacers, StoreCode::kOk);
  std::latch start(kRacers);
  const auto race = [&](int self) {
    start.arrive_and_wait();
    const StoreResult put =
        PutBytes(store, key, std::to_string(self), true);
    codes[static_cast<size_t>(self)] = put.code;
    if (put.ok()) {
      ++winners;
      winner = self;
    }
  };
  RETURN_IF_ERROR(CheckThreads(kRacers));
  std::vector<std::thread> racers(kRacers);
  Status started;
  for (int i = 0; i < kRacers; ++i) {
    const Status status = StartThread([&race, i] { race(i); },
                                      &racers[static_cast<size_t>(i)]);
    if (!status.ok()) {
      started = status;
      start.count_down();
    }
  }
  for (std::thread& racer : racers) {
    if (racer.joinable()) {
      racer.join();
    }
  }
  RETURN_IF_ERROR(started);
  *one_won = winners == 1;
  for (const StoreCode code : codes) {
    *one_won &= code == StoreCode::kOk || code == StoreCode::kExists;
  }
  std::string bytes;
  const StoreResult got = GetBytes(store, key, 64, &bytes);
  // If the store refused all conditional puts, the object does not exist.
  *one_won &= got.ok() && bytes == std::to_string(winner.load());
  return got.code == StoreCode::kAbsent ? Status::OK() : got.status;
}

// Returns an error that begins with the store's answer, and says that an
// archive needs `what`. Returns OK if the answer is OK.
Status CannotDo(const ObjectStore& store, const StoreResult& answer,
                const std::string& what) {
  if (answer.ok()) {
    return Status::OK();
  }
  const EndState state = EndStateOf(answer.status);
  return MakeStatus(state == EndState::kCorrupt ? EndState::kRefused : state,
                    MessageOf(answer.status) + ": " + store.place() +
                        ": an archive needs " + what);
}

Status Unlike(const ObjectStore& store, const std::string& what,
              const std::string& found) {
  return MakeStatus(EndState::kRefused, store.place() + ": expected " + what +
                                            ", found " + found);
}

// Puts an object, looks it up, reads it and lists it. Also looks up an object
// that does not exist.
Status TryObject(ObjectStore* store, const std::string& key) {
  const std::string bytes = "an object";
  const StoreResult put = PutBytes(store, key, bytes, false);
  // kUnsupported has other reasons than a missing right. For example, the
  // bucket does not exist.
  RETURN_IF_ERROR(put.code == StoreCode::kUnsupported
                      ? put.status
                      : CannotDo(*store, put,
                                 "the right to put objects (s3:PutObject)"));
  ObjectInfo info;
  RETURN_IF_ERROR(CannotDo(*store, store->Head(key, &info),
                           "to look up an object and its length"));
  if (info.bytes != bytes.size()) {
    return Unlike(*store, "an object of " + std::to_string(bytes.size()) +
                              " bytes, as it was put",
                  std::to_string(info.bytes));
  }
  std::string found;
  RETURN_IF_ERROR(CannotDo(*store, GetBytes(store, key, bytes.size(), &found),
                           "the right to get objects (s3:GetObject), and their "
                           "lengths"));
  if (found != bytes) {
    return Unlike(*store, "the bytes that were put", "other bytes");
  }
  GetRequest part;
  part.key = key;
  part.offset = 3;
  part.bytes = 3;
  found.clear();
  RETURN_IF_ERROR(CannotDo(*store,
                           store->Get(part,
                                      [&found](const rocksdb::Slice& piece) {
                                        found.append(piece.data(),
                                                     piece.size());
                                        return Status::OK();
                                      }),
                           "to get part of an object (Range)"));
  if (found != bytes.substr(3, 3)) {
    return Unlike(*store, "bytes 3 to 5 of an object", "other bytes");
  }
  const StoreResult absent = store->Head(key + "-absent", &info);
  if (absent.code != StoreCode::kAbsent) {
    return absent.ok() ? Unlike(*store, "no object under a name that was never "
                                        "put",
                                "one")
                       : CannotDo(*store, absent,
                                  "to learn that an object is missing "
                                  "(s3:ListBucket)");
  }
  std::vector<ObjectInfo> listed;
  RETURN_IF_ERROR(CannotDo(*store,
                           ListAll(store, key, kMaxArchiveObjects, &listed),
                           "the right to list objects (s3:ListBucket)"));
  if (listed.size() != 1 || listed[0].key != key ||
      listed[0].bytes != bytes.size()) {
    return Unlike(*store, "a list with the object that was put",
                  std::to_string(listed.size()) + " objects");
  }
  return Status::OK();
}

// Uploads an object in parts, like a push uploads a file of more than 64 MiB.
Status TryUpload(ObjectStore* store, const std::string& key) {
  const std::string bytes = "a part";
  RETURN_IF_ERROR(CannotDo(
      *store, PutBytes(store, key, bytes, false, {}, bytes.size()),
      "uploads in parts (s3:PutObject)"));
  ObjectInfo info;
  RETURN_IF_ERROR(CannotDo(*store, store->Head(key, &info),
                           "to find what was uploaded in parts"));
  return info.bytes == bytes.size()
             ? Status::OK()
             : Unlike(*store, "an object of one part of " +
                                  std::to_string(bytes.size()) + " bytes",
                      std::to_string(info.bytes));
}

// Tries every operation that a push, a restore or a prune uses.
Status TryStore(ObjectStore* store, const std::string& prefix,
                std::vector<std::string>* made, ArchiveHead* head) {
  made->push_back(prefix + "object");
  RETURN_IF_ERROR(TryObject(store, made->back()));
  made->push_back(prefix + "parts");
  RETURN_IF_ERROR(TryUpload(store, made->back()));
  head->has_if_absent = true;
  for (int i = 0; i < kRaces && head->has_if_absent; ++i) {
    made->push_back(prefix + std::to_string(i));
    RETURN_IF_ERROR(Race(store, made->back(), &head->has_if_absent));
  }
  made->push_back(prefix + "signature");
  const StoreResult old = PutBytes(store, made->back(), "", false,
                                   store->SigningTime() - kOldSignature);
  head->refuses_old_signatures = old.code == StoreCode::kSignatureRefused;
  return old.ok() || head->refuses_old_signatures ? Status::OK() : old.status;
}

}  // namespace

Status InitArchive(ObjectStore* store, const InitOptions& options,
                   ArchiveHead* head, std::vector<std::string>* notes) {
  *head = ArchiveHead();
  ObjectInfo info;
  const StoreResult there = store->Head(kArchiveHeadKey, &info);
  if (there.ok()) {
    return MakeStatus(EndState::kRefused,
                      store->Describe(kArchiveHeadKey) +
                          ": there is an archive already");
  }
  // The place of a directory is its path. A directory checks no signatures.
  const bool is_signed = !store->place().starts_with('/');
  if (there.code == StoreCode::kDenied && is_signed) {
    // The store denied the request for ARCHIVE, or denied the list that shows
    // that ARCHIVE does not exist.
    return CannotDo(*store, there,
                    "the rights to get objects (s3:GetObject) and to list them "
                    "(s3:ListBucket)");
  }
  if (there.code != StoreCode::kAbsent) {
    return there.status;
  }
  RETURN_IF_ERROR(store->CheckUnused().status);
  head->archive_id = RandomId();
  const std::string prefix = "init/" + ToHex(head->archive_id) + "-";
  std::vector<std::string> made;
  const Status tried = TryStore(store, prefix, &made, head);
  const StoreResult deleted = store->Delete(made);
  RETURN_IF_ERROR(tried);
  head->grace_seconds = options.grace_seconds.value_or(kDefaultGraceSeconds);
  const uint64_t least = head->refuses_old_signatures ? kMinGraceSeconds
                                                      : kUnsignedGraceSeconds;
  if (head->grace_seconds < least || head->grace_seconds > kMaxGraceSeconds) {
    return MakeStatus(
        EndState::kRefused,
        store->place() + ": expected a grace of " + std::to_string(least) +
            " seconds or more" +
            (head->refuses_old_signatures
                 ? ""
             : is_signed ? ", because this store accepts old signatures"
                         : ", as in every directory") +
            ", found " + std::to_string(head->grace_seconds));
  }
  if (!head->has_if_absent) {
    notes->push_back(
        "the store does not support 'put if absent' reliably: when " +
        std::to_string(kRacers) +
        " clients created the same object at once, it did not let exactly one "
        "succeed and refuse the others; archives work without this feature");
  }
  if (!head->refuses_old_signatures) {
    notes->push_back(
        is_signed ? "the store accepts signatures that are 16 minutes old, so "
                    "prunes must wait at least 24 hours (the grace) before "
                    "they delete what they marked"
                  : "in a directory, prunes must wait at least 24 hours (the "
                    "grace) before they delete what they marked");
  }
  if (!deleted.ok()) {
    notes->push_back("this account cannot delete objects, so it cannot prune; "
                     "small test objects remain below init/: " +
                     MessageOf(deleted.status));
  }
  uint64_t removed = 0;
  if (const StoreResult listed = store->RemoveUploads(
          0, [](const std::string&) { return false; }, &removed);
      !listed.ok()) {
    notes->push_back("cannot list unfinished uploads, which a prune must "
                     "remove: " + MessageOf(listed.status));
  }
  RETURN_IF_ERROR(Archive(store).Now(&head->created_seconds));
  std::string bytes;
  EncodeArchiveHead(*head, &bytes);
  return PutBytes(store, kArchiveHeadKey, bytes, head->has_if_absent).status;
}

}  // namespace sstferry
