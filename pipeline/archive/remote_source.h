// The files of a database that a source elsewhere serves, for a push: the lanes
// of a clone bring their digests and then their bytes, which go on to a store
// as they come. Nothing is kept of them here.
//
//   this side                          the source
//   FileDigestRequest, for a piece     checks the file, before its first piece;
//                                      reads the piece
//   takes its SHA-256 to the store     FileDigestReply
//   PartRequest, for each unit in      reads it again, out of the page cache
//     which the piece lies
//   passes on what comes               ChunkBegin, ChunkData...
//
// A file that is not opened is not asked for.
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
  std::string place;     // where it is pushed to, for the source's operator
  uint32_t lanes = 8;
  Timeouts timeouts;
  std::chrono::milliseconds deadline{0};  // as PullOptions has it
  LogFunction log;
};

// Threads: as SetSource; Cancel() from any.
// Memory:  a frame for each file that is open.
class RemoteSource : public SetSource {
 public:
  // Borrows the dialer, which must outlive it.
  RemoteSource(Dialer* dialer, const RemoteSourceOptions& options);
  // Tells the source, unless Finish() did, that nothing is needed any more.
  ~RemoteSource() override;

  // Asks for a snapshot and its files. Blocks while the source makes it.
  //   kRefused  more files or families than a set has
  //   others    the source's
  [[nodiscard]] rocksdb::Status Connect();

  const ArchiveSet& set() const override { return set_; }
  // Waits while as many files are open as there are lanes.
  [[nodiscard]] rocksdb::Status Open(
      size_t file, std::unique_ptr<SetFile>* opened) override;
  [[nodiscard]] rocksdb::Status Finish() override;
  void Cancel();

 private:
  class File;
  struct Lane;

  [[nodiscard]] rocksdb::Status Describe();
  // Returns how all of it failed, now that a lane did so.
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
  std::vector<size_t> first_units_;  // by file, and one more: its first unit

  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Lane>> free_lanes_;  // under mu_
  std::vector<Totals> totals_;                     // under mu_: by part
  DeadlineWatch watch_;
};

}  // namespace sstferry
