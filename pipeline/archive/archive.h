// Reads an archive's objects from a store. push.h and prune.h describe who
// writes and deletes them, and why that is safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/archive.h"
#include "format/archive_set.h"
#include "pipeline/archive/store.h"
#include "rocksdb/status.h"
#include "sstferry/archive.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Limit for the objects under one prefix; a longer listing counts as damage.
inline constexpr uint64_t kMaxArchiveObjects = 1u << 23;
// Writers put no more segments, and no more files of sets, than this, so that
// each archive can be listed, restored and pruned. The rest is for objects that
// concurrent writers put without knowing of each other.
inline constexpr uint64_t kMaxPutObjects = kMaxArchiveObjects / 16 * 15;

// Checks whether a writer may put objects, if the prefix has `objects` of them
// afterwards. *warning is set above half of `max_objects`, else empty.
//   kRefused  there would be more than `max_objects`
[[nodiscard]] rocksdb::Status CheckObjectCount(const std::string& place,
                                               const std::string& prefix,
                                               uint64_t objects,
                                               uint64_t max_objects,
                                               std::string* warning);

// A set found in a listing.
struct FoundSet {
  SetName name;
  uint64_t bytes = 0;    // size of the set's record
  bool is_done = false;  // done/SET exists: the set is committed
};

// A mark or an intent found in a listing. since_seconds is the time in the
// object's content or the store's time of the object, whichever is later.
struct FoundMark {
  SetId id{};
  uint64_t since_seconds = 0;
  ArchiveMark mark;
};
struct FoundIntent {
  SetId id{};
  uint64_t since_seconds = 0;  // time of the last renewal
  ArchiveIntent intent;
};

// Keys and sets that marks name.
struct Marked {
  struct Since {
    // A mark names the set as committed, and no prune has taken that back.
    bool was_done = false;
    // Time of the oldest such mark or, if there is none, of the oldest mark.
    uint64_t since_seconds = 0;
  };
  std::set<std::string> keys;
  std::map<SetName, Since> sets;
};

// An object of a set, as a listing shows it.
struct ListedObject {
  uint64_t bytes = 0;
  bool is_cold = false;  // the store does not return its bytes
};
using ListedKeys = std::map<std::string, ListedObject>;  // by key

// Returns the fault that a listing shows for an object, which should have
// `bytes` bytes; empty: none.
std::string ListedFault(const ListedKeys& listed, const std::string& key,
                        uint64_t bytes);

// Object key -> its fault.
using KeyFaults = std::map<std::string, std::string>;

// Maximum length of a stored problem, so that kMaxFoundFaults of them can be
// read again.
inline constexpr size_t kMaxFaultBytes = 512;

// The sets that repairs have replaced (repair.h). A repair replaces a set only
// after it has found objects of it missing or wrong. So every command treats
// the original as damaged while the set that was made from it is committed:
// even if no finding of a check names its objects, and even if the new set has
// been damaged since.
class RepairedSets {
 public:
  // Adds a committed set with a readable record. `repairs`: the id of the
  // damaged set from which it was made, which has the same time; zero: none.
  void Add(const SetName& name, const SetId& repairs);
  // Returns true if a set was made from this one.
  bool IsReplaced(const SetName& name) const { return made_.count(name) != 0; }
  // Returns a set that is_whole() accepts and that was made from this one,
  // perhaps by several repairs. Unset: no such set exists.
  std::optional<SetName> FindWhole(
      const SetName& name,
      const std::function<bool(const SetName&)>& is_whole) const;

 private:
  std::multimap<SetName, SetName> made_;  // damaged set -> set made from it
};
// The problem of a set that was replaced, if nothing else is known of it.
inline constexpr char kReplacedSet[] = "a repair found objects of it wrong";
// The problem of an object whose bytes do not have their digests.
inline constexpr char kWrongBytes[] =
    "its bytes differ from those that were pushed";

// Makes random ids; tests replace it.
using NewSetId = std::function<SetId()>;
SetId RandomSetId();

// Returns what the record of a set says.
SetFacts SetFactsOf(const ArchiveSet& set);

class SealKey;

// Returns the command that makes the archive in the store.
std::string InitCommand(const StoreOptions& options);

// Finds the archives below a bucket's prefix, and returns their names relative
// to it. Lists only the first page of an archive with many objects.
//   kCorrupt  the list has more objects, pages or names than the limits
[[nodiscard]] rocksdb::Status FindArchives(ObjectStore* store,
                                           std::set<std::string>* names);

// Reads the objects of one archive.
//
// Threads: any.
class Archive {
 public:
  // `store` and `key` must outlive this object. With a key, the archive reads
  // only sets that are sealed with that key. `init_command`: the next command
  // if there is no archive, for commands that put sets; empty: none.
  // *read_bytes counts the bytes that are read of files and logs; it may be
  // null, and must outlive this object.
  explicit Archive(ObjectStore* store, const SealKey* key = nullptr,
                   std::string init_command = "",
                   std::atomic<uint64_t>* read_bytes = nullptr)
      : store_(store),
        key_(key),
        init_command_(std::move(init_command)),
        read_bytes_(read_bytes) {}

  ObjectStore* store() const { return store_; }
  const SealKey* key() const { return key_; }
  void CountRead(uint64_t bytes) const {
    if (read_bytes_ != nullptr) *read_bytes_ += bytes;
  }

  // Reads the archive's head. kRefused: there is no archive, but perhaps a
  // database or archives below it, which the message names; kIncompatible: it
  // has a later format.
  [[nodiscard]] rocksdb::Status ReadHead(ArchiveHead* head) const;
  // Returns the store's time, which set names and records use.
  [[nodiscard]] rocksdb::Status Now(uint64_t* seconds) const;
  // Lists all sets, the oldest first. A set listed as done was done at some
  // time during the call, and every set that existed throughout the call is
  // listed. *lost, which may be null, receives the names in done/ that have no
  // record.
  [[nodiscard]] rocksdb::Status ListSets(
      std::vector<FoundSet>* sets, std::set<SetName>* lost = nullptr) const;
  // Reads an object of at most `max_bytes` bytes and a header, and passes it to
  // decode(). Reads it again if decode() fails, up to kTriesOfBytes times in
  // all. If the object is missing, the status is OK and *is_there is false.
  //   kCorrupt  decode() accepts nothing that the store returns, or the store
  //             lists the object and does not find it
  [[nodiscard]] rocksdb::Status ReadObject(
      const std::string& key, uint64_t max_bytes,
      const std::function<rocksdb::Status(const std::string& bytes)>& decode,
      bool* is_there) const;
  // Reads the record of a set. If the record is missing, the status is OK and
  // *set stays unset. For a done set, the record must have the digest in the
  // `done` object. Without a key, a sealed set's unit digests stay encrypted.
  [[nodiscard]] rocksdb::Status ReadSet(const FoundSet& found,
                                        std::optional<ArchiveSet>* set) const;
  // Returns kRefused if the set is sealed and there is no key.
  [[nodiscard]] rocksdb::Status CheckReadable(const ArchiveSet& set) const;
  // Passes bytes [offset, offset + bytes) of a file of the set to `sink`, in
  // order and decrypted. Bytes of a sealed set are authenticated (kDamaged if
  // that fails); the caller must compare bytes of other sets with the unit
  // digests. After a failure the sink may have received some bytes. REQUIRES:
  // CheckReadable(); the range is within the file.
  StoreResult ReadFile(const ArchiveSet& set, const ArchivedFile& file,
                       uint64_t offset, uint64_t bytes,
                       const ObjectSink& sink) const;
  // Reads all marks. Skips a mark that is deleted meanwhile.
  //   kCorrupt  a mark cannot be read: the message says how to remove it
  [[nodiscard]] rocksdb::Status ReadMarks(std::vector<FoundMark>* marks) const;
  // Reads all marks, and collects what they name. `marks`, which may be null,
  // receives the marks themselves.
  [[nodiscard]] rocksdb::Status ReadMarked(
      Marked* marked, std::vector<FoundMark>* marks = nullptr) const;
  // Reads all intents. If `unreadable` is not null, it receives the ids of
  // unreadable intents, and these cause no failure.
  [[nodiscard]] rocksdb::Status ReadIntents(
      std::vector<FoundIntent>* intents,
      std::vector<SetId>* unreadable = nullptr) const;
  // Reads the findings of checks and repairs; none if nothing was stored. They
  // do not go stale: a key is never used twice, and a check that reads an
  // object and finds it right removes its fault.
  //   kCorrupt  they cannot be read, so it is unknown which objects are wrong.
  //             The next check that reads all objects puts them anew
  [[nodiscard]] rocksdb::Status ReadChecked(ArchiveChecked* checked) const;
  // Puts findings in place of those that are stored. Cuts long problems. A
  // store cannot compare and put, so call ReadChecked() just before.
  StoreResult PutChecked(ArchiveChecked checked) const;
  // Reads the faults in the findings: "its bytes differ ... (found DATE)".
  // `checked_seconds`, which may be null, receives the time of the check.
  //   kCorrupt  as ReadChecked(); or the findings are full: *faults has all of
  //             them, but it is unknown which other objects are wrong
  [[nodiscard]] rocksdb::Status ReadFaults(
      KeyFaults* faults, uint64_t* checked_seconds = nullptr) const;
  // Adds to *keys the objects under a prefix that have names of files of sets.
  // *foreign (may be null) counts the other objects. If a list shows cold
  // objects, reads one byte of the first to find out if the store returns their
  // bytes.
  [[nodiscard]] rocksdb::Status ListKeys(const std::string& prefix,
                                         ListedKeys* keys,
                                         uint64_t* foreign = nullptr) const;

 private:
  // Returns the error for a store without a head.
  [[nodiscard]] rocksdb::Status NoArchive() const;
  // Calls each(id, modified, bytes) for the objects under a prefix whose names
  // are ids. An object for which `each` fails at each try is unreadable: then
  // its id is added to *unreadable, or this fails if that is null.
  [[nodiscard]] rocksdb::Status ReadEach(
      const std::string& prefix, uint64_t max_bytes,
      const std::function<rocksdb::Status(const SetId&, uint64_t,
                                          const std::string&)>& each,
      std::vector<SetId>* unreadable) const;

  ObjectStore* const store_;
  const SealKey* const key_;
  const std::string init_command_;
  std::atomic<uint64_t>* const read_bytes_;
};

}  // namespace sstferry
