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

// A store with two winners shows them within a few races.
constexpr int kRaces = 10;
constexpr int kRacers = 32;
constexpr UnixSeconds kOldSignature = 16 * 60;

// Lets many clients put one key at once, each its own bytes. *one_won: exactly
// one was told that it did, and the object is that one's.
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
  RETURN_IF_ERROR(GetBytes(store, key, 64, &bytes).status);
  *one_won &= bytes == std::to_string(winner.load());
  return Status::OK();
}

Status TryStore(ObjectStore* store, const std::string& prefix,
                std::vector<std::string>* made, ArchiveHead* head) {
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
  if (there.code != StoreCode::kAbsent) {
    return there.status;
  }
  head->archive_id = RandomId();
  const std::string prefix = "init/" + ToHex(head->archive_id) + "-";
  std::vector<std::string> made;
  const Status tried = TryStore(store, prefix, &made, head);
  // Who may not delete leaves some objects of a few bytes.
  store->Delete(made).status.PermitUncheckedError();
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
                 : ", because this store accepts old signatures or has none") +
            ", found " + std::to_string(head->grace_seconds));
  }
  if (!head->has_if_absent) {
    notes->push_back(
        "the store does not keep 'put if absent': two of " +
        std::to_string(kRacers) +
        " clients were told that they had made one object, or none was; "
        "nothing of an archive depends on it");
  }
  if (!head->refuses_old_signatures) {
    notes->push_back(
        "the store does not refuse signatures of 16 minutes, or has none: the "
        "grace is at least 24 hours");
  }
  RETURN_IF_ERROR(Archive(store).Now(&head->created_seconds));
  std::string bytes;
  EncodeArchiveHead(*head, &bytes);
  return PutBytes(store, kArchiveHeadKey, bytes, head->has_if_absent).status;
}

}  // namespace sstferry
