// Reads the objects of an archive from a store. format/archive.h defines these
// objects, for example marks and intents. push.h and prune.h describe which
// command writes and deletes them, and prove that no needed object is deleted.
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
#include "format/end_state.h"
#include "pipeline/archive/store.h"
#include "rocksdb/status.h"
#include "sstferry/archive.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Maximum number of objects under one prefix. A listing that is longer fails as
// damaged.
inline constexpr uint64_t kMaxArchiveObjects = 1u << 23;
// Maximum number of objects that writers put under wal/, under files/ or under
// parts/. The limit is below kMaxArchiveObjects, because concurrent writers
// cannot count each other's objects. This reserve keeps each archive small
// enough to be listed, restored and pruned.
inline constexpr uint64_t kMaxPutObjects = kMaxArchiveObjects / 16 * 15;

// Checks whether a writer may put objects. `objects` is the number of objects
// that the prefix will have afterwards. Sets *warning if this is more than half
// of `max_objects`, and empties it otherwise.
//   kRefused  `objects` exceeds `max_objects`
[[nodiscard]] rocksdb::Status CheckObjectCount(const std::string& place,
                                               const std::string& prefix,
                                               uint64_t objects,
                                               uint64_t max_objects,
                                               std::string* warning);

// Counts all objects under a prefix. Sets *objects to their number.
[[nodiscard]] rocksdb::Status CountObjects(ObjectStore* store,
                                           const std::string& prefix,
                                           uint64_t* objects);

// A set found in a listing.
struct FoundSet {
  SetName name;
  uint64_t bytes = 0;    // size of the set's record
  bool is_done = false;  // the set is committed: done/SET exists
};

// A mark or an intent that a listing shows. since_seconds is the later of two
// times: the time in the object's content, and the store's modification time of
// the object.
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

// The keys and the sets that the marks of an archive name.
struct Marked {
  struct Since {
    // A mark names the set as committed, and no prune has undone this.
    bool was_done = false;
    // Time of the oldest mark that names the set as committed. If no mark does,
    // time of the oldest mark that names the set.
    uint64_t since_seconds = 0;
  };
  std::set<std::string> keys;
  std::map<SetName, Since> sets;
};

// An object of a set, as it appears in a listing.
struct ListedObject {
  uint64_t bytes = 0;
  bool is_cold = false;      // its storage class does not allow reads
  bool is_restored = false;  // can be read only for some days
};
using ListedKeys = std::map<std::string, ListedObject>;  // by key

// Returns the fault that a listing shows for the object with this key: the
// object is missing, is cold, or does not have `bytes` bytes. Returns an empty
// text if there is no fault.
std::string ListedFault(const ListedKeys& listed, const std::string& key,
                        uint64_t bytes);

// Maps the key of an object to the object's fault.
using KeyFaults = std::map<std::string, std::string>;

// Maximum length of the problem that is stored with a fault. An object CHECKED
// with kMaxFoundFaults faults of this length can still be read.
inline constexpr size_t kMaxFaultBytes = 512;

// The sets that a repair has replaced by a new set (repair.h). A repair
// replaces a set only if it found objects of the set missing or wrong.
// Therefore every command treats the replaced set as damaged while the new set
// is committed. This holds even if no check has found the faults, and even if
// the new set was damaged later.
class RepairedSets {
 public:
  // Adds a committed set with a readable record. `repairs` is the id of the
  // damaged set that this set replaces; zero: it replaces none. Both sets have
  // the same time.
  void Add(const SetName& name, const SetId& repairs);
  // Returns true if a repair has replaced this set.
  bool IsReplaced(const SetName& name) const { return made_.count(name) != 0; }
  // Returns a set that replaces this set, directly or through several repairs,
  // and for which is_whole() returns true. Returns nullopt if there is no such
  // set.
  std::optional<SetName> FindWhole(
      const SetName& name,
      const std::function<bool(const SetName&)>& is_whole) const;

 private:
  std::multimap<SetName, SetName> made_;  // replaced set -> new set
};
// The problem of a replaced set, if no other problem of the set is known.
inline constexpr char kReplacedSet[] = "a repair found objects of it wrong";
// The problem of an object whose bytes do not match their digests.
inline constexpr char kWrongBytes[] =
    "its bytes differ from those that were pushed";

// Returns a random id. Tests replace this function.
using NewSetId = std::function<SetId()>;
SetId RandomSetId();

// Returns facts from the record of a set, for example its label and its host.
SetFacts SetFactsOf(const ArchiveSet& set);

class SealKey;

// Returns the shell command that creates an archive in the store.
std::string InitCommand(const StoreOptions& options);

// Finds the archives below the store's address, and returns their names
// relative to the address. Lists only the first page of objects of a large
// archive.
//   kCorrupt  the store lists more objects, pages or names than the limits
//             allow
[[nodiscard]] rocksdb::Status FindArchives(ObjectStore* store,
                                           std::set<std::string>* names);

// Reads the objects of one archive.
//
// Threads: any.
class Archive {
 public:
  // Reads from `store`. If `key` is not null, reads only sets that are sealed
  // with this key. Commands that put sets give `init_command`: the error for a
  // missing archive names it as the next command; empty: none. If `read_bytes`
  // is not null, adds the number of bytes that are read from files and logs to
  // *read_bytes. All pointers must stay valid while this object exists.
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

  // Reads the head of the archive, the object ARCHIVE.
  //   kRefused       there is no archive. If a database or other archives are
  //                  at or below this address, the message names them
  //   kIncompatible  the archive has a later format
  [[nodiscard]] rocksdb::Status ReadHead(ArchiveHead* head) const;
  // Returns the time of the store's clock. Names and records of sets use this
  // time.
  [[nodiscard]] rocksdb::Status Now(uint64_t* seconds) const;
  // Lists all sets, the oldest first. Lists every set that exists throughout
  // the call. A set for which `is_done` is true was committed at some moment
  // during the call. If `lost` is not null, *lost receives the names in done/
  // that have no record in sets/.
  [[nodiscard]] rocksdb::Status ListSets(
      std::vector<FoundSet>* sets, std::set<SetName>* lost = nullptr) const;
  // Reads an object of at most `max_bytes` bytes plus a header, and passes it
  // to decode(). If this returns kCorrupt, reads the object again, up to
  // kTriesOfBytes times in all. If the object is missing, returns OK and sets
  // *is_there to false.
  //   kCorrupt  the object was damaged at each attempt; or the store lists the
  //             object, but cannot find it
  [[nodiscard]] rocksdb::Status ReadObject(
      const std::string& key, uint64_t max_bytes,
      const std::function<rocksdb::Status(const std::string& bytes)>& decode,
      bool* is_there) const;
  // Reads the record of a set. If the record is missing, returns OK and leaves
  // *set unset. For a committed set, compares the record with the digest in
  // done/SET. Without a key, the unit digests of a sealed set stay encrypted.
  // If the archive's key did not seal the set, IsForeign() returns true for the
  // result, and *set has the record as it was read.
  //   kCorrupt  the record is damaged, or was changed after it was sealed
  //   kRefused  the record is not sealed with the archive's key
  [[nodiscard]] rocksdb::Status ReadSet(const FoundSet& found,
                                        std::optional<ArchiveSet>* set) const;
  // Returns true if ReadSet() returned `read` and *set because the set is not
  // sealed with the archive's key. Such a set is not damaged.
  static bool IsForeign(const rocksdb::Status& read,
                        const std::optional<ArchiveSet>& set) {
    return EndStateOf(read) == EndState::kRefused && set.has_value();
  }
  // Returns kRefused if the set is sealed and there is no key.
  [[nodiscard]] rocksdb::Status CheckReadable(const ArchiveSet& set) const;
  // Passes the bytes [offset, offset + bytes) of a file of the set to `sink`,
  // in order and decrypted. Authenticates the bytes of a sealed set, and
  // returns kDamaged if this fails. For an unsealed set, the caller must
  // compare the bytes with the unit digests. If a read fails, `sink` may
  // already have received some bytes. REQUIRES: CheckReadable() returned OK;
  // the range is within the file.
  StoreResult ReadFile(const ArchiveSet& set, const ArchivedFile& file,
                       uint64_t offset, uint64_t bytes,
                       const ObjectSink& sink) const;
  // Reads all marks. Skips a mark that is deleted during the call.
  //   kCorrupt  a mark cannot be read. The message says how to remove the mark
  [[nodiscard]] rocksdb::Status ReadMarks(std::vector<FoundMark>* marks) const;
  // Reads all marks, and stores in *marked which keys and sets they name. If
  // `marks` is not null, *marks receives the marks themselves.
  [[nodiscard]] rocksdb::Status ReadMarked(
      Marked* marked, std::vector<FoundMark>* marks = nullptr) const;
  // Reads all intents. If `unreadable` is not null, *unreadable receives the
  // ids of the intents that cannot be read; otherwise such an intent causes a
  // failure.
  [[nodiscard]] rocksdb::Status ReadIntents(
      std::vector<FoundIntent>* intents,
      std::vector<SetId>* unreadable = nullptr) const;
  // Reads the stored findings of checks and repairs. *checked is empty if
  // nothing is stored. A finding stays valid: no key is used twice, and a check
  // that finds the object right removes the finding.
  //   kCorrupt  the findings cannot be read, so it is unknown which objects are
  //             wrong. A check that reads all objects stores new findings
  [[nodiscard]] rocksdb::Status ReadChecked(ArchiveChecked* checked) const;
  // Replaces the stored findings by `checked`, with long problems truncated.
  // The caller should call ReadChecked() just before, because a store cannot
  // compare and put in one step.
  StoreResult PutChecked(ArchiveChecked checked) const;
  // Reads the faults in the stored findings, each with the time when it was
  // found: "its bytes differ ... (found DATE)". If `checked_seconds` is not
  // null, *checked_seconds receives the time of the last check.
  //   kCorrupt  ReadChecked() failed. Or the stored list is full, and may lack
  //             other wrong objects: then *faults has all faults in the list
  [[nodiscard]] rocksdb::Status ReadFaults(
      KeyFaults* faults, uint64_t* checked_seconds = nullptr) const;
  // Adds to *keys the objects under a prefix whose names are names of files of
  // sets. If `foreign` is not null, adds the number of other objects to
  // *foreign. If the store lists cold objects that were not restored, reads one
  // byte of the first that exists, to find out whether the store returns their
  // bytes.
  [[nodiscard]] rocksdb::Status ListKeys(const std::string& prefix,
                                         ListedKeys* keys,
                                         uint64_t* foreign = nullptr) const;

 private:
  // Returns the error for a store that contains no archive.
  [[nodiscard]] rocksdb::Status NoArchive() const;
  // Calls each(id, modified, bytes) for each object under a prefix whose name
  // is an id. If each() fails at every attempt, the object is unreadable. Then
  // adds the id to *unreadable or, if `unreadable` is null, returns kCorrupt.
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
