// Measures RocksDB's own BackupEngine: backs up into one directory, and
// restores from there into another one, with every file synced.
//
//   bench_backup_engine --db DIR --backup-dir DIR --target DIR --lanes 4
#include <memory>
#include <string>

#include "benchmarks/support/database.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/report.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/backup_engine.h"

namespace sstferry::bench {
namespace {

using rocksdb::Status;

Status Run(const std::string& source, const std::string& backup_dir,
           const std::string& target, int lanes, Report* report) {
  std::unique_ptr<rocksdb::DB> db;
  Stopwatch backup_watch;
  Status s = OpenReadOnly(source, &db);
  if (!s.ok()) return s;
  rocksdb::BackupEngineOptions options(backup_dir);
  options.sync = true;
  options.max_background_operations = lanes;
  rocksdb::BackupEngine* raw = nullptr;
  s = rocksdb::BackupEngine::Open(options, rocksdb::Env::Default(), &raw);
  if (!s.ok()) return s;
  const std::unique_ptr<rocksdb::BackupEngine> engine(raw);
  s = engine->CreateNewBackup(db.get(), /*flush_before_backup=*/false);
  report->Add("backup_seconds", backup_watch.Seconds());
  if (!s.ok()) return s;
  db.reset();
  Stopwatch restore_watch;
  s = engine->RestoreDBFromLatestBackup(target, target);
  report->Add("restore_seconds", restore_watch.Seconds());
  return s;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  sstferry::bench::Flags flags(argc, argv);
  const std::string source = flags.Required("db");
  const std::string backup_dir = flags.Required("backup-dir");
  const std::string target = flags.Required("target");
  const int lanes = static_cast<int>(flags.Number("lanes", 4));
  flags.Done();
  sstferry::bench::Report report;
  const rocksdb::Status s =
      sstferry::bench::Run(source, backup_dir, target, lanes, &report);
  return report.Finish(s);
}
