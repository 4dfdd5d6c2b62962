// Keeps a database's WALs readable and follows what is valid in them, while
// their owner writes the newest one.
//
// A WAL's size says little: one that is recycled holds an earlier life behind
// its own records, and one whose owner died, or buffers, may end inside a
// record. The newest is cut behind its last whole record; an older one is
// copied whole, and what it ends with is for recovery to judge.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/rocksdb/log_follower.h"
#include "pipeline/source/directory/posix_files.h"
#include "rocksdb/status.h"

namespace sstferry {

// A WAL as it was copied.
struct CopiedWal {
  uint64_t number = 0;
  std::string name;
  uint64_t bytes = 0;
};

// Ownership: owns open files; the links in held/ are its maker's to remove.
// Threads:   one.
class HeldWals {
 public:
  // Those in `directory`; links are made in `held` where that is possible, and
  // else an open file keeps them alive.
  HeldWals(std::string directory, std::string held);
  ~HeldWals();

  // Unless it is known that the owner does not recycle WALs.
  void set_may_recycle(bool may) { may_recycle_ = may; }

  // Lists the directory, holds each WAL with a number of at least `oldest`,
  // drops the others, and follows what is new in them: a cut, if nothing
  // else moved.
  //   TryAgain  a WAL vanished, or the listing may have missed one.
  //   others    it cannot be read, or has records that nobody here knows.
  [[nodiscard]] rocksdb::Status Follow(uint64_t oldest);

  // Whether that cut may be taken: each WAL ends with a whole record, or what
  // lies behind does not change, or belongs to an earlier life.
  //   TryAgain  not yet: the reason.
  //   kCorrupt  bytes before the end of a WAL are wrong, more than once.
  [[nodiscard]] rocksdb::Status CheckEnds();

  // Bytes that CopyInto() will write.
  uint64_t bytes() const;
  // Copies all up to the cut.
  //   TryAgain  the owner recycled one of them meanwhile.
  [[nodiscard]] rocksdb::Status CopyInto(const std::string& directory,
                                         std::vector<CopiedWal>* copied) const;

  const std::string& directory() const { return directory_; }

 private:
  struct Wal;

  [[nodiscard]] rocksdb::Status List(uint64_t oldest);
  [[nodiscard]] rocksdb::Status Hold(uint64_t number, const std::string& name);
  [[nodiscard]] rocksdb::Status Advance(Wal* wal);
  [[nodiscard]] rocksdb::Status CheckEnd(Wal* wal);
  [[nodiscard]] rocksdb::Status CheckNames() const;
  bool IsNewest(const Wal& wal) const;
  bool IsRecyclable(const Wal& wal) const;
  uint64_t BytesToCopy(const Wal& wal) const;

  const std::string directory_;
  const std::string held_;
  bool may_recycle_ = true;
  std::map<uint64_t, std::unique_ptr<Wal>> wals_;  // by number
  uint64_t newest_listed_ = 0;
};

// The WALs among `names`: number to name.
std::map<uint64_t, std::string> WalsIn(const std::vector<std::string>& names);

}  // namespace sstferry
