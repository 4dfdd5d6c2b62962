// Audits a standby. After each scheduled cut, compares the old contents of the
// standby with the cut, both as of the end of the cut's WALs. An audit reads
// data only on this machine. The source need not pin or send more for it.
//
//   before the exchange   Prepare(): links and copies both sides (audit_pair.h)
//   after the exchange    Begin(): a thread compares the next slice of keys,
//                         and records how far it came
//   before the next cut   End(): stops the thread, and with it the slice
//
// Only scheduled cuts are audited. The source's records keep arriving during a
// scheduled cut, so the cut and the standby differ only by WAL records. Any
// other cut contains changes that are in no WAL record.
//
// There are two reasons not to audit a scheduled cut. The standby may not
// receive the cut's last record in time. Or the source may not have judged all
// of the cut's MANIFEST yet: a record that it has not judged may belong to an
// ingestion.
//
// If an audit finds a difference, or damage of one side, it records a fault of
// DIR (pull/health.h). The next audit then compares all entries.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "format/audit_file.h"
#include "format/follow_file.h"
#include "format/health_file.h"
#include "pipeline/follow/audit_pair.h"
#include "pipeline/follow/standby.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

struct AuditOptions {
  std::string dir;
  std::shared_ptr<rocksdb::FileSystem> file_system;
  // Maximum bytes of keys and values in a slice, for each side. 0: no audits.
  uint64_t max_bytes = 1u << 30;
  // CPU time of the audits, in percent of one core on average. 100: the audits
  // do not pause, and run with normal priority.
  uint32_t cpu_percent = 1;
  // Maximum time that a cut waits until the standby has received the cut's last
  // record.
  std::chrono::milliseconds patience{5000};
  OperatorRegistry registry;
  LogFunction log;
  // The audit's thread calls this after it has recorded a fault.
  std::function<void(const HealthFile& fault)> on_fault;
};

// Reads the record of the audits of the standby in `dir`. If the record is
// damaged, returns an empty record, and *damage says what is wrong.
[[nodiscard]] rocksdb::Status ReadAuditFile(const std::string& dir,
                                            AuditFile* audit,
                                            std::string* damage);

// Removes files next to DIR that audits of earlier followers left there. Logs
// failures.
void RemoveLeftAudits(const std::string& dir, const LogFunction& log);

// Runs the audits of one standby.
//
// Threads: the thread that takes cuts calls everything except Cancel(), which
// may be called from any thread.
class StandbyAudit {
 public:
  explicit StandbyAudit(AuditOptions options);
  ~StandbyAudit();
  StandbyAudit(const StandbyAudit&) = delete;
  StandbyAudit& operator=(const StandbyAudit&) = delete;

  // Writes the record of DIR's audits into `new_dir`, which contains the
  // complete next cut. If the cut is scheduled (`is_due`) and enough time has
  // passed since the last audit, links and copies both sides. If this is not
  // possible, counts the cut as not audited, but returns no error for it. Stops
  // when stopped() returns true.
  [[nodiscard]] rocksdb::Status Prepare(const Standby& standby,
                                        const std::string& new_dir,
                                        bool is_due,
                                        const std::function<bool()>& stopped);
  // Discards the copies that Prepare() made. Called if the cut has failed.
  void Drop();
  // Starts the thread that compares the files that Prepare() linked. The caller
  // must first rename the `new_dir` of Prepare() to DIR.
  void Begin();
  // Stops the thread and waits for it.
  void End();
  // Waits until the thread has finished.
  void Await();
  // Stops the running audit and prevents later audits. Any thread may call
  // this.
  void Cancel();

 private:
  [[nodiscard]] rocksdb::Status Take(const Standby& standby,
                                     const FollowFile& cut,
                                     const std::string& new_dir,
                                     const std::function<bool()>& stopped);
  [[nodiscard]] rocksdb::Status AwaitEnd(const Standby& standby,
                                         const FollowFile& cut,
                                         const std::string& new_dir,
                                         WalLimit* end) const;
  bool IsTime() const;
  void Run();
  void CompareSlice();
  void BeginAgain();
  void TakeSlice(const AuditSlice& slice);
  void TakeFailure(const rocksdb::Status& status);
  void TakeFault(ReplicaFault fault, const std::string& what);
  [[nodiscard]] rocksdb::Status Write(const std::string& dir) const;
  void Log(LogLevel level, const std::string& text) const;

  const AuditOptions options_;
  std::atomic<bool> cancelled_{false};  // Cancel() sets it once
  std::atomic<bool> ends_{false};       // true while End() waits
  std::function<bool()> stopped_;  // not null while Prepare() runs
  std::unique_ptr<AuditPair> pair_;
  std::string damage_;  // damage that Prepare() found; empty: none
  AuditFile audit_;
  // While it runs, only this thread uses the members above.
  std::thread thread_;
};

}  // namespace sstferry
