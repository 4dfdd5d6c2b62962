// Reads the files of a database that a remote source serves, for a push. The
// lanes of a clone receive first the digests and then the bytes, and pass these
// to a store as they arrive. Nothing is stored on this machine.
//
//   this side                          the source
//   FileDigestRequest, for a piece     checks the file, before its first piece;
//                                      reads the piece
//   passes its SHA-256 to the store    FileDigestReply
//   PartRequest, for each unit in      reads it again, from the page cache
//     which the piece lies
//   passes on the bytes                ChunkBegin, ChunkData...
//
// Only files that are opened are requested.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "format/plan.h"
#include "pipeline/archive/set_source.h"
#include "pipeline/pull/deadline_watch.h"
#include "pipeline/pull/first_failure.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/source_link.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {

struct RemoteSourceOptions {
  std::string database;  // its name at the source
  std::string place;     // address of the archive, for messages at the source
  uint32_t lanes = 8;
  Timeouts timeouts;
  std::chrono::milliseconds deadline{0};  // as PullOptions::deadline
  LogFunction log;
};

// The source of a push that reads from a server.
//
// Threads: as SetSource; Cancel() from any.
// Memory:  one frame for each open file.
class RemoteSource : public SetSource {
 public:
  // Borrows the dialer, which must outlive this object.
  RemoteSource(Dialer* dialer, const RemoteSourceOptions& options);
  // Tells the source that the push ended early, unless Finish() was called.
  ~RemoteSource() override;

  // Requests a snapshot and its files. Blocks while the source makes it.
  //   kRefused  more files or families than a set can have
  //   others    errors of the source
  [[nodiscard]] rocksdb::Status Connect();

  const ArchiveSet& set() const override { return set_; }
  // Blocks while the number of open files equals the number of lanes.
  [[nodiscard]] rocksdb::Status Open(
      size_t file, std::unique_ptr<SetFile>* opened) override;
  [[nodiscard]] rocksdb::Status Finish() override;
  void Cancel();

 private:
  class File;
  struct Lane;

  // Returns the failure of the whole push after one lane has failed.
  [[nodiscard]] rocksdb::Status Fail(const rocksdb::Status& status,
                                     const Lane& lane);
  [[nodiscard]] rocksdb::Status TakeLane(std::unique_ptr<Lane>* lane);
  void ReturnLane(std::unique_ptr<Lane> lane);

  const RemoteSourceOptions options_;
  FirstFailure failure_;
  SourceLink link_;
  LaneShared state_;
  Plan plan_;
  ArchiveSet set_;
  std::vector<size_t> first_units_;  // by file: index of its first unit; last:
                                     // number of units

  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Lane>> free_lanes_;  // guarded by mu_
  std::vector<Totals> totals_;                     // by part; guarded by mu_
  DeadlineWatch watch_;
};

}  // namespace sstferry
