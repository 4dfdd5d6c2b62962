// The audit of a standby: after each regular cut, what was here is compared with
// what the cut brought, both as of the cut's end. Only this machine reads for
// that; the source pins and sends nothing more.
//
//   before the exchange   Prepare(): links and copies both (audit_pair.h)
//   after it              Begin(): a thread compares the next slice of the key
//                         space, and records how far it has come
//   before the next cut   End(): the thread stops; its slice ends there
//
// Which cuts are audited:
//
//   a cut that is due, while records keep coming  yes: the source was the same
//                                                 before and after
//   any other                                     no: something is in the cut
//                                                 that no record says
//
// A cut that is due cannot be audited if the standby does not come to its end in
// time, or if the source has not judged all of the cut's MANIFEST: it may hold an
// ingestion, for one.
//
// A difference, or damage of one side, is recorded as a fault of DIR
// (pull/health.h), and the next audit compares all.
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
  // Keys and values of a slice, at one side. 0: nothing is audited.
  uint64_t max_bytes = 1u << 30;
  // A part of a core, over time; 100: all of it, and no rest.
  uint32_t cpu_percent = 1;
  // A cut waits so long at most until the standby has come to its end.
  std::chrono::milliseconds patience{5000};
  OperatorRegistry registry;
  LogFunction log;
  // Called from the thread with what was found, after it is recorded.
  std::function<void(const HealthFile& fault)> on_fault;
};

// Reads the record of the audits of the standby in `dir`. One that is damaged
// counts as none, and *damage says so.
[[nodiscard]] rocksdb::Status ReadAuditFile(const std::string& dir,
                                            AuditFile* audit,
                                            std::string* damage);

// Removes what the audits of followers that died have left beside DIR. What
// fails is a note.
void RemoveLeftAudits(const std::string& dir, const LogFunction& log);

// Threads: the thread that takes cuts calls everything but Cancel(), which any
//          thread may call.
class StandbyAudit {
 public:
  explicit StandbyAudit(AuditOptions options);
  ~StandbyAudit();
  StandbyAudit(const StandbyAudit&) = delete;
  StandbyAudit& operator=(const StandbyAudit&) = delete;

  // Writes the record of DIR's audits into `new_dir`, which is all of the next
  // cut, and takes what is to be compared, if this cut can be audited and it is
  // time. `is_due`: records follow the cut. A cut that cannot be audited is
  // counted, and is no error. `stopped` is polled.
  [[nodiscard]] rocksdb::Status Prepare(const Standby& standby,
                                        const std::string& new_dir,
                                        bool is_due,
                                        const std::function<bool()>& stopped);
  // Forgets what was prepared: the cut did not come.
  void Drop();
  // Begins the audit of what was prepared, in a thread. `new_dir` is DIR now.
  void Begin();
  // Stops it and waits.
  void End();
  // Waits until it has come to its end.
  void Await();
  // From any thread: ends it, and those that come.
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
  void TakeSlice(const AuditSlice& slice);
  void TakeFailure(const rocksdb::Status& status);
  void TakeFault(ReplicaFault fault, const std::string& what);
  [[nodiscard]] rocksdb::Status Write(const std::string& dir) const;
  void Log(LogLevel level, const std::string& text) const;

  const AuditOptions options_;
  std::atomic<bool> cancelled_{false};  // for good
  std::atomic<bool> ends_{false};       // while End() waits
  std::function<bool()> stopped_;  // while a cut is prepared
  std::unique_ptr<AuditPair> pair_;
  std::string damage_;  // that was found as it was prepared; empty: none
  AuditFile audit_;
  std::thread thread_;  // while it runs, all of the above are its own
};

}  // namespace sstferry
