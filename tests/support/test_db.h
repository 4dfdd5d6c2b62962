// Databases for end-to-end tests: plain RocksDB builds them, the library
// transfers them, and plain RocksDB compares them entry by entry.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "sstferry/options.h"
#include "sstferry/source.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::test {

using Families = std::vector<rocksdb::ColumnFamilyDescriptor>;

// Returns "default" with the given options.
Families OneFamily(const rocksdb::ColumnFamilyOptions& options = {});
// Returns options without automatic compaction, so that a test's files stay as
// it made them.
rocksdb::ColumnFamilyOptions Quiet();

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Returns `base` with these options, named as in OPTIONS. Skips options that
// the linked RocksDB does not know.
rocksdb::ColumnFamilyOptions FamilyWith(const NamedTexts& named,
                                        rocksdb::ColumnFamilyOptions base = {});
rocksdb::DBOptions DatabaseWith(const NamedTexts& named);

// Returns one of RocksDB's merge operators by its name in OPTIONS.
std::shared_ptr<rocksdb::MergeOperator> MergeOperatorNamed(
    const std::string& text);

// An open database with its handles. Its writes require success. Makes
// "default" even if it is not listed.
class OpenDb {
 public:
  OpenDb(const std::string& path, const Families& families,
         const rocksdb::DBOptions& options = {});
  // Opens with one set of options; without `families`, only "default".
  OpenDb(const rocksdb::Options& options, const std::string& path,
         Families families = {});
  ~OpenDb();
  OpenDb(const OpenDb&) = delete;
  OpenDb& operator=(const OpenDb&) = delete;

  rocksdb::DB* operator->() const { return db_.get(); }
  rocksdb::DB* get() const { return db_.get(); }
  rocksdb::ColumnFamilyHandle* cf(const std::string& name = "default") const;
  // Returns the handles in the order in which they were listed.
  const std::vector<rocksdb::ColumnFamilyHandle*>& families() const {
    return listed_;
  }
  rocksdb::ColumnFamilyHandle* family(size_t i) const { return listed_[i]; }
  bool Has(const std::string& name) const { return handles_.contains(name); }
  void Create(const rocksdb::ColumnFamilyDescriptor& family);
  void Drop(const std::string& name);
  void Put(const std::string& key, const std::string& value,
           const std::string& family = "default");
  void Delete(const std::string& key, const std::string& family = "default");
  void Merge(const std::string& key, const std::string& operand,
             const std::string& family = "default");
  void DeleteRange(const std::string& begin, const std::string& end,
                   const std::string& family = "default");
  void Flush();  // all families
  void Compact(const std::string& family = "default");

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::map<std::string, rocksdb::ColumnFamilyHandle*> handles_;
  std::vector<rocksdb::ColumnFamilyHandle*> listed_;
};

// Returns for example "k00000042".
std::string NumberedKey(uint64_t number);
uint64_t FileCount(const std::string& directory, const std::string& suffix);
std::vector<std::string> PathsWith(const std::string& directory,
                                   const std::string& suffix);
// Returns the names, sizes, inodes, modification times and contents below
// `directory`: equal texts mean that nobody wrote there.
std::string Fingerprint(const std::string& directory);

enum class Via { kDirectory, kTcp };

struct Ferried {
  rocksdb::Status status;
  Summary summary;
  EndState state() const { return EndStateOf(status); }
  std::string message() const { return status.ToString(); }
  bool notes_mention(const std::string& text) const;
};

// Pulls source_dir into target_dir (sets options.target_dir). Requires that the
// source directory is unchanged, that nothing is left beside either side, and
// that a failure leaves no target. If `options` set no method, Ferry() pulls
// chunks, and FerryByRule() lets the library choose.
Ferried Ferry(const std::string& source_dir, const std::string& target_dir,
              PullOptions options = {}, Via via = Via::kDirectory);
Ferried FerryByRule(const std::string& source_dir,
                    const std::string& target_dir, PullOptions options = {},
                    Via via = Via::kDirectory);
// Pulls a database that this process has open, over TCP.
Ferried FerryOpen(const ServedDatabase& served, const std::string& target_dir,
                  PullOptions options = {});

// The expectations of a comparison.
struct Expectation {
  // The source's families. The target is opened with its own OPTIONS file, plus
  // the comparators, merge operators and extractors of these families.
  Families families = OneFamily();
  KeyInterval interval;
  // Options that may differ, as "CFOptions name.option" or just "option".
  std::set<std::string> changed_options;
  bool keeps_level0 = false;  // FIFO, or one level
  bool is_refreshed = false;  // has tables from before the refresh, and deltas
};

// Compares every family entry by entry, including wide columns. Requires the
// properties of a seed's target: everything in the last level, at sequence 0,
// no deletions (unless is_refreshed), no WAL, and OPTIONS equal to the
// source's.
void ExpectEqual(const std::string& source_dir, const std::string& target_dir,
                 const Expectation& expected = {});
// Compares only the entries.
void ExpectSameEntries(const std::string& source_dir,
                       const std::string& target_dir,
                       const Expectation& expected = {});
// Pulls dir/"source" into dir/"local" from the directory and into dir/"tcp"
// over TCP, and requires that all entries arrive.
void RequireMoves(const ScratchDir& dir, const Expectation& expected = {},
                  const PullOptions& options = {});
// Returns all entries of one family, in the family's order.
std::vector<std::pair<std::string, std::string>> EntriesOf(
    const std::string& directory, const Families& families,
    const std::string& family = "default");

}  // namespace sstferry::test
