#include "pipeline/archive/push.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "format/end_state.h"
#include "format/printable.h"
#include "pipeline/archive/check.h"
#include "pipeline/archive/seal.h"
#include "pipeline/base/duration.h"
#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Number of times that an intent is renewed during a grace. It is large enough
// that only a suspended push lets its intent expire.
constexpr uint64_t kRenewalsPerGrace = 8;
// Maximum number of times that a push compares its files with the store
// (TakeLook()) before it commits. After it has uploaded files again, because
// they were marked, missing or found wrong, it compares once more.
constexpr int kMaxLooks = 4;

struct SharedName {
  Digest128 identity;
  uint64_t bytes = 0;
  auto Tied() const { return std::tie(identity.high, identity.low, bytes); }
  friend bool operator<(const SharedName& a, const SharedName& b) {
    return a.Tied() < b.Tied();
  }
};

uint64_t SteadySeconds() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// Returns OK for kExists. Only this push uses the object's name, so an earlier
// attempt of the same call succeeded, and its reply was lost.
Status OfOwnName(const StoreResult& put) {
  return put.code == StoreCode::kExists ? Status::OK() : put.status;
}

class Pusher {
 public:
  Pusher(const Archive& archive, SetSource* source, const PushOptions& options,
         PushSummary* summary)
      : archive_(archive),
        store_(archive.store()),
        source_(source),
        options_(options),
        summary_(summary),
        set_(source->set()) {
    set_.is_sealed = archive.key() != nullptr;
  }

  [[nodiscard]] Status Run();

 private:
  // An existing object that the push may reuse for a file.
  struct Place {
    ArchiveKey key;
    // The file of an earlier set, with its digests; null: unknown.
    const ArchivedFile* known = nullptr;
    // True: the push reuses the object only if the file and `known` have the
    // same SHA-256. False: the identity in the key proves the bytes.
    bool is_compared = false;
  };
  // Result of TakeLook(). Files are indices in set_.files.
  struct Look {
    std::vector<size_t> marked;   // a mark names their keys
    std::vector<size_t> missing;  // their objects are missing
    std::vector<size_t> wrong;    // a check found their objects wrong
    bool set_is_marked = false;
    bool log_is_amiss = false;  // a segment of the log is marked or missing
  };

  [[nodiscard]] Status Begin();
  // Chooses the name of the set. Fills before_ with the ids of sets and pushes
  // whose files it may reuse. `intents` are all readable intents.
  [[nodiscard]] Status ChooseName(const std::vector<FoundSet>& sets,
                                  const std::vector<FoundIntent>& intents);
  [[nodiscard]] Status MayRemove(const SetName& name, bool* may_remove) const;
  [[nodiscard]] Status ReadBase(const std::vector<FoundSet>& sets);
  [[nodiscard]] Status CheckDatabase() const;
  [[nodiscard]] Status ChoosePlaces();
  // Reads the faults that checks and repairs found. If it is unknown which
  // objects are wrong, sets *unreadable to the error, otherwise to OK.
  [[nodiscard]] Status ReadFindings(KeyFaults* faults,
                                    Status* unreadable) const;
  void ChooseGoodPlaces(const PushRepair& repair);
  // Checks that the prefix has at most max_objects objects after this push. If
  // it has more than half of this number, adds a warning to the summary.
  [[nodiscard]] Status CheckCount(const std::string& prefix,
                                  uint64_t objects);
  // Calls CheckCount() for parts/. Counts the objects in parts/ only if each
  // push puts many files there again, because tables or blob files have no
  // identity that proves their bytes.
  [[nodiscard]] Status CheckParts();
  [[nodiscard]] Status PutIntent();
  // Renews the intent if this is due. Any lane may call this function.
  [[nodiscard]] Status RenewIntent();
  [[nodiscard]] Status PlaceFiles(const std::vector<size_t>& files);
  void Plan(const std::vector<size_t>& files) const;
  void CountDone(uint64_t bytes) const;
  [[nodiscard]] Status PlaceFile(size_t index);
  // Sets *salt to the salt of the existing object if the object can be reused.
  // Otherwise resets *place, and sets *salt to a new salt.
  [[nodiscard]] Status CheckSealed(std::optional<Place>* place,
                                   SealSalt* salt) const;
  // Reads the digests of the next piece of a file.
  [[nodiscard]] Status DigestNext(SetFile* file, uint64_t offset,
                                  uint64_t bytes, FileDigests* digests);
  [[nodiscard]] Status Upload(const std::string& key, SetFile* file,
                              FileDigests* digests);
  // Reads one byte of an uploaded object, to check that the store returns it.
  [[nodiscard]] Status ReadBack(const std::string& key) const;
  [[nodiscard]] Status TakeLook(Look* look) const;
  // Checks that the segments [log.segment, end) exist, and that no mark names
  // them.
  [[nodiscard]] Status LookAtLog(const Marked& marked, uint64_t end,
                                 bool* is_amiss) const;
  [[nodiscard]] Status LookBefore(UnixSeconds* signed_at);
  [[nodiscard]] Status Commit(UnixSeconds signed_at);
  [[nodiscard]] Status LookBehind(UnixSeconds* signed_at) const;
  [[nodiscard]] Status Confirm(UnixSeconds signed_at);
  // Puts an object whose name no other process uses. Returns OK even if the put
  // fails but the object exists, because an earlier attempt of the call may
  // have stored it.
  [[nodiscard]] Status PutOnce(const std::string& key, const std::string& bytes,
                               UnixSeconds signed_at) const;
  [[nodiscard]] Status Overtaken(const std::string& what) const;
  [[nodiscard]] Status FoundWrong(const std::string& key) const;
  ArchiveKey OwnKey(const CloneFile& file, bool is_shared) const;

  const Archive& archive_;
  ObjectStore* const store_;
  SetSource* const source_;
  const PushOptions& options_;
  PushSummary* const summary_;
  ArchiveHead head_;
  ArchiveSet set_;
  // An earlier set whose files the push may reuse.
  std::optional<ArchiveSet> base_;
  // Marks that exist at the beginning of the push.
  Marked marked_;
  ListedKeys present_;
  // Ids of the sets and pushes with earlier names.
  std::set<SetId> before_;
  std::vector<std::optional<Place>> places_;  // by index of the file
  std::vector<bool> is_shared_;               // by index of the file
  ArchiveIntent intent_;
  std::string record_;  // encoded record; sealed if there is a key
  // ReadBack() was called for the first uploaded object.
  std::atomic<bool> has_read_back_{false};

  std::mutex mu_;
  uint64_t renewed_steady_ = 0;
};

Status Pusher::Overtaken(const std::string& what) const {
  return MakeStatus(EndState::kBusy,
                    store_->place() + ": " + what +
                        ": this push was suspended for longer than the grace "
                        "of the archive, or something other than 'sstferry "
                        "archive prune' deletes objects here (a lifecycle "
                        "rule?); nothing was committed, and another push "
                        "reuses what was uploaded",
                    "sstferry archive push SOURCE " +
                        ShellWord(store_->place()));
}

Status Pusher::FoundWrong(const std::string& key) const {
  return MakeStatus(EndState::kBusy,
                    store_->Describe(key) +
                        ": while this push ran, a check found this object "
                        "wrong, or left findings that this push cannot read; "
                        "nothing was committed, and another push uploads the "
                        "object again",
                    "sstferry archive push SOURCE " +
                        ShellWord(store_->place()));
}

ArchiveKey Pusher::OwnKey(const CloneFile& file, bool is_shared) const {
  ArchiveKey key;
  key.set = set_.name.id;
  key.is_shared = is_shared;
  if (is_shared) {
    key.identity = file.identity;
    key.bytes = file.bytes;
  } else {
    key.kind = file.kind;
    key.number = file.number;
  }
  return key;
}

Status Pusher::ReadBase(const std::vector<FoundSet>& sets) {
  auto found = sets.rbegin();
  while (found != sets.rend() && !base_.has_value()) {
    // Reads all sets of one second. A repaired set has the same time as its
    // original, and its name may sort before or after the original's.
    std::vector<ArchiveSet> same;
    RepairedSets repaired;
    const uint64_t seconds = found->name.seconds;
    for (; found != sets.rend() && found->name.seconds == seconds; ++found) {
      std::optional<ArchiveSet> set;
      const Status status =
          found->is_done ? archive_.ReadSet(*found, &set) : Status::OK();
      const bool is_foreign = Archive::IsForeign(status, set);
      if (!status.ok() && !is_foreign &&
          EndStateOf(status) != EndState::kCorrupt) {
        return status;
      }
      if (!status.ok()) {
        summary_->notes.push_back(
            std::string(is_foreign ? "a set is not sealed with this key"
                                   : "a set is damaged") +
            ", so its files are not reused: " + MessageOf(status));
      } else if (set.has_value()) {
        repaired.Add(set->name, set->repairs);
        same.push_back(*std::move(set));
      }
    }
    for (ArchiveSet& set : same) {
      if (!base_.has_value() && marked_.sets.count(set.name) == 0 &&
          !repaired.IsReplaced(set.name) &&
          set.is_sealed == set_.is_sealed) {
        base_ = std::move(set);
      }
    }
  }
  return Status::OK();
}

// Refuses a database that is not the database of the newest set. Permits a
// clone of it: a clone has another id, but shares tables with the newest set.
// Refuses a database that was ingested from chunks, or rebuilt from such a
// replica, because it shares no tables. (Blob files prove nothing, because they
// have no unique id.)
Status Pusher::CheckDatabase() const {
  if (!base_.has_value() || options_.adopt ||
      base_->database_id == set_.database_id) {
    return Status::OK();
  }
  std::set<SharedName> known;
  for (const ArchivedFile& file : base_->files) {
    if (file.key.is_shared && file.file.kind == CloneFileKind::kTable) {
      known.insert(SharedName{file.key.identity, file.key.bytes});
    }
  }
  for (const ArchivedFile& file : set_.files) {
    if (known.count(SharedName{file.file.identity, file.file.bytes}) != 0) {
      return Status::OK();
    }
  }
  return MakeStatus(
      EndState::kRefused,
      store_->place() + ": expected database " + base_->database_id +
          ", which the newest set holds, found " + set_.database_id +
          ", which has none of its files; each database needs an archive of "
          "its own (--adopt accepts this one as the continuation of the "
          "other)");
}

Status Pusher::ReadFindings(KeyFaults* faults, Status* unreadable) const {
  *unreadable = archive_.ReadFaults(faults);
  return unreadable->ok() || EndStateOf(*unreadable) == EndState::kCorrupt
             ? Status::OK()
             : *unreadable;
}

// Chooses which files of the set reuse existing objects: files of an earlier
// set, or files that an unfinished push left. Reuses no object that a check or
// a repair found wrong, or that can be read only for some days.
//
// A push compares only names and sizes. So it reuses no object if it cannot
// read what checks and repairs have found. It then uploads all files until the
// next check, but the set is whole. If the push failed instead, the database
// would have no new set. If the earlier set has another database id, the
// identity of a blob file does not prove that the files are equal. Then the
// push also compares their digests.
Status Pusher::ChoosePlaces() {
  KeyFaults faults;
  Status read;
  RETURN_IF_ERROR(ReadFindings(&faults, &read));
  if (!read.ok()) {
    summary_->warnings.push_back(
        "no object was reused, because it is unknown which of them the last "
        "check found wrong: " + MessageOf(read) + "; 'sstferry archive check " +
        ShellWord(store_->place()) +
        " --read-data 100%' records its findings anew");
  }
  const auto is_good = [&](const std::string& key) {
    return read.ok() && faults.count(key) == 0;
  };
  const auto is_restored = [this](const std::string& key) {
    const auto there = present_.find(key);
    return there != present_.end() && there->second.is_restored;
  };
  std::map<SharedName, const ArchivedFile*> known;
  if (base_.has_value() && base_->unit_bytes == set_.unit_bytes) {
    for (const ArchivedFile& file : base_->files) {
      if (file.key.is_shared) {
        known.emplace(SharedName{file.key.identity, file.key.bytes}, &file);
      }
    }
  }
  std::map<SharedName, ArchiveKey> left;
  for (const auto& [text, object] : present_) {
    ArchiveKey key;
    if (ParseArchiveKey(text, &key) && key.is_shared &&
        before_.count(key.set) != 0 &&
        object.bytes ==
            (set_.is_sealed ? SealedBytes(key.bytes) : key.bytes) &&
        !object.is_cold && !object.is_restored &&
        marked_.keys.count(text) == 0 && is_good(text)) {
      left.emplace(SharedName{key.identity, key.bytes}, key);
    }
  }
  std::set<SetId> uses;
  if (base_.has_value()) {
    uses.insert(base_->name.id);
  }
  if (options_.log.segment != 0) {
    uses.insert(options_.log.lineage);
  }
  std::set<SharedName> seen;
  size_t faulty = 0;
  places_.resize(set_.files.size());
  is_shared_.resize(set_.files.size());
  for (size_t i = 0; i < set_.files.size(); ++i) {
    const CloneFile& file = set_.files[i].file;
    const SharedName name{file.identity, file.bytes};
    // If two files have the same identity, the identity does not prove which
    // bytes they have.
    is_shared_[i] = file.identity != Digest128{} && !file.identity_is_weak &&
                    seen.insert(name).second;
    if (!is_shared_[i]) {
      continue;
    }
    const bool is_compared = file.kind == CloneFileKind::kBlob &&
                             base_.has_value() &&
                             base_->database_id != set_.database_id;
    if (const auto found = known.find(name); found != known.end()) {
      const std::string key = ArchiveKeyText(found->second->key);
      faulty += faults.count(key);
      if (ListedFault(present_, key, set_.ObjectBytes(set_.files[i])).empty() &&
          !is_restored(key) && marked_.keys.count(key) == 0 && is_good(key)) {
        places_[i] = Place{found->second->key, found->second, is_compared};
        continue;
      }
    }
    if (const auto found = left.find(name);
        !is_compared && found != left.end() && uses.size() < kMaxIntentSets) {
      places_[i] = Place{found->second};
      uses.insert(found->second.set);
    }
  }
  intent_.uses.assign(uses.begin(), uses.end());
  if (faulty != 0) {
    summary_->notes.push_back(
        "objects of the previous set that the last check found wrong, and that "
        "are not reused: " + std::to_string(faulty));
  }
  return Status::OK();
}

void Pusher::ChooseGoodPlaces(const PushRepair& repair) {
  std::set<SetId> uses = {repair.set->name.id};
  if (options_.log.segment != 0) {
    uses.insert(options_.log.lineage);
  }
  places_.resize(set_.files.size());
  is_shared_.resize(set_.files.size());
  for (size_t i = 0; i < set_.files.size(); ++i) {
    const ArchivedFile& file = repair.set->files[i];
    const std::string key = ArchiveKeyText(file.key);
    is_shared_[i] = file.key.is_shared;
    if (is_shared_[i] && repair.good.count(key) != 0 &&
        ListedFault(present_, key, repair.set->ObjectBytes(file)).empty() &&
        marked_.keys.count(key) == 0 && uses.size() < kMaxIntentSets) {
      places_[i] = Place{file.key, &file};
      uses.insert(file.key.set);
    }
  }
  intent_.uses.assign(uses.begin(), uses.end());
}

Status Pusher::CheckCount(const std::string& prefix, uint64_t objects) {
  std::string warning;
  RETURN_IF_ERROR(CheckObjectCount(store_->place(), prefix, objects,
                                   options_.max_objects, &warning));
  if (!warning.empty()) {
    summary_->warnings.push_back(std::move(warning));
  }
  return Status::OK();
}

Status Pusher::CheckParts() {
  uint64_t puts = 0;
  bool has_data = false;
  for (size_t i = 0; i < set_.files.size(); ++i) {
    const CloneFileKind kind = set_.files[i].file.kind;
    if (!is_shared_[i]) {
      ++puts;
      has_data |=
          kind == CloneFileKind::kTable || kind == CloneFileKind::kBlob;
    }
  }
  if (!has_data) {
    return Status::OK();
  }
  uint64_t objects = 0;
  RETURN_IF_ERROR(CountObjects(store_, kArchivePartsPrefix, &objects));
  return CheckCount(kArchivePartsPrefix, objects + puts);
}

// Finds out if RemoveFromArchive() would remove a set: another whole set must
// exist.
Status Pusher::MayRemove(const SetName& name, bool* may_remove) const {
  *may_remove = false;
  CheckOptions check;
  const Status faults = archive_.ReadFaults(&check.known);
  if (!faults.ok()) {
    return EndStateOf(faults) == EndState::kCorrupt ? Status::OK() : faults;
  }
  CheckSummary summary;
  // Checks without the key, because a set that is sealed with another key also
  // counts as whole.
  const Status checked = CheckArchive(Archive(store_), check, &summary);
  if (!summary.is_complete) {
    return checked;
  }
  for (const ListedSet& set : summary.sets) {
    *may_remove |= set.name != name && set.state == SetState::kWhole;
  }
  return Status::OK();
}

Status Pusher::ChooseName(const std::vector<FoundSet>& sets,
                          const std::vector<FoundIntent>& intents) {
  uint64_t now = 0;
  RETURN_IF_ERROR(archive_.Now(&now));
  set_.name.seconds = now;
  set_.name.id = options_.new_id();
  if (options_.repair != nullptr) {
    // The repaired set has the time of the damaged set. So it can reuse no file
    // of a later set.
    set_.name.seconds = options_.repair->set->name.seconds;
    set_.repairs = options_.repair->set->name.id;
    return Status::OK();
  }
  for (const FoundIntent& found : intents) {
    // Ignores an intent whose machine has a clock that is far ahead.
    if (found.intent.begun_seconds <= now + kMaxSetAheadSeconds) {
      set_.name.seconds =
          std::max(set_.name.seconds, found.intent.begun_seconds + 1);
      before_.insert(found.id);
    }
  }
  for (const FoundSet& found : sets) {
    before_.insert(found.name.id);
  }
  if (sets.empty()) {
    return Status::OK();
  }
  const FoundSet& newest = sets.back();
  set_.name.seconds = std::max(set_.name.seconds, newest.name.seconds + 1);
  if (newest.name.seconds < now + kWrongClockSeconds) {
    return Status::OK();
  }
  const uint64_t ahead = newest.name.seconds - now;
  std::optional<ArchiveSet> record;
  const Status read = archive_.ReadSet(newest, &record);
  if (!read.ok() && !Archive::IsForeign(read, record) &&
      EndStateOf(read) != EndState::kCorrupt) {
    return read;
  }
  const std::string what = SetOfTheFuture(
      newest.name, read.ok() && record.has_value() ? record->host : "", ahead);
  if (ahead > kMaxSetAheadSeconds) {
    bool may_remove = false;
    RETURN_IF_ERROR(MayRemove(newest.name, &may_remove));
    return MakeStatus(EndState::kRefused,
                      store_->place() + ": " + what +
                          ": a set pushed now would sort as older than that "
                          "set; correct the clock first" +
                          PushesWorkAgain(newest.name),
                      may_remove ? "sstferry archive remove " +
                                       ShellWord(store_->place()) + " " +
                                       SetNameText(newest.name)
                                 : "");
  }
  summary_->warnings.push_back(what + "; the new set is named with a later "
                                      "time than that set");
  return Status::OK();
}

Status Pusher::Begin() {
  RETURN_IF_ERROR(archive_.ReadHead(&head_));
  set_.label = options_.label;
  set_.host = options_.host;
  set_.software = options_.software;
  set_.log = options_.log;
  set_.host_seconds = options_.host_seconds
                          ? options_.host_seconds()
                          : static_cast<uint64_t>(std::time(nullptr));
  summary_->notes = set_.notes;
  summary_->files = set_.files.size();
  summary_->bytes = set_.bytes();
  // Lists the files before it reads the intents and sets. So it finds the
  // intent or the set of each push that uploaded a listed file.
  std::vector<FoundIntent> intents;
  std::vector<SetId> unreadable;
  std::vector<FoundSet> sets;
  RETURN_IF_ERROR(archive_.ListKeys(kArchiveFilesPrefix, &present_));
  RETURN_IF_ERROR(CheckCount(kArchiveFilesPrefix,
                             present_.size() + set_.files.size()));
  RETURN_IF_ERROR(archive_.ReadIntents(&intents, &unreadable));
  RETURN_IF_ERROR(archive_.ReadMarked(&marked_));
  RETURN_IF_ERROR(archive_.ListSets(&sets));
  RETURN_IF_ERROR(ChooseName(sets, intents));
  summary_->name = set_.name;
  if (options_.repair != nullptr) {
    ChooseGoodPlaces(*options_.repair);
  } else {
    RETURN_IF_ERROR(ReadBase(sets));
    RETURN_IF_ERROR(CheckDatabase());
    RETURN_IF_ERROR(ChoosePlaces());
  }
  RETURN_IF_ERROR(CheckParts());
  intent_.begun_seconds = set_.name.seconds;
  RETURN_IF_ERROR(archive_.Now(&intent_.renewed_seconds));
  intent_.host = options_.host;
  return PutIntent();
}

Status Pusher::PutIntent() {
  std::string bytes;
  EncodeArchiveIntent(intent_, &bytes);
  renewed_steady_ = options_.steady_seconds ? options_.steady_seconds()
                                            : SteadySeconds();
  return PutBytes(store_, IntentKey(set_.name.id), bytes, false).status;
}

Status Pusher::RenewIntent() {
  const std::lock_guard<std::mutex> lock(mu_);
  const uint64_t steady = options_.steady_seconds ? options_.steady_seconds()
                                                  : SteadySeconds();
  if (steady - renewed_steady_ < head_.grace_seconds / kRenewalsPerGrace) {
    return Status::OK();
  }
  RETURN_IF_ERROR(archive_.Now(&intent_.renewed_seconds));
  return PutIntent();
}

Status Pusher::DigestNext(SetFile* file, uint64_t offset, uint64_t bytes,
                          FileDigests* digests) {
  RETURN_IF_ERROR(RenewIntent());
  return file->Digest(offset, bytes, digests);
}

Status Pusher::Upload(const std::string& key, SetFile* file,
                      FileDigests* digests) {
  const uint64_t piece_bytes = PieceBytes(file->size());
  uint64_t uncounted = 0;  // size of the last piece
  PutRequest request;
  request.key = key;
  request.bytes = file;
  request.digest = [&](uint64_t offset, uint64_t bytes, Sha256Digest* sha256) {
    CountDone(std::exchange(uncounted, bytes));
    RETURN_IF_ERROR(DigestNext(file, offset, bytes, digests));
    *sha256 = digests->pieces.back();
    return Status::OK();
  };
  request.piece_bytes = piece_bytes < file->size() ? piece_bytes : 0;
  request.if_absent = head_.has_if_absent;
  RETURN_IF_ERROR(OfOwnName(store_->Put(request)));
  CountDone(uncounted);
  return file->size() == 0 || has_read_back_.exchange(true) ? Status::OK()
                                                            : ReadBack(key);
}

// Fails if the store, or a storage class, does not return the object that was
// put.
Status Pusher::ReadBack(const std::string& key) const {
  GetRequest request;
  request.key = key;
  request.bytes = 1;
  const StoreResult got =
      store_->Get(request, [](const Slice&) { return Status::OK(); });
  return got.code == StoreCode::kAbsent
             ? MakeStatus(EndState::kCorrupt,
                          store_->Describe(key) +
                              ": the store accepted this object, but does not "
                              "have it")
             : got.status;
}

// Reuses an object only if it was sealed with the same key.
Status Pusher::CheckSealed(std::optional<Place>* place, SealSalt* salt) const {
  *salt = RandomSealSalt();
  if (!place->has_value()) {
    return Status::OK();
  }
  GetRequest request;
  request.key = ArchiveKeyText((*place)->key);
  request.bytes = kSealHeadBytes;
  std::string head;
  const StoreResult got = store_->Get(request, [&head](const Slice& bytes) {
    head.append(bytes.data(), bytes.size());
    return Status::OK();
  });
  SealKeyId id;
  SealSalt found;
  if (got.code == StoreCode::kAbsent || got.code == StoreCode::kDamaged ||
      got.code == StoreCode::kCold ||
      (got.ok() && !(ParseSealHead(head, &id, &found) &&
                     id == archive_.key()->id()))) {
    place->reset();
    return Status::OK();
  }
  *salt = found;
  return got.status;
}

void Pusher::Plan(const std::vector<size_t>& files) const {
  if (options_.progress != nullptr) {
    options_.progress->phase = "upload";
    for (const size_t file : files) {
      options_.progress->planned_bytes += set_.ObjectBytes(set_.files[file]);
    }
  }
}

void Pusher::CountDone(uint64_t bytes) const {
  if (options_.progress != nullptr) {
    options_.progress->done_bytes += bytes;
  }
}

Status Pusher::PlaceFile(size_t index) {
  ArchivedFile& file = set_.files[index];
  std::optional<Place>& place = places_[index];
  if (place.has_value() && place->known != nullptr && !place->is_compared) {
    file.key = place->key;
    file.sha256 = place->known->sha256;
    file.units = place->known->units;
    file.salt = place->known->salt;
    CountDone(set_.ObjectBytes(file));
  } else {
    if (set_.is_sealed) {
      RETURN_IF_ERROR(CheckSealed(&place, &file.salt));
    }
    file.key = place.has_value() ? place->key
                                 : OwnKey(file.file, is_shared_[index]);
    std::unique_ptr<SetFile> opened;
    RETURN_IF_ERROR(source_->Open(index, &opened));
    if (set_.is_sealed) {
      opened = SealFileOf(*archive_.key(), file.salt, ArchiveKeyText(file.key),
                          file.file, set_.unit_bytes, std::move(opened));
    }
    FileDigests digests;
    const Status placed =
        place.has_value()
            ? ForEachPiece(opened->size(),
                           [&](uint64_t offset, uint64_t bytes) {
                             RETURN_IF_ERROR(DigestNext(opened.get(), offset,
                                                        bytes, &digests));
                             CountDone(bytes);
                             return Status::OK();
                           })
            : Upload(ArchiveKeyText(file.key), opened.get(), &digests);
    RETURN_IF_ERROR(placed);
    file.sha256 = Sha256OfPieces(digests.pieces);
    file.units = digests.units;
    if (place.has_value() && place->is_compared &&
        file.sha256 != place->known->sha256) {
      place.reset();
      opened.reset();
      Plan({index});
      return PlaceFile(index);  // without a place, this uploads the file
    }
    if (options_.repair != nullptr &&
        file.units != options_.repair->set->files[index].units) {
      return MakeStatus(EndState::kCorrupt,
                        CloneFileName(file.file) +
                            ": the source returned different bytes when the "
                            "file was read again");
    }
  }
  const std::lock_guard<std::mutex> lock(mu_);
  (place.has_value() ? summary_->reused_files : summary_->uploaded_files) += 1;
  (place.has_value() ? summary_->reused_bytes : summary_->uploaded_bytes) +=
      file.file.bytes;
  return Status::OK();
}

Status Pusher::PlaceFiles(const std::vector<size_t>& files) {
  Plan(files);
  return ForEachInLanes(options_.lanes, files.size(), [&](size_t at) {
    RETURN_IF_ERROR(options_.cancelled && options_.cancelled()
                        ? MakeStatus(EndState::kCancelled,
                                     "push: stopped on request")
                        : RenewIntent());
    return PlaceFile(files[at]);
  });
}

// Compares the files of the set with the marks, the findings and the store.
// Reads the marks before it lists files (see push.h). Reads the findings again,
// because a check may have found a reused object wrong in the meantime. (A
// repair has read the objects itself that it reuses.)
Status Pusher::TakeLook(Look* look) const {
  *look = Look();
  Marked marked;
  KeyFaults faults;
  Status unreadable;
  ListedKeys present;
  const uint64_t next_segment =
      options_.next_segment ? options_.next_segment() : 0;
  if (options_.repair == nullptr) {
    RETURN_IF_ERROR(ReadFindings(&faults, &unreadable));
  }
  RETURN_IF_ERROR(archive_.ReadMarked(&marked));
  RETURN_IF_ERROR(LookAtLog(marked, next_segment, &look->log_is_amiss));
  RETURN_IF_ERROR(archive_.ListKeys(kArchiveFilesPrefix, &present));
  RETURN_IF_ERROR(archive_.ListKeys(
      kArchivePartsPrefix + ToHex(set_.name.id) + "/", &present));
  look->set_is_marked = marked.sets.count(set_.name) != 0;
  for (size_t i = 0; i < set_.files.size(); ++i) {
    const std::string key = ArchiveKeyText(set_.files[i].key);
    const bool is_reused = set_.files[i].key.set != set_.name.id;
    if (marked.keys.count(key) != 0) {
      look->marked.push_back(i);
    } else if (!ListedFault(present, key, set_.ObjectBytes(set_.files[i]))
                    .empty()) {
      look->missing.push_back(i);
    } else if (faults.count(key) != 0 || (!unreadable.ok() && is_reused)) {
      look->wrong.push_back(i);
    }
  }
  return Status::OK();
}

Status Pusher::LookAtLog(const Marked& marked, uint64_t end,
                         bool* is_amiss) const {
  *is_amiss = false;
  if (set_.log.segment == 0 || end <= set_.log.segment) {
    return Status::OK();
  }
  std::vector<ObjectInfo> objects;
  RETURN_IF_ERROR(ListAll(store_,
                          kArchiveLogPrefix + ToHex(set_.log.lineage) + "/",
                          kMaxArchiveObjects, &objects)
                      .status);
  std::set<uint64_t> numbers;
  for (const ObjectInfo& object : objects) {
    LogKey key;
    if (ParseLogKey(object.key, &key) && key.number >= set_.log.segment &&
        key.number < end) {
      *is_amiss |= marked.keys.count(object.key) != 0;
      numbers.insert(key.number);
    }
  }
  *is_amiss |= numbers.size() < end - set_.log.segment;
  return Status::OK();
}

Status Pusher::LookBefore(UnixSeconds* signed_at) {
  for (int looks = 0; looks < kMaxLooks; ++looks) {
    RETURN_IF_ERROR(RenewIntent());
    *signed_at = store_->SigningTime();
    Look look;
    RETURN_IF_ERROR(TakeLook(&look));
    std::vector<size_t> again = look.marked;
    again.insert(again.end(), look.missing.begin(), look.missing.end());
    again.insert(again.end(), look.wrong.begin(), look.wrong.end());
    if (look.log_is_amiss) {
      return Overtaken("a segment of its log was marked or deleted");
    }
    if (again.empty() && !look.set_is_marked) {
      return Status::OK();
    }
    for (const size_t file : again) {
      const std::string key = ArchiveKeyText(set_.files[file].key);
      if (set_.files[file].key.set == set_.name.id) {
        // A name is never used twice.
        return std::find(look.wrong.begin(), look.wrong.end(), file) !=
                       look.wrong.end()
                   ? FoundWrong(key)
                   : Overtaken(key + " was marked or deleted");
      }
      places_[file].reset();
    }
    if (look.set_is_marked) {
      return Overtaken("the set was marked");
    }
    RETURN_IF_ERROR(PlaceFiles(again));
  }
  return Overtaken(
      "the reused files were marked, deleted or found wrong at each attempt");
}

Status Pusher::PutOnce(const std::string& key, const std::string& bytes,
                       UnixSeconds signed_at) const {
  const StoreResult put =
      PutBytes(store_, key, bytes, head_.has_if_absent, signed_at);
  if (put.ok() || put.code == StoreCode::kMoved) {
    return put.status;
  }
  std::string there;
  const StoreResult got =
      GetBytes(store_, key, bytes.size(), &there);
  if (got.ok() && there == bytes) {
    return Status::OK();
  }
  return put.code == StoreCode::kSignatureRefused
             ? Overtaken("the store refused the commit, because the time of "
                         "its signature is too far from the store's time")
             : put.status;
}

Status Pusher::Commit(UnixSeconds signed_at) {
  if (set_.is_sealed) {
    archive_.key()->Seal(&set_);
  }
  RETURN_IF_ERROR(EncodeArchiveSet(set_, &record_));
  return PutOnce(SetKey(set_.name), record_, signed_at);
}

Status Pusher::LookBehind(UnixSeconds* signed_at) const {
  *signed_at = store_->SigningTime();
  Look look;
  RETURN_IF_ERROR(TakeLook(&look));
  if (look.marked.empty() && look.missing.empty() && look.wrong.empty() &&
      !look.set_is_marked && !look.log_is_amiss) {
    return Status::OK();
  }
  // This set must not be committed. If this account may not delete its record,
  // a prune deletes it.
  store_->Delete({SetKey(set_.name)}).status.PermitUncheckedError();
  if (look.log_is_amiss) {
    return Overtaken("a segment of its log was marked or deleted");
  }
  if (!look.wrong.empty()) {
    return FoundWrong(ArchiveKeyText(set_.files[look.wrong.front()].key));
  }
  const std::vector<size_t>& amiss =
      look.missing.empty() ? look.marked : look.missing;
  return Overtaken(
      (amiss.empty() ? SetKey(set_.name)
                     : ArchiveKeyText(set_.files[amiss.front()].key)) +
      " was marked or deleted");
}

Status Pusher::Confirm(UnixSeconds signed_at) {
  ArchiveDone done;
  done.set = DigestOf(record_);
  std::string bytes;
  EncodeArchiveDone(done, &bytes);
  RETURN_IF_ERROR(PutOnce(DoneKey(set_.name), bytes, signed_at));
  Marked marked;
  RETURN_IF_ERROR(archive_.ReadMarked(&marked));
  ObjectInfo info;
  const StoreResult there = store_->Head(SetKey(set_.name), &info);
  if (there.code == StoreCode::kAbsent || marked.sets.count(set_.name) != 0) {
    return Overtaken("the set was marked or deleted");
  }
  return there.status;
}

Status Pusher::Run() {
  RETURN_IF_ERROR(Begin());
  std::vector<size_t> all(set_.files.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = i;
  }
  RETURN_IF_ERROR(PlaceFiles(all));
  UnixSeconds signed_at = 0;
  if (options_.progress != nullptr) {
    options_.progress->phase = "commit";
  }
  RETURN_IF_ERROR(LookBefore(&signed_at));
  // All files are stored now. So the source may release its files before the
  // set is committed.
  RETURN_IF_ERROR(source_->Finish());
  RETURN_IF_ERROR(Commit(signed_at));
  RETURN_IF_ERROR(LookBehind(&signed_at));
  RETURN_IF_ERROR(Confirm(signed_at));
  // If this account may not delete the intent, the intent expires.
  store_->Delete({IntentKey(set_.name.id)}).status.PermitUncheckedError();
  return Status::OK();
}

}  // namespace

std::string SetOfTheFuture(const SetName& name, const std::string& host,
                           uint64_t ahead_seconds) {
  return "the newest set " + SetNameText(name) + ", which " +
         (host.empty() ? "an unknown host" : Printable(host)) +
         " pushed, is " + FormatDuration(std::chrono::seconds(ahead_seconds)) +
         " in the future: the clock of that host was ahead, or the clock of "
         "this store is behind";
}

std::string PushesWorkAgain(const SetName& name) {
  return "; pushes work again after " +
         ArchiveTimeText(name.seconds - kMaxSetAheadSeconds) +
         ", and into a new archive at another address at once";
}

Status PushSet(const Archive& archive, SetSource* source,
               const PushOptions& options, PushSummary* summary) {
  *summary = PushSummary();
  return Pusher(archive, source, options, summary).Run();
}

}  // namespace sstferry
