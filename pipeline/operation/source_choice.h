// Which of several sources a pull asks first, and when it asks another one.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Checks options.more_sources.
//   kRefused  the list, or what the options ask for, is not for several sources
[[nodiscard]] rocksdb::Status CheckSources(const PullOptions& options,
                                           bool in_place);

// All sources as they were named, but for that of an unfinished pull (empty:
// there is none), which comes first.
std::vector<SourceAddress> SourcesInOrder(const PullOptions& options,
                                          const std::string& begun_with);

// After a failure of a source: whether another one may be of use,
bool MayTryAnother(const rocksdb::Status& status);
// and whether this one may be later.
bool MayTryAgain(const rocksdb::Status& status);

// Adds up what came from each source, over the attempts of one pull.
class SourceTally {
 public:
  // `source` was the first one of an attempt that ended so.
  void Add(const SourceAddress& source, const rocksdb::Status& status,
           bool source_failed, const Summary& summary);
  // Sets summary->sources: those that were asked first, then the others, then
  // those that were not needed.
  void Fill(const PullOptions& options, Summary* summary) const;

 private:
  void AddOne(const SourceSummary& one);

  std::vector<SourceSummary> sources_;
};

}  // namespace sstferry
