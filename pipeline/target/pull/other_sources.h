// Sources of a clone beside the first one: each sends units that it has, too,
// for as long as it is there.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/base/stop_signal.h"
#include "pipeline/target/lane/lane_source.h"
#include "pipeline/target/pull/pull_compression.h"
#include "pipeline/target/pull/pull_context.h"
#include "pipeline/target/pull/unit_witness.h"
#include "pipeline/target/session/first_failure.h"
#include "pipeline/target/session/source_link.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {

struct OtherSource {
  SourceAddress address;
  // Called for each connection to a source that comes back.
  std::function<rocksdb::Status(std::unique_ptr<Dialer>*)> make_dialer;
};

// What another source has is asked for by its own transfer, with a snapshot of
// its own. No failure of it fails the pull.
// Ownership: borrows the context.
// Threads:   Start() and Stop() from the pull's own, Close() and the rest from
//   any; one thread per source, and one for each of its lanes.
class OtherSources {
 public:
  OtherSources(const PullContext* context, PullCompression* compression,
               std::vector<OtherSource> sources);
  ~OtherSources();

  bool empty() const { return visitors_.empty(); }
  // A lane of the first source that is left to this object. REQUIRES: the
  // scheduler is there.
  void Start(uint32_t witness_lane);
  // All has come, or the pull has failed: ends the threads, and tells the report
  // which sources were of no use.
  void Stop();
  // Ends what the threads wait for.
  void Close();

  // Sources that send now.
  uint32_t in_use() const;
  uint64_t wire_bytes() const;
  // In the order in which they were named.
  std::vector<SourceSummary> Summaries() const;

 private:
  struct Visitor;
  // Until the source is of no use any more, or Stop().
  void Run(Visitor* visitor);
  // One connection, from its begin to its end. OK: nothing is left to fetch
  // from it. *again: the source may come back.
  [[nodiscard]] rocksdb::Status Visit(Visitor* visitor, bool* again);
  [[nodiscard]] rocksdb::Status Open(Visitor* visitor, SourceLink* link,
                                     SourcePlan* plan);
  [[nodiscard]] rocksdb::Status Fetch(Visitor* visitor, SourceLink* link,
                                      const SourcePlan& plan, bool* again);
  void RunLane(Visitor* visitor, SourceLink* link, uint32_t lane);
  // Lets the source remove its snapshot.
  void Leave(SourceLink* link, const SourcePlan& plan,
             const rocksdb::Status& status);
  SourceLinkOptions LinkOptions() const;
  void SetState(Visitor* visitor, const std::string& state);
  // Logs it; it becomes a note of the summary.
  void Say(Visitor* visitor, const std::string& note);

  const PullContext* const context_;
  PullCompression* const compression_;
  StopSignal stop_;
  std::unique_ptr<UnitWitness> witness_;
  std::vector<std::unique_ptr<Visitor>> visitors_;

  mutable std::mutex mu_;
  std::condition_variable visited_;
  bool closed_ = false;  // under mu_
};

}  // namespace sstferry
