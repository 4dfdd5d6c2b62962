// Imitates an application with a database of any kind: it writes, crashes, and
// reads what it recovers. Tests compare a copy of its database with the
// recovered contents.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sstferry::test {

enum class AppKind {
  kPlain, kTtl, kWriteCommitted, kWritePrepared, kWriteUnprepared
};
const char* AppKindName(AppKind kind);

// The options with which the application opens its database every time.
struct AppSetup {
  AppKind kind;
  uint32_t recovery_mode;  // a rocksdb::WALRecoveryMode
  uint32_t families;
  bool has_wal_dir;
  bool recycles;
  bool compresses;
  bool tracks;
  bool flushes_manually;
  bool keeps_wals;  // avoid_flush_during_recovery
  bool has_two_queues;
  bool flushes_atomically;
  // f1 has blob files, f2 uses FIFO compaction, f3 has a compaction filter.
  bool has_styles = false;
};

enum class AppAct {
  kPut, kPutLarge, kPutUnlogged, kDelete, kMerge, kDeleteRange, kBatch,
  kFlush, kFlushAll, kSyncWal, kFlushWal, kCompact, kIngest,
  kCreateFamily, kDropFamily,
  kTransact, kPrepare, kCommit, kRollback, kBegin,
  kDeleteFiles  // DeleteFilesInRange; only with styles
};

struct AppStep {
  AppAct act;
  uint32_t family;
  uint32_t key;
  uint32_t other;  // a size, or the index of a named transaction
};

// The steps from one open of the database to a crash, or to a close.
struct AppLife {
  std::vector<AppStep> steps;
  bool ends_well;
};

struct AppHistory {
  AppSetup setup;
  std::vector<AppLife> lives;
  bool merges() const;
  // Returns true if the history may have used sequence numbers, before those of
  // its WALs, for entries that are in no table. While no process has the
  // database open, a snapshot then needs the name of its wal_dir.
  bool hides_sequences() const;
};

void showValue(const AppHistory& history, std::ostream& os);
rc::Gen<AppHistory> AppHistoryGen(bool has_styles = false);

// Takes the steps of `life` in `dir`, with the WALs in `wal_dir` unless that is
// empty. Calls `before` (may be null) before each step, with the step's number.
// Ends the process with exit code 0, or with kCannotOpen if the database does
// not open.
inline constexpr int kCannotOpen = 1;
[[noreturn]] void PlayLife(const AppSetup& setup, const AppLife& life,
                           const std::string& dir, const std::string& wal_dir,
                           const std::function<void(size_t)>& before = nullptr);

// The contents that the application finds when it opens a database.
struct AppView {
  bool died = false;  // RocksDB failed an assertion or hung
  std::string error;  // empty: it opened and was read
  // By family and key: the value.
  std::map<std::string, std::map<std::string, std::string>> families;
  std::set<std::string> prepared;  // names of prepared transactions
};

// Opens `dir` as the application does, writes what it finds to `file` and ends
// the process. Empty `wal_dir`: the WALs are in `dir`.
[[noreturn]] void WriteView(const AppSetup& setup, const std::string& dir,
                            const std::string& wal_dir,
                            const std::string& file);
AppView ReadView(const std::string& file);
// Returns the first difference, or "".
std::string Difference(const AppView& expected, const AppView& found);

}  // namespace sstferry::test
