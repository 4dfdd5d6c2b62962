// Reads the files of a database from a remote source, for a push. The lanes
// receive first the digests and then the bytes of a piece, and pass the bytes
// to a store as they arrive. No bytes are stored on this machine.
//
//   this machine                       the source
//   FileDigestRequest, for a piece     checks the file, before its first piece;
//                                      reads the piece
//   passes its SHA-256 to the store    FileDigestReply
//   PartRequest, for each unit in      reads it again, from the page cache
//     which the piece lies
//   passes on the bytes                ChunkBegin, ChunkData...
//
// Requests only the files that the push opens.
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
  std::string database;  // name of the database at the source
  // Address of the archive, which the source shows in its messages.
  std::string place;
  uint32_t lanes = 8;
  Timeouts timeouts;
  std::chrono::milliseconds deadline{0};  // like PullOptions::deadline
  LogFunction log;
};

// Reads the database of a push from a server.
//
// Threads: like SetSource; any thread may call Cancel().
// Memory:  one frame for each open file.
class RemoteSource : public SetSource {
 public:
  // Borrows the dialer. It must outlive this object.
  RemoteSource(Dialer* dialer, const RemoteSourceOptions& options);
  // Tells the source that the push ended early, unless Finish() was called
  // before.
  ~RemoteSource() override;

  // Requests a snapshot and the list of its files. Blocks until the source has
  // taken the snapshot.
  //   kRefused  the snapshot has more files or families than a set can have
  //   others    errors of the source
  [[nodiscard]] rocksdb::Status Connect();

  const ArchiveSet& set() const override { return set_; }
  // Opens a file on a lane of its own. Blocks while all lanes are in use.
  [[nodiscard]] rocksdb::Status Open(
      size_t file, std::unique_ptr<SetFile>* opened) override;
  [[nodiscard]] rocksdb::Status Finish() override;
  void Cancel();

 private:
  class File;
  struct Lane;

  // Ends the push because a lane failed. Returns the failure of the whole push.
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
  // Index of the first unit of each file, and at the end the number of units.
  std::vector<size_t> first_units_;

  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Lane>> free_lanes_;  // guarded by mu_
  std::vector<Totals> totals_;                     // by part; guarded by mu_
  DeadlineWatch watch_;
};

}  // namespace sstferry
