#include "pipeline/archive/archive.h"

#include <algorithm>
#include <cstring>

#include "format/end_state.h"
#include "format/sealed_file.h"
#include "pipeline/archive/seal.h"
#include "pipeline/base/random_id.h"
#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Maximum memory for the names that FindArchives() returns. It is enough for
// half a million names. A name takes about 100 bytes in addition to its text.
constexpr uint64_t kMaxNamesBytes = 128u << 20;
constexpr uint64_t kNameNodeBytes = 100;

// Returns the part of a key that follows the prefix.
Slice Behind(const std::string& prefix, const std::string& key) {
  return Slice(key.data() + prefix.size(), key.size() - prefix.size());
}

uint64_t Unsigned(UnixSeconds seconds) {
  return static_cast<uint64_t>(std::max<UnixSeconds>(seconds, 0));
}

// Returns kCorrupt for any error with which the decoding of an object failed.
Status AsDamage(const Status& decoded) {
  return decoded.ok() ? decoded
                      : MakeStatus(EndState::kCorrupt, MessageOf(decoded));
}

}  // namespace

Status CheckObjectCount(const std::string& place, const std::string& prefix,
                        uint64_t objects, uint64_t max_objects,
                        std::string* warning) {
  const std::string count = place + "/" + prefix + ": expected at most " +
                            std::to_string(max_objects) +
                            " objects, found " + std::to_string(objects);
  const std::string next = "sstferry archive prune " + ShellWord(place);
  *warning = objects > max_objects / 2
                 ? place + "/" + prefix + " has " + std::to_string(objects) +
                       " objects, and at " + std::to_string(max_objects) +
                       " nothing can be added: '" + next +
                       "' removes what its --keep options do not keep"
                 : "";
  return objects <= max_objects
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          count + "; a prune that keeps less makes room",
                          next);
}

Status CountObjects(ObjectStore* store, const std::string& prefix,
                    uint64_t* objects) {
  *objects = 0;
  return ListPages(store, prefix, kMaxArchiveObjects,
                   [objects](ListPage* page) {
                     *objects += page->objects.size() + page->foreign;
                     return StoreResult();
                   })
      .status;
}

void RepairedSets::Add(const SetName& name, const SetId& repairs) {
  const SetName damaged{name.seconds, repairs};
  if (repairs != SetId() && !(damaged == name)) {
    made_.emplace(damaged, name);
  }
}

std::optional<SetName> RepairedSets::FindWhole(
    const SetName& name,
    const std::function<bool(const SetName&)>& is_whole) const {
  std::set<SetName> seen = {name};
  std::vector<SetName> next = {name};
  while (!next.empty()) {
    const auto [begin, end] = made_.equal_range(next.back());
    next.pop_back();
    for (auto made = begin; made != end; ++made) {
      if (is_whole(made->second)) {
        return made->second;
      }
      if (seen.insert(made->second).second) {
        next.push_back(made->second);
      }
    }
  }
  return std::nullopt;
}

SetId RandomSetId() {
  const TransferId random = RandomId();
  SetId id;
  std::copy_n(random.begin(), id.size(), id.begin());
  return id;
}

std::string ListedFault(const ListedKeys& listed, const std::string& key,
                        uint64_t bytes) {
  const auto found = listed.find(key);
  if (found == listed.end()) {
    return "is missing";
  }
  if (found->second.bytes != bytes) {
    return "expected " + std::to_string(bytes) + " bytes, found " +
           std::to_string(found->second.bytes);
  }
  return found->second.is_cold
             ? "was moved to a storage class where nothing can be read: "
               "exclude the archive's objects from the lifecycle rule that "
               "moves them"
             : "";
}

SetFacts SetFactsOf(const ArchiveSet& set) {
  SetFacts facts;
  facts.label = set.label;
  facts.host = set.host;
  facts.database_id = set.database_id;
  facts.sequence = set.sequence;
  facts.families = set.families.size();
  facts.files = set.files.size();
  facts.bytes = set.bytes();
  for (const ArchivedFile& file : set.files) {
    facts.own_bytes += file.key.set == set.name.id ? file.file.bytes : 0;
  }
  facts.is_sealed = set.is_sealed;
  return facts;
}

Status Archive::ReadObject(
    const std::string& key, uint64_t max_bytes,
    const std::function<Status(const std::string& bytes)>& decode,
    bool* is_there) const {
  return RetryIfCorrupt([&] {
    std::string bytes;
    const StoreResult got =
        GetBytes(store_, key, max_bytes + kSealedHeaderBytes, &bytes);
    *is_there = got.code != StoreCode::kAbsent;
    return !*is_there ? Status::OK() : got.ok() ? decode(bytes) : got.status;
  });
}

std::string InitCommand(const StoreOptions& options) {
  SourceAccess access;
  access.store = options;
  access.store.key_file.clear();  // `archive init` uses no key
  SourceAddress place;
  place.archive = options.where;
  return "sstferry archive init " + ShellWord(options.where.ToString()) +
         AccessWords(access, place);
}

Status FindArchives(ObjectStore* store, std::set<std::string>* names) {
  names->clear();
  const std::string end = std::string("/") + kArchiveHeadKey;
  std::string last;  // the last name that was found, with '/' at its end
  uint64_t bytes = 0;
  const auto take = [&](ListPage* page) {
    for (const ObjectInfo& object : page->objects) {
      if (object.key.ends_with(end)) {
        last = object.key.substr(0, object.key.size() - end.size() + 1);
        names->insert(last.substr(0, last.size() - 1));
        bytes += last.size() + kNameNodeBytes;
      }
    }
    if (!last.empty() && page->next.starts_with(last)) {
      page->next = last;
      // '0' is the character after '/', so the next page skips the archive's
      // other keys.
      page->next.back() = '0';
    }
    return bytes <= kMaxNamesBytes
               ? StoreResult()
               : StoreError(StoreCode::kDamaged,
                            store->place() + ": expected archives whose names "
                                             "take at most " +
                                std::to_string(kMaxNamesBytes) +
                                " bytes in all, found more");
  };
  return ListPages(store, "", kMaxArchiveObjects, take).status;
}

Status Archive::NoArchive() const {
  constexpr size_t kMostNamed = 3;
  const std::string place = store_->place();
  const std::string expected = place + ": expected an archive, found ";
  ObjectInfo info;
  if (store_->Head("CURRENT", &info).ok()) {
    return MakeStatus(EndState::kRefused, expected + "a database");
  }
  // Names only archives on the first page of objects, because a search of all
  // pages may take long.
  ListPage page;
  std::string below;
  if (store_->List("", "", &page).ok()) {
    const std::string end = std::string("/") + kArchiveHeadKey;
    size_t named = 0;
    for (const ObjectInfo& object : page.objects) {
      if (object.key.ends_with(end) && named++ < kMostNamed) {
        below += (below.empty() ? "" : ", ") +
                 object.key.substr(0, object.key.size() - end.size());
      }
    }
    below += named > kMostNamed ? " and others" : "";
  }
  return MakeStatus(
      EndState::kRefused,
      expected + "no object " + kArchiveHeadKey +
          (below.empty() ? "" : "; archives below it: " + below),
      below.empty() ? init_command_ : "");
}

Status Archive::ReadHead(ArchiveHead* head) const {
  bool is_there = false;
  RETURN_IF_ERROR(ReadObject(
      kArchiveHeadKey, kMaxArchiveHeadBytes,
      [&](const std::string& bytes) {
        return WithContext(DecodeArchiveHead(bytes, head), EndState::kCorrupt,
                           store_->Describe(kArchiveHeadKey));
      },
      &is_there));
  return is_there ? Status::OK() : NoArchive();
}

Status Archive::Now(uint64_t* seconds) const {
  UnixSeconds now = 0;
  RETURN_IF_ERROR(store_->Now(&now).status);
  *seconds = Unsigned(now);
  return *seconds <= kMaxArchiveSeconds
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          store_->place() +
                              ": expected the store's clock at most " +
                              std::to_string(kMaxArchiveSeconds) +
                              " s after 1970, found " + std::to_string(now) +
                              " s; correct that clock");
}

Status Archive::ListSets(std::vector<FoundSet>* sets,
                         std::set<SetName>* lost) const {
  sets->clear();
  // Lists done/ before sets/. In the other order, a set would wrongly look
  // committed if its record were deleted and its `done` put between the two
  // lists.
  std::vector<ObjectInfo> objects;
  RETURN_IF_ERROR(
      ListAll(store_, kArchiveDonePrefix, kMaxArchiveObjects, &objects).status);
  std::set<SetName> done;
  SetName name;
  for (const ObjectInfo& object : objects) {
    if (ParseSetName(Behind(kArchiveDonePrefix, object.key), &name)) {
      done.insert(name);
    }
  }
  RETURN_IF_ERROR(
      ListAll(store_, kArchiveSetsPrefix, kMaxArchiveObjects, &objects).status);
  for (const ObjectInfo& object : objects) {
    if (ParseSetName(Behind(kArchiveSetsPrefix, object.key), &name)) {
      sets->push_back({name, object.bytes, done.erase(name) != 0});
    }
  }
  if (lost != nullptr) {
    *lost = std::move(done);
  }
  std::sort(sets->begin(), sets->end(),
            [](const FoundSet& a, const FoundSet& b) {
              return a.name < b.name;
            });
  return Status::OK();
}

Status Archive::ReadSet(const FoundSet& found,
                        std::optional<ArchiveSet>* set) const {
  set->reset();
  bool is_there = true;
  ArchiveDone done;
  if (found.is_done) {
    const std::string done_key = DoneKey(found.name);
    RETURN_IF_ERROR(ReadObject(
        done_key, kMaxDoneBytes,
        [&](const std::string& bytes) {
          return WithContext(DecodeArchiveDone(bytes, &done),
                             EndState::kCorrupt, store_->Describe(done_key));
        },
        &is_there));
  }
  if (!is_there) {
    return Status::OK();  // a prune is removing the set
  }
  const std::string key = SetKey(found.name);
  const Status read = ReadObject(
      key, kMaxSetBytes,
      [&](const std::string& bytes) {
        return found.is_done && done.set != DigestOf(bytes)
                   ? MakeStatus(EndState::kCorrupt,
                                store_->Describe(key) +
                                    ": its bytes differ from those that were "
                                    "committed")
                   : WithContext(
                         DecodeArchiveSet(bytes, found.name, &set->emplace()),
                         EndState::kCorrupt, store_->Describe(key));
      },
      &is_there);
  if (!read.ok() || !is_there) {
    set->reset();
    return read;
  }
  const Status unsealed =
      key_ == nullptr ? Status::OK()
                      : WithContext(key_->Unseal(&set->value()),
                                    EndState::kCorrupt, store_->Describe(key));
  if (EndStateOf(unsealed) == EndState::kCorrupt) {
    set->reset();
  }
  return unsealed;
}

Status Archive::CheckReadable(const ArchiveSet& set) const {
  return set.is_sealed && key_ == nullptr
             ? MakeStatus(EndState::kRefused,
                          store_->Describe(SetKey(set.name)) +
                              ": the set is sealed: give --key-file with the "
                              "key that it was pushed with")
             : Status::OK();
}

StoreResult Archive::ReadFile(const ArchiveSet& set, const ArchivedFile& file,
                              uint64_t offset, uint64_t bytes,
                              const ObjectSink& sink) const {
  const ObjectSink counted = [this, &sink](const Slice& piece) {
    CountRead(piece.size());
    return sink(piece);
  };
  if (set.is_sealed) {
    return GetSealed(store_, *key_, SealedObjectOf(file), offset, bytes,
                     counted);
  }
  GetRequest request;
  request.key = ArchiveKeyText(file.key);
  request.offset = offset;
  request.bytes = bytes;
  return store_->Get(request, counted);
}

Status Archive::ReadEach(
    const std::string& prefix, uint64_t max_bytes,
    const std::function<Status(const SetId&, uint64_t, const std::string&)>&
        each,
    std::vector<SetId>* unreadable) const {
  std::vector<ObjectInfo> objects;
  RETURN_IF_ERROR(
      ListAll(store_, prefix, kMaxArchiveObjects, &objects).status);
  for (const ObjectInfo& object : objects) {
    SetId id;
    if (!ParseSetId(Behind(prefix, object.key), &id)) {
      continue;
    }
    bool is_there = false;
    const Status read = ReadObject(
        object.key, max_bytes,
        [&](const std::string& bytes) {
          return AsDamage(each(id, Unsigned(object.modified), bytes));
        },
        &is_there);
    const bool is_unreadable = EndStateOf(read) == EndState::kCorrupt;
    if (is_unreadable && unreadable != nullptr) {
      unreadable->push_back(id);
    } else if (is_unreadable) {
      // An unreadable mark or intent hides which files are marked or protected,
      // so the caller must delete nothing.
      return MakeStatus(EndState::kCorrupt,
                        store_->Describe(object.key) + ": " + MessageOf(read) +
                            "; nothing was deleted",
                        "sstferry archive remove " +
                            ShellWord(store_->place()) + " " + ToHex(id));
    } else {
      RETURN_IF_ERROR(read);
    }
  }
  return Status::OK();
}

Status Archive::ReadMarks(std::vector<FoundMark>* marks) const {
  marks->clear();
  return ReadEach(kArchiveMarksPrefix, kMaxMarkBytes,
                  [marks](const SetId& id, uint64_t modified,
                          const std::string& bytes) {
                    FoundMark found;
                    found.id = id;
                    RETURN_IF_ERROR(DecodeArchiveMark(bytes, &found.mark));
                    found.since_seconds =
                        std::max(found.mark.marked_seconds, modified);
                    marks->push_back(std::move(found));
                    return Status::OK();
                  },
                  /*unreadable=*/nullptr);
}

Status Archive::ReadMarked(Marked* marked,
                           std::vector<FoundMark>* marks) const {
  *marked = Marked();
  std::vector<FoundMark> own;
  marks = marks == nullptr ? &own : marks;
  RETURN_IF_ERROR(ReadMarks(marks));
  for (const FoundMark& found : *marks) {
    for (const MarkedSet& set : found.mark.sets) {
      Marked::Since& since =
          marked->sets.emplace(set.name, Marked::Since{false, ~uint64_t{0}})
              .first->second;
      if (set.was_done && !since.was_done) {
        since = {true, found.since_seconds};
      } else if (set.was_done == since.was_done) {
        since.since_seconds =
            std::min(since.since_seconds, found.since_seconds);
      }
    }
    for (const ArchiveKey& key : found.mark.keys) {
      marked->keys.insert(ArchiveKeyText(key));
    }
    for (const LogKey& key : found.mark.segments) {
      marked->keys.insert(LogKeyText(key));
    }
  }
  return Status::OK();
}

Status Archive::ReadIntents(std::vector<FoundIntent>* intents,
                            std::vector<SetId>* unreadable) const {
  intents->clear();
  return ReadEach(
      kArchiveIntentsPrefix, kMaxIntentBytes,
      [intents](const SetId& id, uint64_t modified, const std::string& bytes) {
        FoundIntent found;
        found.id = id;
        RETURN_IF_ERROR(DecodeArchiveIntent(bytes, &found.intent));
        found.since_seconds =
            std::max(found.intent.renewed_seconds, modified);
        intents->push_back(std::move(found));
        return Status::OK();
      },
      unreadable);
}

Status Archive::ReadChecked(ArchiveChecked* checked) const {
  *checked = ArchiveChecked();
  bool is_there = false;
  const Status read = ReadObject(
      kArchiveCheckedKey, kMaxCheckedBytes,
      [checked](const std::string& bytes) {
        *checked = ArchiveChecked();
        return AsDamage(DecodeArchiveChecked(bytes, checked));
      },
      &is_there);
  if (read.ok() && !is_there) {
    *checked = ArchiveChecked();
  }
  if (EndStateOf(read) != EndState::kCorrupt) {
    return read;
  }
  *checked = ArchiveChecked();
  return MakeStatus(EndState::kCorrupt,
                    store_->Describe(kArchiveCheckedKey) +
                        ": expected the findings of the last check, found an "
                        "object that cannot be read: " + MessageOf(read),
                    "sstferry archive check " + ShellWord(store_->place()) +
                        " --read-data 100%");
}

StoreResult Archive::PutChecked(ArchiveChecked checked) const {
  for (FoundFault& fault : checked.faults) {
    fault.problem.resize(std::min(fault.problem.size(), kMaxFaultBytes));
  }
  std::string bytes;
  EncodeArchiveChecked(checked, &bytes);
  return PutBytes(store_, kArchiveCheckedKey, bytes, false);
}

Status Archive::ReadFaults(KeyFaults* faults,
                           uint64_t* checked_seconds) const {
  faults->clear();
  ArchiveChecked checked;
  RETURN_IF_ERROR(ReadChecked(&checked));
  if (checked_seconds != nullptr) {
    *checked_seconds = checked.checked_seconds;
  }
  for (const FoundFault& fault : checked.faults) {
    (*faults)[fault.key] =
        fault.problem + " (found " + ArchiveTimeText(fault.seconds) + ")";
  }
  return checked.faults.size() < kMaxFoundFaults
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          store_->place() + ": the last check found " +
                              std::to_string(checked.faults.size()) +
                              " wrong objects or more, so it is unknown which "
                              "sets are whole",
                          "sstferry archive check " +
                              ShellWord(store_->place()) +
                              " --read-data 100%");
}

Status Archive::ListKeys(const std::string& prefix, ListedKeys* keys,
                         uint64_t* foreign) const {
  std::vector<ObjectInfo> objects;
  RETURN_IF_ERROR(
      ListAll(store_, prefix, kMaxArchiveObjects, &objects, foreign).status);
  const auto may_be_unreadable = [](const ObjectInfo& object) {
    return object.is_cold && !object.is_restored && object.bytes != 0;
  };
  // Some stores return the bytes of objects of all classes. Reads one byte to
  // find out whether this store does. If an object is missing or damaged, it
  // does not show this, so tries the next one.
  bool gives_back = false;
  for (const ObjectInfo& object : objects) {
    if (!may_be_unreadable(object)) {
      continue;
    }
    GetRequest request;
    request.key = object.key;
    request.bytes = 1;
    const StoreResult got =
        store_->Get(request, [](const Slice&) { return Status::OK(); });
    gives_back = got.ok();
    if (got.ok() || got.code == StoreCode::kCold) {
      break;
    }
    if (got.code != StoreCode::kAbsent && got.code != StoreCode::kDamaged) {
      return got.status;
    }
  }
  for (ObjectInfo& object : objects) {
    ArchiveKey key;
    if (ParseArchiveKey(object.key, &key)) {
      const bool is_cold = may_be_unreadable(object) && !gives_back;
      keys->emplace(
          std::move(object.key),
          ListedObject{object.bytes, is_cold, object.is_restored});
    } else if (foreign != nullptr) {
      ++*foreign;
    }
  }
  return Status::OK();
}

}  // namespace sstferry
