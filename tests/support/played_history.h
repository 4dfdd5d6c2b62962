// Random histories over column families of many kinds: steps that rapidcheck
// can shrink, and the Player that takes them.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/test_db.h"

namespace sstferry::test {

enum class Act {
  kPut, kDelete, kPutOnce, kSingleDelete, kDeleteRange, kMerge,
  kFlush, kCompact, kIngest, kReopen, kSnapshot, kPutMany,
  // Not made by StepGen() without an argument:
  kIngestKept,    // ingests one of few files, which never change
  kDrop,          // drops the family; its next step makes it again
  kDeleteFiles,   // DeleteFilesInRange
  kRemoveOnce,    // SingleDelete of a present key that was put once
};

struct Step {
  Act act;
  uint32_t family;  // modulo the number of families
  uint32_t key;
  uint32_t other;   // a second key, or a size
};

void showValue(const Step& step, std::ostream& os);
rc::Gen<Step> StepGen();
rc::Gen<Step> StepGen(const rc::Gen<Act>& act);
std::string PlayedKey(uint32_t number);

// Returns a comparator by length, then bytewise. RocksDB has no such order
// built in.
const rocksdb::Comparator* ByLengthComparator();

constexpr uint32_t kKinds = 10;
constexpr uint32_t kUniversalKind = 6;
rocksdb::ColumnFamilyOptions OfKind(uint32_t kind);

// A database directory, open only while steps are taken.
class Player {
 public:
  // Makes a family of each kind, `default` first. Makes files for kIngestKept
  // in `kept_dir`, which players share.
  Player(const std::string& dir, const std::vector<uint32_t>& kinds,
         const std::string& kept_dir = "");
  const Families& families() const { return families_; }
  void Play(const std::vector<Step>& steps);
  // Compacts a part of every family into the last level, at sequence 0.
  void CompactPart(uint32_t from);
  // Calls `work` with the open database.
  void While(const std::function<void(OpenDb*)>& work);
  // Forgets the keys that were put once. Called when another database takes the
  // place of the one in `dir`.
  void ForgetOnce();
  // Makes later compactions of the family remove empty values.
  void RemovesEmptyValues(size_t family);

 private:
  void Open();
  void Close();
  void Ingest(const Step& step, const std::string& name);
  void IngestKept(const Step& step, const std::string& name);
  void IngestFile(const std::string& path, const std::string& name, bool moves,
                  bool stamps);
  void Drop(size_t family);
  void DeleteFiles(const Step& step, const std::string& name);
  void RemoveOnce(const Step& step, const std::string& name);
  void DeleteRange(const Step& step, const std::string& name);
  void Take(const Step& step);

  const std::string dir_;
  const std::string kept_dir_;
  Families families_;
  std::unique_ptr<OpenDb> db_;
  std::vector<const rocksdb::Snapshot*> snapshots_;
  std::vector<std::set<std::string>> once_;  // keys put once, by family
  uint32_t lives_ = 0;  // number of ForgetOnce() calls; part of once-put keys
};

}  // namespace sstferry::test
