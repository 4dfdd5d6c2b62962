// Audits a standby: after each scheduled cut, compares the standby's earlier
// contents with the cut, both as of the end of the cut's WALs. Only this
// machine reads data for an audit; the source need not pin or send more.
//
//   before the exchange   Prepare(): links and copies both sides (audit_pair.h)
//   after the exchange    Begin(): a thread compares the next slice of the key
//                         space, and records its progress
//   before the next cut   End(): stops the thread and thereby its slice
//
// Only scheduled cuts are audited. Records keep arriving during such a cut, so
// the cut and the standby differ only by records of WALs. Any other cut
// contains changes that are in no WAL record.
//
// A scheduled cut cannot be audited if the standby does not reach the cut's end
// in time. Nor can it be audited if the source has not judged the cut's
// complete MANIFEST: a record that was not judged may be that of an ingestion.
//
// A difference, or damage of one side, is recorded as a fault of DIR
// (pull/health.h), and the next audit compares all entries.
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
  // Maximum bytes of keys and values in a slice, per side. 0: no audits.
  uint64_t max_bytes = 1u << 30;
  // Average share of one core, in percent; 100: no pauses, and no low priority.
  uint32_t cpu_percent = 1;
  // Maximum time that a cut waits for the standby to reach the cut's end.
  std::chrono::milliseconds patience{5000};
  OperatorRegistry registry;
  LogFunction log;
  // Called from the audit's thread after it has recorded a fault.
  std::function<void(const HealthFile& fault)> on_fault;
};

// Reads the record of the audits of the standby in `dir`. A damaged record
// counts as missing, and *damage says what is wrong.
[[nodiscard]] rocksdb::Status ReadAuditFile(const std::string& dir,
                                            AuditFile* audit,
                                            std::string* damage);

// Removes files that audits of earlier followers left next to DIR. Logs
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

  // Writes the record of DIR's audits into `new_dir`, the complete next cut. If
  // this cut can be audited and an audit is due, links and copies both sides.
  // `is_due`: this is a scheduled cut. A cut that cannot be audited is counted,
  // but causes no error. `stopped` is polled.
  [[nodiscard]] rocksdb::Status Prepare(const Standby& standby,
                                        const std::string& new_dir,
                                        bool is_due,
                                        const std::function<bool()>& stopped);
  // Discards the prepared copies after the cut failed.
  void Drop();
  // Starts the thread that audits the files that Prepare() linked. Call after
  // Prepare()'s `new_dir` has been renamed to DIR.
  void Begin();
  // Stops the thread and waits for it.
  void End();
  // Waits until the thread has finished.
  void Await();
  // Stops this audit and prevents later ones. May be called from any thread.
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
  std::atomic<bool> cancelled_{false};  // set once, by Cancel()
  std::atomic<bool> ends_{false};       // true while End() waits
  std::function<bool()> stopped_;  // set while a cut is prepared
  std::unique_ptr<AuditPair> pair_;
  std::string damage_;  // found during Prepare(); empty: none
  AuditFile audit_;
  std::thread thread_;  // owns the members above while it runs
};

}  // namespace sstferry
