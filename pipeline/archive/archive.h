// Reads an archive's objects out of a store: what is there, and what it says.
// Who writes and deletes which of them, and why that is safe, is said by
// push.h and prune.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/archive.h"
#include "format/archive_set.h"
#include "pipeline/archive/store.h"
#include "rocksdb/status.h"

namespace sstferry {

// Objects of one prefix that are listed before the list is taken for damage.
inline constexpr uint64_t kMaxArchiveObjects = 1u << 23;

// A set that a list shows.
struct FoundSet {
  SetName name;
  uint64_t bytes = 0;    // of its record
  bool is_done = false;  // it counts
};

// A mark or an intent that a list shows, and since when it counts: by what it
// says, and not before the store got it.
struct FoundMark {
  SetId id{};
  uint64_t since_seconds = 0;
  ArchiveMark mark;
};
struct FoundIntent {
  SetId id{};
  uint64_t since_seconds = 0;  // it was renewed
  ArchiveIntent intent;
};

// The keys and sets that marks name.
struct Marked {
  struct Since {
    bool was_done = false;       // a mark knew it to be whole
    uint64_t since_seconds = 0;  // the first such; else the first one
  };
  std::set<std::string> keys;
  std::map<SetName, Since> sets;
};

// Bytes of objects by key.
using ListedKeys = std::map<std::string, uint64_t>;

// Where a random id comes from; a test gives others.
using NewSetId = std::function<SetId()>;
SetId RandomSetId();

class SealKey;

// Threads: any.
class Archive {
 public:
  // Both outlive it. With a key it reads no set but those that are sealed with
  // it.
  explicit Archive(ObjectStore* store, const SealKey* key = nullptr)
      : store_(store), key_(key) {}

  ObjectStore* store() const { return store_; }
  const SealKey* key() const { return key_; }

  // kRefused: there is no archive; kIncompatible: of a later format.
  [[nodiscard]] rocksdb::Status ReadHead(ArchiveHead* head) const;
  // The store's clock, as names and records have it.
  [[nodiscard]] rocksdb::Status Now(uint64_t* seconds) const;
  // All sets, the oldest first. A set that is done according to it was so at
  // some time while this read, and no set is missing that was there all the
  // time.
  [[nodiscard]] rocksdb::Status ListSets(std::vector<FoundSet>* sets) const;
  // Reads the record of a set. Absent: *set is not set, and the status OK. It
  // must be the one that was committed, if it is done. Of a sealed one without
  // a key the digests of units are encrypted.
  [[nodiscard]] rocksdb::Status ReadSet(const FoundSet& found,
                                        std::optional<ArchiveSet>* set) const;
  // kRefused: the set is sealed, and there is no key.
  [[nodiscard]] rocksdb::Status CheckReadable(const ArchiveSet& set) const;
  // Gives bytes [offset, offset + bytes) of a file of the set to `sink`, in
  // order, as they are in the database. Of a sealed one they are those that
  // were sealed (else kDamaged); of another one, the caller compares them with
  // the digests of units. After a failure the sink may have got a part of them.
  // REQUIRES: CheckReadable(); the file has these bytes.
  StoreResult ReadFile(const ArchiveSet& set, const ArchivedFile& file,
                       uint64_t offset, uint64_t bytes,
                       const ObjectSink& sink) const;
  // All marks and intents; one that goes away meanwhile is left out.
  //   kCorrupt  one cannot be read: the message says how it is taken away
  [[nodiscard]] rocksdb::Status ReadMarks(std::vector<FoundMark>* marks) const;
  [[nodiscard]] rocksdb::Status ReadMarked(Marked* marked) const;
  // *unreadable, unless null, gets those that cannot be read: no failure then.
  [[nodiscard]] rocksdb::Status ReadIntents(
      std::vector<FoundIntent>* intents,
      std::vector<SetId>* unreadable = nullptr) const;
  // Adds the objects under a prefix whose names are those of files.
  // *foreign (may be null) counts others.
  [[nodiscard]] rocksdb::Status ListKeys(const std::string& prefix,
                                         ListedKeys* keys,
                                         uint64_t* foreign = nullptr) const;

 private:
  // Gets one object; *bytes is not set if it is absent.
  [[nodiscard]] rocksdb::Status GetIfThere(
      const std::string& key, uint64_t max_bytes,
      std::optional<std::string>* bytes) const;
  // Calls each(id, modified, bytes) for the objects of a prefix whose names
  // are ids. A failure of it is damage.
  [[nodiscard]] rocksdb::Status ReadEach(
      const std::string& prefix, uint64_t max_bytes,
      const std::function<rocksdb::Status(const SetId&, uint64_t,
                                          const std::string&)>& each) const;

  ObjectStore* const store_;
  const SealKey* const key_;
};

}  // namespace sstferry
